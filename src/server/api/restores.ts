import { drawId } from '../journal/message-id.js'
import { NOTHING_RESTORED, sumOf } from '../journal/restore-result.js'
import { valuesOf } from '../records/hash-values.js'
import { recordIn, type Form } from '../records/record-in.js'
import type { ScriptRunner } from '../run-script.js'
import type { Topics } from '../topics/topics.js'
import { BadRequest, problemOf, type Problem } from './problem.js'

/** A request to put messages back from the journal. */
export interface RestoreRequest {
  /** The topics, one after the other. */
  readonly names: readonly string[]
  /** The named topic; `null`: all topics of the key. */
  readonly topic: string | null
  /** Only the message with this id; `null`: all. */
  readonly messageId: string | null
  /** Also messages that expired. */
  readonly expired: boolean
  /** Only counts what would be put back. */
  readonly dryRun: boolean
  /** The id of the API key. */
  readonly key: string
}

/** A restore as all instances show it. Times are epoch milliseconds of the clock of Redis. */
export interface RestoreRecord extends Omit<RestoreRequest, 'names'> {
  readonly id: string
  /** `interrupted`: its instance ended; repeat the request to continue. */
  readonly state: 'running' | 'done' | 'failed' | 'interrupted'
  readonly startedAt: number
  readonly updatedAt: number
  readonly topics: number
  readonly topicsDone: number
  /** About how many messages are to be compared with Redis; `null` until SQL has counted them. */
  readonly total: number | null
  readonly checked: number
  readonly restored: number
  readonly refused: number
  readonly perSecond: number
  readonly msLeft: number | null
  /** The reason of a failure. */
  readonly problem: Omit<Problem, 'errors'> | null
}

/** The commands of an ioredis client that this class sends. */
interface HashCommands extends ScriptRunner {
  hset(key: string, field: string, value: string): Promise<unknown>
  hdel(key: string, ...fields: string[]): Promise<unknown>
}

const KEY = 'redelayed:service:restores'
/** The most restores that are remembered. */
const KEPT = 100
/** The most restores that run at once on one instance. */
const AT_ONCE = 4
const NOTE_MS = 1_000
/** A restore whose instance has not reported for this time counts as interrupted. */
const SILENT_MS = 30_000

/** Restores by hand. Each runs on the instance that got the request, and all instances show it. */
export class Restores {
  readonly #redis: HashCommands
  readonly #topics: Topics
  readonly #onError: (error: unknown) => void
  readonly #stop = new AbortController()
  readonly #running = new Set<Promise<void>>()

  constructor(redis: HashCommands, topics: Topics, onError: (error: unknown) => void) {
    this.#redis = redis
    this.#topics = topics
    this.#onError = onError
  }

  /** Begins a restore and resolves before it ends. @throws BadRequest there is no journal, or too many restores run */
  async start({ names, ...request }: RestoreRequest): Promise<RestoreRecord> {
    if (!this.#topics.hasJournal) throw new BadRequest('no-journal', 'there is nothing to restore from')
    if (this.#stop.signal.aborted) throw new BadRequest('shutting-down', 'ask another instance')
    if (this.#running.size >= AT_ONCE)
      throw new BadRequest('too-many-restores', `this instance runs ${AT_ONCE} restores; wait until one has ended`)
    const run = new Run(drawId(), request, names, this.#topics)
    const first = run.record()
    const running = this.#run(run)
    this.#running.add(running)
    void running.finally(() => this.#running.delete(running))
    // the restore has begun; if Redis does not answer, the restore itself waits or fails
    await this.#note(first)
      .then(() => this.#trim())
      .catch(this.#onError)
    return first
  }

  async get(id: string): Promise<RestoreRecord | null> {
    const [found = ''] = await valuesOf(this.#redis, KEY, id)
    const record = restoreIn(found)
    return record === undefined ? null : this.#seen(record)
  }

  /** The newest first. */
  async list(): Promise<RestoreRecord[]> {
    const found = (await valuesOf(this.#redis, KEY)).flatMap((text) => restoreIn(text) ?? [])
    return found.map((record) => this.#seen(record)).sort((a, b) => (a.id < b.id ? 1 : -1))
  }

  /** Interrupts the restores of this instance. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#running)
  }

  async #run(run: Run): Promise<void> {
    // an earlier state must not overwrite the last one
    let noting: Promise<void> = Promise.resolve()
    const note = (): void => {
      noting = noting.then(() => this.#note(run.record())).catch(this.#onError)
    }
    const timer = setInterval(note, NOTE_MS)
    await run.play(this.#stop.signal, this.#onError)
    clearInterval(timer)
    note()
    await noting
  }

  async #note(record: RestoreRecord): Promise<void> {
    await this.#redis.hset(KEY, record.id, JSON.stringify(record))
  }

  async #trim(): Promise<void> {
    const old = (await this.list()).slice(KEPT).filter(({ state }) => state !== 'running')
    if (old.length > 0) await this.#redis.hdel(KEY, ...old.map(({ id }) => id))
  }

  #seen(record: RestoreRecord): RestoreRecord {
    const isSilent = record.state === 'running' && this.#topics.now() - record.updatedAt > SILENT_MS
    return isSilent ? { ...record, state: 'interrupted', msLeft: null } : record
  }
}

const STATES: readonly unknown[] = ['running', 'done', 'failed', 'interrupted'] satisfies RestoreRecord['state'][]
const PROBLEM: Form<Pick<Problem, 'type' | 'title' | 'status' | 'code'>> = {
  ...{ type: 'text', title: 'text', status: 'number', code: 'text' },
}
const FORM: Form<Omit<RestoreRecord, 'refused'> & { readonly refused: number | undefined }> = {
  ...{ id: 'text', topic: 'text?', messageId: 'text?', expired: 'flag', dryRun: 'flag', key: 'text' },
  ...{ startedAt: 'number', updatedAt: 'number', topics: 'number', topicsDone: 'number', total: 'number?' },
  ...{ checked: 'number', restored: 'number', perSecond: 'number', msLeft: 'number?' },
  refused: (value) => value === undefined || Number.isFinite(value),
  state: (value) => STATES.includes(value),
  problem: (value) => value === null || recordIn(JSON.stringify(value) ?? '', PROBLEM) !== undefined,
}

/** Reads a record. An instance of an earlier version did not count refused rows. */
function restoreIn(text: string): RestoreRecord | undefined {
  const record = recordIn(text, FORM)
  return record && { ...record, refused: record.refused ?? 0 }
}

/** One restore, with its counts. */
class Run {
  readonly #id: string
  readonly #request: Omit<RestoreRequest, 'names'>
  readonly #names: readonly string[]
  readonly #topics: Topics
  readonly #startedAt: number
  readonly #begin = performance.now()
  #end: number | undefined
  #state: RestoreRecord['state'] = 'running'
  #problem: RestoreRecord['problem'] = null
  #total: number | null = null
  #topicsDone = 0
  /** The counts of the finished topics. */
  #done = NOTHING_RESTORED
  /** The counts of the current topic. */
  #now = NOTHING_RESTORED

  constructor(id: string, request: Omit<RestoreRequest, 'names'>, names: readonly string[], topics: Topics) {
    this.#id = id
    this.#request = request
    this.#names = names
    this.#topics = topics
    this.#startedAt = topics.now()
  }

  record(): RestoreRecord {
    const { checked, restored, refused } = sumOf(this.#done, this.#now)
    const seconds = Math.max(0.001, ((this.#end ?? performance.now()) - this.#begin) / 1_000)
    const perSecond = checked / seconds
    const isKnown = this.#state === 'running' && this.#total !== null && perSecond > 0
    return {
      ...this.#request,
      id: this.#id,
      state: this.#state,
      startedAt: this.#startedAt,
      updatedAt: this.#topics.now(),
      topics: this.#names.length,
      topicsDone: this.#topicsDone,
      total: this.#total,
      checked,
      restored,
      refused,
      perSecond: Math.round(perSecond),
      msLeft: isKnown ? Math.round((Math.max(0, (this.#total ?? 0) - checked) / perSecond) * 1_000) : null,
      problem: this.#problem,
    }
  }

  async play(signal: AbortSignal, onError: (error: unknown) => void): Promise<void> {
    const counting = this.#count(signal).catch(onError) // the restore works without it
    try {
      for (const name of this.#names) {
        signal.throwIfAborted()
        await this.#one(name, signal)
        this.#topicsDone++
      }
      this.#state = 'done'
    } catch (thrown) {
      this.#state = signal.aborted ? 'interrupted' : 'failed'
      if (this.#state === 'failed') {
        onError(thrown)
        const { errors: _, ...problem } = problemOf(thrown)
        this.#problem = problem
      }
    }
    this.#end = performance.now()
    if (this.#state === 'done' && this.#request.messageId === null) await counting
  }

  async #one(name: string, signal: AbortSignal): Promise<void> {
    const { messageId, expired, dryRun } = this.#request
    const topic = await this.#topics.openIfThere(name)
    const result = await topic?.restore({
      ...{ expired, dryRun, signal },
      ...(messageId !== null && { ids: [messageId] }),
      onProgress: (counts) => (this.#now = counts),
    })
    this.#now = NOTHING_RESTORED
    if (result !== undefined) this.#done = sumOf(this.#done, result)
  }

  async #count(signal: AbortSignal): Promise<void> {
    if (this.#request.messageId !== null) return
    let total = 0
    for (const name of this.#names) {
      if (signal.aborted) return
      total += (await (await this.#topics.openIfThere(name))?.journalSize(this.#request.expired)) ?? 0
    }
    this.#total = total
  }
}
