import {
  AddManyError,
  ConnectionError,
  DurabilityError,
  NotCompletedError,
  RedelayedError,
  type AddItem,
  type Added,
  type MessageBatch,
  type ReliableQueue,
} from '../../../src/index.js'
import { codeOf, type Ledger } from '../bench/ledger.js'
import {
  CROWD,
  EVERY_MS,
  LIMIT,
  ONCE_MS,
  POISON_LIMIT,
  scheduleName,
  type Entry,
  type Job,
  type Payload,
  type Waited,
} from './job.js'
import type { BenchQueue } from './queue.js'

const PRIORITIES = 10
/** The shares of messages whose handler always throws, whose handler takes long, and that are due long after the end. */
const POISON_SHARE = 0.05
const LONG_SHARE = 0.05
const FAR_SHARE = 0.02
/** The share of the other messages that are cancelled, and that are postponed, at any moment of their delay and some time beyond. */
const CHANGED_SHARE = 0.1
const BEYOND = 1.3
/** Of those that are asked for by their ids: the share with a deduplication, and the shares that are removed, removed and restored, and added again. */
const ONCE_SHARE = 0.5
const REMOVED_SHARE = 0.05
const RESTORED_SHARE = 0.05
const AGAIN_SHARE = 0.2
/** The share of messages that are read by their ids a moment after they were added. */
const ASKED_SHARE = 0.1
/** The share of calls that add several messages, and their number. */
const MANY_SHARE = 0.2
const MANY = 3
/** The most additions of a message under its id while it is unknown whether it was added with the requested durability. */
const ATTEMPTS = 5
const AGAIN_MS = 200
/** The share of calls that add a batch instead. */
const BATCH_SHARE = 0.15
/** The share of messages of the largest group. */
const CROWD_SHARE = 0.7
/** How long one wait for the end of a message takes, and how often it is repeated: longer than a drain in all. */
const WAIT_MS = 15_000
const WAITS = 3
/** The same of a batch, which has to be closed again if a failover has forgotten that it was closed. */
const BATCH_WAIT_MS = 5_000
const BATCH_WAITS = 9
/** A wait learns the end of its batch from an announcement or with a sweep: within this time, on a busy machine too. */
const HEARD_MS = 3_000

type Outcome = Added['outcome']

interface Item extends AddItem<Payload> {
  readonly id: string
  readonly delay: number
}

/** Adds messages of all kinds, and changes some. */
export class Producer {
  readonly #queue: BenchQueue
  readonly #ledger: Ledger<Entry>
  readonly #job: Job
  readonly #underWay = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #next: number

  constructor(job: Job, queue: BenchQueue, ledger: Ledger<Entry>) {
    this.#job = job
    this.#queue = queue
    this.#ledger = ledger
    this.#next = job.load.from
  }

  async produce(on: boolean): Promise<void> {
    clearInterval(this.#timer)
    if (on) {
      this.#timer = setInterval(() => this.#follow(this.#messages()), this.#job.load.everyMs)
      this.#follow(this.#eachSchedule((name) => this.#begins(name)))
      return
    }
    // what was under way can begin more, such as the wait for a message that was just added
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
    await this.#eachSchedule((name) => this.#queue.removeSchedule(name))
  }

  /** Adds a schedule as at each start of a program: an existing one stays as it is. */
  #begins(name: string): Promise<unknown> {
    const options = { every: EVERY_MS, missed: 'all', deliveryLimit: LIMIT } as const
    return this.#queue.upsertSchedule(name, { poison: false, long: false }, options)
  }

  async #eachSchedule(action: (name: string) => Promise<unknown>): Promise<void> {
    const names = Array.from({ length: this.#job.load.schedules ?? 0 }, (_, index) => scheduleName(index))
    await Promise.all(names.map((name) => this.#untilDone(() => action(name))))
  }

  /** Repeats a call until it succeeds, as an application that cannot go on without it. */
  async #untilDone(action: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await action()
        return
      } catch (error) {
        if (!(error instanceof RedelayedError)) throw error
        this.#ledger.count(codeOf(error))
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    }
  }

  async burst(count: number, delay: number): Promise<void> {
    const { tenants } = this.#job.load
    const place = (): Pick<Item, 'group' | 'priority'> => (tenants === true ? { group: CROWD } : this.#drawGroup())
    const item = { delay, deliveryLimit: LIMIT, payload: { poison: false, long: false } }
    await this.#add(Array.from({ length: count }, () => this.#begin({ ...item, ...place() })))
  }

  async stop(): Promise<void> {
    await this.produce(false)
  }

  async #messages(): Promise<void> {
    if (this.#job.load.batchOf !== undefined && Math.random() < BATCH_SHARE) return this.#batch(this.#job.load.batchOf)
    const count = Math.random() < MANY_SHARE ? MANY : 1
    const items = Array.from({ length: count }, () => this.#begin(this.#draw()))
    const added = await this.#add(items)
    const { asks, changes, waits, farMs } = this.#job.load
    if (waits === true) for (const { id, delay } of added) if (delay < farMs) this.#follow(this.#waitFor(id))
    if (asks === true) await Promise.all(added.filter(() => Math.random() < ASKED_SHARE).map(({ id }) => this.#ask(id)))
    if (!changes) return
    await Promise.all(added.map(async (item) => item.delay < farMs && this.#perhapsChange(item)))
  }

  async #perhapsChange(item: Item): Promise<void> {
    const { id, delay, payload, deduplicate } = item
    const isPlain = this.#job.load.asks === true && !payload.poison
    const changes: readonly (readonly [share: number, change: () => Promise<unknown>])[] = [
      [CHANGED_SHARE, () => this.#change(id, 'cancel')],
      [CHANGED_SHARE, () => this.#change(id, 'move')],
      [isPlain ? REMOVED_SHARE : 0, () => this.#change(id, 'remove')],
      [isPlain ? RESTORED_SHARE : 0, () => this.#removeAndRestore(id)],
      [isPlain && deduplicate !== undefined ? AGAIN_SHARE : 0, () => this.#addAgain(item)],
    ]
    const dice = Math.random()
    let sum = 0
    const change = changes.find(([share]) => dice < (sum += share))?.[1]
    if (change === undefined) return
    await new Promise((resolve) => setTimeout(resolve, Math.random() * delay * BEYOND))
    await change()
  }

  /** Adds a whole batch, from its first message until it has finished. */
  async #batch(size: number): Promise<void> {
    const name = `batch ${this.#next}`
    const delay = (): number => Math.floor(Math.random() * this.#job.load.maxDelay)
    const items = Array.from({ length: size }, () => this.#begin({ ...this.#draw(), delay: delay() }))
    this.#ledger.note(['batch', name, 'opened', items.map(({ id }) => id)])
    for (let from = 0; from < size; from += MANY) await this.#add(items.slice(from, from + MANY), name)
    const batch = (this.#queue as ReliableQueue<Payload>).batch(name)
    const last = { payload: { poison: false, long: false, last: name } }
    for (let waits = 0; waits < BATCH_WAITS;) {
      try {
        // once more after each failure: closing again changes nothing
        await batch.close({ last })
        this.#ledger.note(['batch', name, 'closed'])
        const counts = await batch.waitUntilFinished({ timeout: BATCH_WAIT_MS })
        this.#ledger.note(['batch', name, 'finished', counts])
        return
      } catch (error) {
        if (error instanceof NotCompletedError) {
          waits++
          const wrong = await this.#wrongOf(batch)
          if (wrong !== undefined) this.#ledger.note(['batch', name, wrong])
        }
        await this.#failed(error)
      }
    }
  }

  /** Why a batch has not finished that was closed; `undefined` if it has messages left, or no server answers. */
  async #wrongOf(batch: MessageBatch<Payload>): Promise<'late' | 'reopened' | undefined> {
    const counts = await this.#ifAnswered(batch.counts())
    if (counts === undefined) return undefined
    if (counts === null) return 'late'
    const { state, finishedAt } = counts
    if (state === 'finished') return Date.now() - (finishedAt ?? 0) > HEARD_MS ? 'late' : undefined
    return state === 'open' ? 'reopened' : undefined
  }

  /** Waits for the end, whatever happens to the connection. */
  async #waitFor(id: string): Promise<void> {
    this.#ledger.note(['waiting', id])
    for (let waits = 0; waits < WAITS;) {
      const note = (how: Waited, result?: unknown): void => this.#ledger.note(['waited', id, how, result])
      try {
        note('completed', await this.#queue.waitUntilFinished(id, { timeout: WAIT_MS }))
        return
      } catch (error) {
        if (error instanceof NotCompletedError) {
          if (error.reason !== 'timeout') return note(error.reason)
          waits++
          note((await this.#ifAnswered(this.#queue.contains(id))) === false ? 'late' : 'open')
        }
        await this.#failed(error)
      }
    }
  }

  async #ifAnswered<T>(asked: Promise<T>): Promise<T | undefined> {
    return asked.catch((error: unknown) => {
      if (!(error instanceof RedelayedError)) throw error
      this.#ledger.count(codeOf(error))
      return undefined
    })
  }

  async #failed(error: unknown): Promise<void> {
    if (!(error instanceof RedelayedError)) throw error
    this.#ledger.count(codeOf(error))
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
  }

  #draw(): Omit<Item, 'id'> {
    const { load } = this.#job
    const dice = Math.random()
    const poison = dice < POISON_SHARE
    return {
      payload: { poison, long: Math.random() < LONG_SHARE },
      delay: dice > 1 - FAR_SHARE ? load.farMs : Math.floor(Math.random() * load.maxDelay),
      ...this.#drawGroup(),
      deliveryLimit: poison ? POISON_LIMIT : LIMIT,
      ...(load.asks === true && Math.random() < ONCE_SHARE && { deduplicate: { by: 'id', forMs: ONCE_MS } }),
    }
  }

  #drawGroup(): Pick<Item, 'group' | 'priority'> {
    const { groups, tenants } = this.#job.load
    if (tenants === true) return { group: Math.random() < CROWD_SHARE ? CROWD : `tenant ${this.#next}` }
    if (groups !== undefined) return { group: `group ${Math.floor(Math.random() * groups)}` }
    return { priority: Math.floor(Math.random() * PRIORITIES) }
  }

  /** Gives the message its number, and notes it. */
  #begin(item: Omit<Item, 'id'>): Item {
    const id = String(this.#next++)
    const { delay, deliveryLimit: limit = LIMIT, payload, group, priority } = item
    this.#ledger.note(['try', id, { at: Date.now(), delay, limit, poison: payload.poison, group, priority }])
    return { ...item, id }
  }

  /** Adds messages as an application that must not lose any; returns those that were added with the requested durability. */
  async #add(items: readonly Item[], batch?: string): Promise<Item[]> {
    const added: Item[] = []
    let open = items
    for (let attempt = 1; ; attempt++) {
      const answers = await this.#send(open, batch)
      const again: Item[] = []
      open.forEach((item, at) => {
        const outcome = this.#conclude(item, answers[at], attempt)
        if (outcome === 'added') added.push(item)
        if (outcome === 'unknown') again.push(item)
      })
      open = again
      if (open.length === 0 || attempt === ATTEMPTS) return added
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    }
  }

  /** An answer or an error for each. */
  async #send(items: readonly Item[], batch: string | undefined): Promise<(Outcome | RedelayedError)[]> {
    const { durability } = this.#job.load
    const [first] = items
    try {
      if (first === undefined || items.length > 1)
        return (await this.#queue.addMany(items, { durability, batch })).map(({ outcome }) => outcome)
      const { payload, ...options } = first
      return [(await this.#queue.add(payload, { ...options, durability, batch })).outcome]
    } catch (error) {
      if (!(error instanceof RedelayedError)) throw error
      if (!(error instanceof AddManyError)) return items.map(() => error)
      const failed = new Map(error.failures.map((failure) => [failure.index, failure.error]))
      return error.results.map((result, at) => failed.get(at) ?? (result?.outcome as Outcome))
    }
  }

  #conclude(
    { id }: Item,
    answer: Outcome | RedelayedError | undefined,
    attempt: number,
  ): 'added' | 'refused' | 'unknown' {
    if (answer instanceof RedelayedError) {
      this.#ledger.count(codeOf(answer))
      if (attempt > 1 || isUnknown(answer)) return 'unknown'
      this.#ledger.note(['no', id, answer.code])
      return 'refused'
    }
    // an earlier attempt has added it: a consumer may have done with it since
    const isThere = answer === 'kept' || answer === 'duplicate'
    if (answer === 'added' || (isThere && attempt > 1)) {
      this.#ledger.note(['ok', id, Date.now()])
      return 'added'
    }
    this.#ledger.note(['no', id, String(answer)])
    return 'refused'
  }

  async #change(id: string, how: 'cancel' | 'move' | 'remove'): Promise<boolean> {
    const later = Math.floor(Math.random() * this.#job.load.maxDelay)
    this.#ledger.note(['changing', id, how, later, Date.now()])
    const change = {
      cancel: () => this.#queue.cancel(id),
      move: () => this.#queue.reschedule(id, later),
      remove: async () => (await this.#queue.remove(id)) === 1,
    }
    return (await this.#answer(change[how], (done) => ['changed', id, done, Date.now()])) === true
  }

  /** As a program that moves messages by their bytes. */
  async #removeAndRestore(id: string): Promise<void> {
    const [raw] = (await this.#answer(() => this.#queue.getAllRaw([id]))) ?? []
    if (raw === undefined || raw === null || !(await this.#change(id, 'remove'))) return
    this.#ledger.note(['restoring', id, Date.now()])
    await this.#answer(
      async () => (await this.#queue.restoreMany([raw]))[0] === 'restored',
      (done) => ['restored', id, done, Date.now()],
    )
  }

  async #addAgain({ id, payload, ...options }: Item): Promise<void> {
    const { durability, maxDelay } = this.#job.load
    const existing = (['keep', 'replace', 'postpone'] as const)[Math.floor(Math.random() * 3)] ?? 'keep'
    const delay = Math.floor(Math.random() * maxDelay)
    this.#ledger.note(['adding again', id, existing, delay, Date.now()])
    await this.#answer(
      async () =>
        (await this.#queue.add({ ...payload, revision: 1 }, { ...options, id, delay, existing, durability })).outcome,
      (outcome) => ['added again', id, outcome, Date.now()],
    )
  }

  /** Asks in one of the ways, at once for an id that no message has. */
  async #ask(id: string): Promise<void> {
    const ids = [`${id} never`, id]
    const isInPlace = (infos: readonly ({ readonly id: string } | null)[]): boolean =>
      infos[0] === null && infos[1]?.id === id
    const ways = [
      async () => (await this.#queue.get(id))?.id === id,
      async () => isInPlace(await this.#queue.getAll(ids)),
      async () => isInPlace(await this.#queue.getAllRaw(ids)),
      async () => (await this.#queue.containsMany(ids)) === 1,
    ]
    const way = ways[Math.floor(Math.random() * ways.length)] as (typeof ways)[number]
    this.#ledger.note(['asking', id, Date.now()])
    await this.#answer(way, (found) => ['asked', id, found, Date.now()])
  }

  /** Notes the answer of a call; without one, what it did stays unknown. */
  async #answer<T>(call: () => Promise<T>, entryOf?: (answer: T) => Entry): Promise<T | undefined> {
    try {
      const answer = await call()
      if (entryOf !== undefined) this.#ledger.note(entryOf(answer))
      return answer
    } catch (error) {
      this.#ledger.count(codeOf(error))
      return undefined
    }
  }

  #follow(promise: Promise<void>): void {
    const followed = promise.finally(() => this.#underWay.delete(followed))
    this.#underWay.add(followed)
  }
}

/** Whether the message may be there, or is there without the requested durability. */
function isUnknown(error: RedelayedError): boolean {
  return error instanceof DurabilityError || (error instanceof ConnectionError && error.outcome === 'unknown')
}
