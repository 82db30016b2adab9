import {
  RedelayedError,
  type MessageInfo,
  type MessageState,
  type ReliableMessage,
  type ReliableQueue,
  type ReliableQueueConfig,
  type ReliableQueueCounts,
  type ShardedReliableQueue,
} from 'redelayed'
import { JournalError } from '../errors.js'
import { addEach } from '../journal/add-each.js'
import { NOTHING_RESTORED, sumOf, type RestoreResult } from '../journal/restore-result.js'
import { assertSize, type Existing, type Pushed, type ReadyMessage } from './new-message.js'
import { BODY, jsonBytes, ownRetryDelays, shownBody, type ShownBody } from './body.js'
import { TopicError } from './errors.js'
import type { DeadLetterJournal, TopicJournal } from './topic-journal.js'
import { leaseText, type Lease } from './lease.js'
import { changesOf, queueSettingsOf, retryDelayOf, type TopicSettings } from './topic-settings.js'

export type TopicQueue = ReliableQueue<Uint8Array> | ShardedReliableQueue<Uint8Array>

/** A stored message. */
export interface StoredMessage extends ShownBody {
  readonly id: string
  readonly group?: string
  readonly state: MessageState | 'dead' | 'handled' | 'removed' | 'expired' | 'moved' | 'accepted' | 'refused'
  /** Epoch milliseconds: when the message becomes, became, or becomes again visible. */
  readonly dueAt: number
  readonly priority: number
  /** The number of deliveries so far. */
  readonly attempts: number
  readonly expiresAt: number | null
  readonly failures: { readonly attempt: number; readonly at: number; readonly reason: string }[]
  /** The changes of the message, if there is a journal. */
  readonly flow?: {
    readonly change: string
    readonly at: number
    readonly attempt: number | null
    readonly error: string | null
  }[]
}

/** A message that a consumer has. */
export interface ReceivedMessage extends ShownBody {
  readonly id: string
  readonly group?: string
  /** The text to acknowledge the message with. */
  readonly lease: string
  /** The number of this delivery, from 1. */
  readonly attempt: number
  readonly priority: number
  /** The due time, epoch milliseconds. */
  readonly dueAt: number
  /** Until this time no other consumer gets the message, epoch milliseconds. */
  readonly leasedUntil: number
}

export interface Receive {
  readonly max: number
  /** The receive takes no further message once they have this many bytes together. */
  readonly maxBytes: number
  /** Milliseconds; 0 does not wait. */
  readonly wait: number
  readonly visibilityTimeout?: number | undefined
  readonly signal: AbortSignal
}

export interface Restore {
  /** Also messages that expired; they no longer expire. */
  readonly expired: boolean
  /** Default: all. */
  readonly ids?: readonly string[]
  /** Only counts what would be put back. */
  readonly dryRun?: boolean
  readonly signal?: AbortSignal
  readonly onProgress?: (counts: RestoreResult) => void
}

export interface MessageChange {
  readonly delay?: number | undefined
  /** Epoch milliseconds. */
  readonly dueAt?: number | undefined
  readonly priority?: number | undefined
  readonly body?: { readonly payload: Buffer } | undefined
}

export interface NegativeAnswer {
  /** Default: the delay of the message, or of its topic, for this delivery. */
  readonly delay?: number | undefined
  readonly reject?: boolean | undefined
  readonly countAttempt?: boolean | undefined
  readonly error?: string | undefined
}

/** Received messages; `giveBack` returns them when the client does not get the answer. */
export interface Received {
  readonly messages: readonly ReceivedMessage[]
  /** The greatest lateness of the messages, in milliseconds. */
  readonly latenessMs: number
  giveBack(): Promise<void>
}

/** A reliable queue with the rules of the service. */
export class Topic {
  readonly name: string
  readonly settings: TopicSettings
  readonly queue: TopicQueue
  readonly journal: TopicJournal | undefined
  readonly #deadLetterJournals: readonly DeadLetterJournal[]

  constructor(
    name: string,
    settings: TopicSettings,
    queue: TopicQueue,
    journal?: TopicJournal,
    deadLetterJournals: readonly DeadLetterJournal[] = [],
  ) {
    this.name = name
    this.settings = settings
    this.queue = queue
    this.journal = journal
    this.#deadLetterJournals = deadLetterJournals
  }

  /** Its queues: one, or the shards. */
  get shards(): readonly ReliableQueue<Uint8Array>[] {
    return 'shards' in this.queue ? this.queue.shards : [this.queue]
  }

  /**
   * Writes the settings to the queues. `enable`: the topic is new, and an earlier one may have been paused. `removes`: also removes those
   * that the topic does not have; a program may have set them, and without `keepCompleted` a queue forgets its results.
   */
  async configure({ enable, removes }: { readonly enable: boolean; readonly removes: boolean }): Promise<void> {
    const config = Object.entries(queueSettingsOf(this.settings)).filter(([, value]) => removes || value !== null)
    const changes = this.journal === undefined && { changes: changesOf(this.settings) }
    await this.queue.setConfig({ ...(Object.fromEntries(config) as ReliableQueueConfig), ...changes })
    if (enable) await Promise.all([this.resume('push'), this.resume('receive')])
  }

  /** Removes its settings from the queues, or a later topic of this name would have them. */
  async removeSettings(): Promise<void> {
    const own = Object.entries(queueSettingsOf(this.settings)).filter(([, value]) => value !== null)
    await this.queue.setConfig(Object.fromEntries(own.map(([name]) => [name, null])))
  }

  /** Resolves with the outcome of each message, or why it was not added, in order. */
  async add(messages: readonly ReadyMessage[]): Promise<(Pushed | RedelayedError)[]> {
    const [first] = messages
    if (first === undefined) return []
    if (messages.every(({ existing }) => existing === first.existing)) return this.#addAlike(messages, first.existing)
    const results = new Array<Pushed | RedelayedError>(messages.length)
    const kinds: readonly Existing[] = ['keep', 'replace', 'postpone']
    await Promise.all(
      kinds.map(async (existing) => {
        const indexes = messages.flatMap((message, at) => (message.existing === existing ? [at] : []))
        if (indexes.length === 0) return
        const own = indexes.flatMap((at) => messages[at] ?? [])
        const added = await this.#addAlike(own, existing)
        indexes.forEach((at, position) => (results[at] = added[position] as Pushed | RedelayedError))
      }),
    )
    return results
  }

  async #addAlike(messages: readonly ReadyMessage[], existing: Existing): Promise<(Pushed | RedelayedError)[]> {
    const added = await this.#send(messages, existing)
    return added.map((result, at) => {
      if (result instanceof RedelayedError) return result
      // the duplicate is this message, added before with the same idempotency key
      const outcome = result.outcome === 'duplicate' ? 'added' : result.outcome
      const message = messages[at]
      // the journal knows exactly when a delay ends
      const known = message?.item.date === undefined ? result.dueAt : undefined
      return { id: result.id, outcome, ...(outcome !== 'kept' && { dueAt: known ?? message?.dueAt ?? 0 }) }
    })
  }

  async #send(
    messages: readonly ReadyMessage[],
    existing: Existing,
  ): Promise<readonly (RedelayedError | { id: string; outcome: Pushed['outcome'] | 'duplicate'; dueAt?: number })[]> {
    if (this.journal !== undefined) {
      if (existing !== 'keep')
        throw new TopicError('ERR_NOT_WITH_JOURNAL', `existing: only "keep" works with a journal`)
      const { delay, timeToLive } = this.settings
      // the journal reads the defaults of the queue only at each sweep
      const life = timeToLive === null ? {} : { timeToLive }
      return this.journal.addMany(
        messages.map(({ item, isDrawn = false }) => ({
          ...(item.date === undefined && { delay }),
          ...life,
          ...item,
          isDrawn,
        })),
      )
    }
    return addEach(
      this.queue,
      messages.map(({ item }) => item),
      existing,
    )
  }

  /** The stored message or dead letter, or else the journal's record of it. */
  async find(id: string): Promise<StoredMessage | undefined> {
    return (await this.inRedis(id)) ?? (await this.remembered(id))
  }

  /** The same, with its history. @throws TopicError the message does not exist */
  async get(id: string): Promise<StoredMessage> {
    const found = await this.find(id)
    if (found === undefined) throw notFound()
    if (this.journal === undefined) return found
    // Redis knows the message, also while SQL is away
    const flow = await this.journal.flow(id).catch((thrown: unknown) => {
      if (thrown instanceof JournalError) return undefined
      throw thrown
    })
    return { ...found, ...(flow && { flow }) }
  }

  /** The message in the queue or among the dead letters. */
  async inRedis(id: string): Promise<StoredMessage | undefined> {
    return (await this.#sizedInRedis(id))?.message
  }

  async #sizedInRedis(id: string): Promise<Sized | undefined> {
    if (!isPossible(id)) return undefined
    const info = await this.queue.get(id)
    if (info !== null) return { message: shown(info), bytes: bytesOf(info) }
    const dead = await this.queue.deadLetters.get(id)
    return dead === null ? undefined : { message: { ...shown(dead), state: 'dead' }, bytes: bytesOf(dead) }
  }

  /** The message according to the journal, also a final one. @throws JournalError SQL does not answer */
  async remembered(id: string): Promise<StoredMessage | undefined> {
    return (await this.#sizedInJournal(id))?.message
  }

  async #sizedInJournal(id: string): Promise<Sized | undefined> {
    if (!isPossible(id)) return undefined
    const row = await this.journal?.get(id)
    if (row === null || row === undefined) return undefined
    const { state, dueAt, priority, group, attempts, expiresAt, payload } = row
    const [failures, headers] = [row.failures ?? [], row.headers ?? {}]
    const message: StoredMessage = {
      ...{ id, state: state === 'open' ? 'accepted' : state, dueAt, priority, attempts, expiresAt: expiresAt ?? null },
      failures: failures.map(failureOf),
      ...(group !== undefined && { group }),
      ...shownBody(payload, headers),
    }
    return { message, bytes: bytesOf({ id, payload, headers, failures }) }
  }

  /** The ids after `after` of the topic's messages with this business key, also of final ones. @throws JournalError SQL does not answer */
  async idsWithBizKey(bizKey: string, after: string | null, most: number): Promise<string[]> {
    return (await this.journal?.idsWithBizKey(bizKey, after, most)) ?? []
  }

  /** @throws TopicError the message does not exist, or a consumer has it */
  async change(id: string, { delay, dueAt, priority, body }: MessageChange, maxBytes: number): Promise<StoredMessage> {
    assertPossible(id)
    const before = await this.queue.get(id)
    if (before === null) throw notFound()
    if (before.state === 'inFlight') throw inFlight()
    if (body !== undefined) {
      if (before.headers[BODY] === 'bytes') throw bytesStay()
      assertSize(body.payload, maxBytes)
      if (!(await this.queue.updatePayload(id, body.payload))) throw await this.#whyNot(id)
    }
    if (delay !== undefined || dueAt !== undefined || priority !== undefined) {
      const when = delay ?? (dueAt === undefined ? undefined : new Date(dueAt))
      const isDone = await this.queue.reschedule(id, when, priority === undefined ? {} : { priority })
      if (!isDone) throw await this.#whyNot(id)
    }
    const after = await this.queue.get(id)
    if (after === null) throw notFound()
    return shown(after)
  }

  /** @throws TopicError the message does not exist, or a consumer has it and `force` is false */
  async remove(id: string, force: boolean): Promise<void> {
    assertPossible(id)
    const isDone = await (this.journal ?? this.queue).cancel(id)
    if (isDone) return
    if (!force) throw await this.#whyNot(id)
    if ((await this.queue.remove(id)) === 0) throw notFound()
  }

  async #whyNot(id: string): Promise<TopicError> {
    return (await this.queue.contains(id)) ? inFlight() : notFound()
  }

  /** Resolves without messages when the signal aborts. */
  async receive({ max, maxBytes, wait, visibilityTimeout, signal }: Receive): Promise<Received> {
    const how = { count: max, maxBytes, visibilityTimeout, signal, ...(wait > 0 && { timeout: wait }) }
    const messages = await this.queue.pollMany(how).catch((thrown: unknown) => {
      if (signal.aborted && thrown === signal.reason) return []
      throw thrown
    })
    return {
      messages: messages.map((message) => this.#received(message)),
      latenessMs: Math.max(0, ...messages.map(({ polledAt, visibleAt }) => polledAt - visibleAt)),
      giveBack: async () => {
        if (messages.length > 0) await this.queue.negativeAcknowledge(messages, { countAttempt: false })
      },
    }
  }

  #received(message: ReliableMessage<Uint8Array>): ReceivedMessage {
    const { id, attempt, priority, group, visibleAt, visibleUntil, receipt, payload, headers } = message
    const own = ownRetryDelays(headers)
    const retryDelay = own && retryDelayOf({ retryDelays: own }, attempt)
    const lease = leaseText({ topic: this.name, attempt, receipt, retryDelay })
    const times = { dueAt: visibleAt, leasedUntil: visibleUntil }
    return { id, lease, attempt, priority, ...(group !== null && { group }), ...times, ...shownBody(payload, headers) }
  }

  acknowledge(receipts: readonly string[]): Promise<boolean[]> {
    return this.queue.acknowledge(...receipts)
  }

  async negativeAcknowledge(lease: Omit<Lease, 'topic'>, answer: NegativeAnswer): Promise<boolean> {
    const { receipt, attempt, retryDelay = retryDelayOf(this.settings, attempt) } = lease
    const { delay = retryDelay, reject = false, countAttempt = true, error } = answer
    const options = { delay, reject, countAttempt, ...(error !== undefined && { error: new Refusal(error) }) }
    const [isDone = false] = await this.queue.negativeAcknowledge([receipt], options)
    return isDone
  }

  extend(receipts: readonly string[], visibilityTimeout?: number): Promise<boolean[]> {
    return this.queue.extend(receipts, visibilityTimeout)
  }

  counts(): Promise<ReliableQueueCounts> {
    return this.queue.counts()
  }

  pause(what: 'push' | 'receive'): Promise<void> {
    return this.queue.disableOperation(what === 'push' ? 'add' : 'poll')
  }

  resume(what: 'push' | 'receive'): Promise<void> {
    return this.queue.enableOperation(what === 'push' ? 'add' : 'poll')
  }

  /** Puts back messages and dead letters that the journal has and Redis lacks. Without a journal it does nothing. */
  async restore({ onProgress, ...what }: Restore): Promise<RestoreResult> {
    let total = NOTHING_RESTORED
    for (const journal of this.#journals)
      total = sumOf(total, await journal.restore({ ...what, onProgress: (own) => onProgress?.(sumOf(total, own)) }))
    return total
  }

  /** The number of messages that a restore would compare with Redis. */
  async journalSize(expired: boolean): Promise<number> {
    const sizes = await Promise.all(this.#journals.map((journal) => journal.size({ expired })))
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  /** Writes the changes of the messages and the dead letters into SQL. */
  async drain(): Promise<void> {
    await Promise.all(this.#journals.map((journal) => journal.drain()))
  }

  get #journals(): readonly DeadLetterJournal[] {
    return this.journal === undefined ? [] : [this.journal, ...this.#deadLetterJournals]
  }

  /** Removes all messages, or all dead letters, or those with the given ids; resolves with their number. */
  async purge(what: 'messages' | 'dead-letters', ids?: readonly string[]): Promise<number> {
    if (ids !== undefined) return this.#purgeSome(what, [...new Set(ids)].filter(isPossible))
    const { total, dead } = await this.queue.counts()
    await (what === 'messages' ? this.queue : this.queue.deadLetters).clear()
    // only now: an addition under way has a newer change
    if (what === 'messages') await this.journal?.dropAccepted()
    return what === 'messages' ? total : dead
  }

  async #purgeSome(what: 'messages' | 'dead-letters', ids: readonly string[]): Promise<number> {
    if (ids.length === 0) return 0
    if (what === 'dead-letters') {
      const gone = await Promise.all(this.shards.map(({ deadLetters }) => deadLetters.remove(...ids)))
      return gone.reduce((sum, each) => sum + each, 0)
    }
    return this.removeEach(ids, true)
  }

  /** Removes the messages that exist, without `force` only those that no consumer has. Resolves with their number. */
  async removeEach(ids: readonly string[], force: boolean): Promise<number> {
    let gone = 0
    for (let from = 0; from < ids.length; from += PURGED_AT_ONCE) {
      const some = ids.slice(from, from + PURGED_AT_ONCE).map(async (id) => {
        await this.remove(id, force).then(
          () => gone++,
          (thrown: unknown) => {
            if (!(thrown instanceof TopicError && STAYS.includes(thrown.code))) throw thrown
          },
        )
      })
      await Promise.all(some)
    }
    return gone
  }

  /** Moves dead letters back: those with the given ids, or the oldest. Resolves with their number. */
  async redrive(count: number, ids?: readonly string[]): Promise<number> {
    if (ids === undefined) return this.queue.redrive(count)
    const own = ids.filter(isPossible)
    if (own.length === 0) return 0
    const moved = await Promise.all(this.shards.map((shard) => shard.deadLetters.move({ to: shard.name, ids: own })))
    return moved.reduce((sum, each) => sum + each, 0)
  }

  /**
   * A page of the messages with a business key, in the order of their ids after `after`, as Redis or else the journal has them. `wants`
   * selects messages.
   *
   * @throws JournalError SQL does not answer
   */
  async listWithBizKey<T>(
    { bizKey, after, limit }: { readonly bizKey: string; readonly after: string | null; readonly limit: number },
    wants: (message: StoredMessage) => boolean,
    shownAs: (message: StoredMessage) => T,
  ): Promise<{ messages: T[]; next: string | undefined }> {
    const messages: T[] = []
    let [last, bytes] = [after, 0]
    const ids = await this.idsWithBizKey(bizKey, after, limit)
    for (const id of ids) {
      if (bytes >= PAGE_BYTES) return { messages, next: last ?? undefined }
      last = id
      const found = (await this.#sizedInRedis(id)) ?? (await this.#sizedInJournal(id))
      if (found === undefined || !wants(found.message)) continue
      bytes += found.bytes
      messages.push(shownAs(found.message))
    }
    return { messages, next: ids.length < limit ? undefined : (last ?? undefined) }
  }

  /** A page of the messages or dead letters, after the first `skip` of a shard: as many as fit, and at least one. `shownAs` maps each. */
  async list<T>(
    { state, isDead, shard: first, skip: begin, limit }: ListPage,
    shownAs: (message: StoredMessage) => T,
  ): Promise<{ messages: T[]; next: { shard: number; skip: number } | undefined }> {
    const messages: T[] = []
    let [skip, bytes] = [begin, 0]
    if (begin > MOST_PASSED)
      throw new TopicError('ERR_CURSOR', `a listing can skip at most ${MOST_PASSED} messages of a shard`)
    for (let shard = first; shard < this.shards.length; shard++, skip = 0) {
      const queue = this.shards[shard] as ReliableQueue<Uint8Array>
      const listed = (isDead ? queue.deadLetters : queue).listAll({
        ...(state && { state }),
        ...{ skip, pageSize: Math.min(1_000, limit + 1) },
      })
      for await (const info of listed) {
        if (messages.length === limit || bytes >= PAGE_BYTES) return { messages, next: this.#placeAt(shard, skip) }
        skip++
        bytes += bytesOf(info)
        messages.push(shownAs(isDead ? { ...shown(info), state: 'dead' } : shown(info)))
      }
    }
    return { messages, next: undefined }
  }

  /** Where the next page begins: a place too far into a shard is skipped, for the next shard or the end. */
  #placeAt(shard: number, skip: number): { shard: number; skip: number } | undefined {
    if (skip <= MOST_PASSED) return { shard, skip }
    return shard + 1 < this.shards.length ? { shard: shard + 1, skip: 0 } : undefined
  }
}

const PURGED_AT_ONCE = 50
/** The errors after which a message is left and the others are removed. */
const STAYS: readonly string[] = ['ERR_MESSAGE_NOT_FOUND', 'ERR_MESSAGE_IN_FLIGHT']
/** The most messages of a shard before the place of a cursor. */
const MOST_PASSED = 1_000_000
/** A page takes no further message once they have this many bytes together. */
const PAGE_BYTES = 8 * 1_048_576

/** About the bytes of a message in an answer. */
function bytesOf({
  id,
  payload,
  headers,
  failures,
}: Pick<MessageInfo<Uint8Array>, 'id' | 'payload' | 'headers'> & {
  readonly failures: readonly { readonly reason: string }[]
}): number {
  let bytes = payload.byteLength + id.length
  for (const [name, value] of Object.entries(headers)) bytes += name.length + value.length
  for (const { reason } of failures) bytes += reason.length
  return bytes
}

interface Sized {
  readonly message: StoredMessage
  /** About its bytes in an answer. */
  readonly bytes: number
}

export interface ListPage {
  readonly state?: MessageState | undefined
  readonly isDead: boolean
  readonly shard: number
  readonly skip: number
  readonly limit: number
}

/** The new body of a change of a message. */
export function changedBody(body: unknown): { payload: Buffer } {
  return { payload: jsonBytes(body) }
}

function shown(info: MessageInfo<Uint8Array>): StoredMessage {
  const { id, state, visibleAt, priority, group, attempts, expiresAt, failures, payload, headers } = info
  return {
    ...{ id, state, dueAt: visibleAt, priority, attempts, expiresAt },
    ...(group !== undefined && { group }),
    failures: failures.map(failureOf),
    ...shownBody(payload, headers),
  }
}

function failureOf({
  attempt,
  at,
  reason,
}: {
  attempt: number
  at: Date
  reason: string
}): StoredMessage['failures'][number] {
  return { attempt, at: at.getTime(), reason }
}

/** An error of a consumer: the history shows only its text. */
class Refusal extends Error {
  override name = 'Refused'
}

/** An id has 512 bytes at most, and a dead letter's may have a suffix. */
const MAX_ID_BYTES = 576

function isPossible(id: string): boolean {
  return id.isWellFormed() && Buffer.byteLength(id) <= MAX_ID_BYTES
}

/** Refuses ids that no message can have. */
function assertPossible(id: string): void {
  if (!isPossible(id)) throw notFound()
}

function notFound(): TopicError {
  return new TopicError('ERR_MESSAGE_NOT_FOUND', 'the topic has no message with this id')
}

function bytesStay(): TopicError {
  const way = 'push it again under its id with the existing "replace"'
  return new TopicError('ERR_MESSAGE_HAS_BYTES', `body: the message has bytes; ${way}`)
}

function inFlight(): TopicError {
  return new TopicError('ERR_MESSAGE_IN_FLIGHT', 'a consumer has the message')
}
