import {
  ChangesLostError,
  CommandError,
  ConnectionError,
  InternalError,
  RedelayedError,
  ShutdownError,
  UnsupportedOperationError,
  toError,
} from '../../errors.js'
import type { QueueHandle } from '../../queues/queue-handle.js'
import type { Reader, ReliableChangeStore, StreamEntry } from '../../store/reliable-change-store.js'
import { AFTER_FAILURE, backoffDelay } from '../../timing/backoff.js'
import { pause, unlessAborted } from '../../timing/pause.js'
import { TurnTime } from '../../timing/turn-time.js'
import { batchOf, isOfClock } from './change-batch.js'
import { openStream, type Start } from './open-stream.js'
import type { ChangeBatch } from './change.js'

/** How long a reader waits after an empty read: doubling, from the first to the last. */
const FIRST_WAIT_MS = 10
const LAST_WAIT_MS = 250
/** The most that one script reads. */
const PAGE = { count: 100, bytes: 1024 * 1024 }
/** The most entries taken over at once: they can be of any size. */
const CLAIMED = 4
const BEGINNING = '0-0'
/** How often an idle reader checks whether its place is after all entries that ever existed. */
const CHECK_MS = 5_000
/** More than the difference between the clocks of the client and of Redis. */
const FUTURE_MS = 60_000
/** Permanent failures; some arise when the stream was removed, or the queue no longer keeps changes. */
const LASTING = [ShutdownError, ChangesLostError, UnsupportedOperationError]
/** A reply that the client does not understand can have been damaged on its way; so many in a row are a permanent failure. */
const MOST_UNEXPECTED = 5

export interface ReaderParams {
  readonly store: ReliableChangeStore
  readonly handle: Pick<QueueHandle<unknown>, 'name' | 'context' | 'withQueueName'>
  readonly start: Start
  /** The member of a group; without it the reader reads for itself. */
  readonly reader: Reader | undefined
  /** After which time a reader takes over entries that another reader of its group has not acknowledged. */
  readonly claimAfterMs: number
  readonly signal: AbortSignal
}

/** Consecutive entries that make no batch. */
interface PassedOver {
  readonly ids: string[]
  unreadable: number
  /** The error of the first unreadable entry. */
  error?: RedelayedError
}

/** Reads a queue's changes, for itself or for a group. The reader polls, because a blocking read needs a connection of its own. */
export class ChangeReader {
  readonly #params: ReaderParams
  /** The last entry that was read. */
  #after = BEGINNING
  /** The last entry that was read and whose id was not ahead of the clock: a reader without a group goes on after it if `#after` is wrong. */
  #sound = BEGINNING
  /** The queue's epoch when the place of a reader without a group was last found or checked. */
  #epoch = ''
  #failures = 0
  #unexpected = 0
  #nextClaimAt: number
  #nextCheckAt = performance.now() + CHECK_MS
  #claimFrom = BEGINNING
  /** Whether Redis may have given this reader entries that it has not seen. */
  #mayOwn = true
  /** The send time of the first request for new entries that may still arrive, because its connection broke. */
  #lateSince: number | undefined
  /** Whether the group has to be created again. */
  #isRemoved = false
  readonly #time = new TurnTime()

  constructor(params: ReaderParams) {
    this.#params = params
    this.#nextClaimAt = performance.now() + params.claimAfterMs / 2
  }

  /** Finds the place to begin; rejects if there is none. */
  async open(): Promise<void> {
    const { store, start, reader } = this.#params
    const open = () => this.#unlessEnded(openStream(store, start, reader?.group ?? ''))
    let opened = await open()
    if (isAhead(opened.id)) opened = await open() // one reply can be damaged
    if (reader === undefined) this.#moveTo(opened.id)
    this.#epoch = opened.epoch
  }

  /** Reads after `open`. A failure is reported and retried, because the entries of a group or after a position remain. */
  async *read(): AsyncGenerator<ChangeBatch, void> {
    let waitMs = FIRST_WAIT_MS
    for (;;) {
      const entries = await this.#next()
      let passed: PassedOver = { ids: [], unreadable: 0 }
      for (const entry of entries) {
        this.#assertWanted()
        const batch = await this.#batchOf(entry, passed)
        if (batch === undefined) continue
        await this.#passOver(passed)
        passed = { ids: [], unreadable: 0 }
        yield batch
      }
      await this.#passOver(passed)
      waitMs = entries.length > 0 ? FIRST_WAIT_MS : Math.min(2 * waitMs, LAST_WAIT_MS)
      if (entries.length === 0) await this.#pause(waitMs)
    }
  }

  async #next(): Promise<StreamEntry[]> {
    this.#assertWanted()
    const { reader } = this.#params
    try {
      if (this.#isRemoved) await this.#openAgain()
      const entries = reader === undefined ? await this.#forItself() : await this.#ofGroup(reader)
      this.#failures = 0
      this.#unexpected = 0
      if (entries.length === 0) await this.#checkPlace()
      return entries
    } catch (thrown) {
      await this.#onFailure(thrown)
      return []
    }
  }

  /** Opens again after the stream or the group was removed. The group does not begin at the end, which would miss the changes since. */
  async #openAgain(): Promise<void> {
    const { store, start, reader } = this.#params
    await this.#unlessEnded(openStream(store, start === 'end' ? 'start' : start, reader?.group ?? ''))
    this.#isRemoved = false
  }

  async #forItself(): Promise<StreamEntry[]> {
    const { store } = this.#params
    const entries = await this.#unlessEnded(store.readAfter(this.#after, PAGE))
    const last = entries.at(-1)?.id
    if (last === undefined) return entries
    if (!isBefore(this.#after, last)) throw new InternalError('unexpected-reply', `expected an id after ${this.#after}`)
    this.#moveTo(...entries.map(({ id }) => id))
    return entries
  }

  /** Moves past entries, the last of which is the new place. */
  #moveTo(...ids: readonly string[]): void {
    this.#after = ids.at(-1) ?? this.#after
    this.#sound = ids.findLast((id) => !isAhead(id)) ?? this.#sound
  }

  /**
   * Another program can set a group after all entries, or write an entry with a future id, which no entry follows once the stream has begun
   * anew. Then the reader begins again with the first entry if the epoch is another one, else it goes on after the last entry whose id was
   * not ahead of the clock: a damaged reply can have had the id. After a failover that lost entries, the place is after all entries too:
   * then the reader goes on after the last remaining entry.
   */
  async #checkPlace(): Promise<void> {
    const { store, reader } = this.#params
    if (performance.now() < this.#nextCheckAt && isOfClock(this.#after)) return
    this.#nextCheckAt = performance.now() + CHECK_MS
    // the next read meets a failure too
    const ask = () =>
      this.#unlessEnded(
        openStream(store, reader === undefined ? 'end' : 'start', reader?.group ?? '').catch(() => undefined),
      )
    let last = await ask()
    if (reader !== undefined || last === undefined) return
    if (isBefore(last.id, this.#after)) last = await ask() // one reply can be damaged
    if (last === undefined) return
    if (isBefore(last.id, this.#after)) {
      if (last.epoch !== this.#epoch) this.#moveTo(BEGINNING)
      else this.#moveTo(isBefore(last.id, this.#sound) ? last.id : this.#sound)
    }
    this.#epoch = last.epoch
  }

  /** Reads first the entries this reader was given before, also in a lost reply; then those another reader left; then new ones. */
  async #ofGroup(reader: Reader): Promise<StreamEntry[]> {
    const { store, claimAfterMs } = this.#params
    if (this.#mayOwn) {
      if (!(await this.#endLate())) return []
      const own = await this.#unlessEnded(store.readOwn(reader, this.#after, PAGE))
      this.#after = lastOf(own) ?? this.#after
      this.#mayOwn = own.length > 0
      if (own.length > 0) return own
    }
    if (performance.now() >= this.#nextClaimAt) {
      const { next, entries } = await this.#unlessEnded(store.claim(reader, claimAfterMs, this.#claimFrom, CLAIMED))
      this.#claimFrom = next
      if (next === BEGINNING) this.#nextClaimAt = performance.now() + claimAfterMs / 2
      if (entries.length > 0) return entries
    }
    this.#mayOwn = true // until the reply is here
    const sentAt = performance.now()
    try {
      const entries = await this.#unlessEnded(store.readNew(reader, PAGE))
      this.#mayOwn = false
      this.#after = lastOf(entries) ?? this.#after
      return entries
    } catch (thrown) {
      if (thrown instanceof ConnectionError && thrown.outcome === 'unknown') this.#lateSince ??= sentAt
      throw thrown
    }
  }

  /**
   * Makes sure that no earlier request of this reader can still arrive: the entries that such a request takes would wait for
   * `claimAfter`, and then come out of order. If the server refuses to end connections, they do. False if the server could not be reached.
   */
  async #endLate(): Promise<boolean> {
    const since = this.#lateSince
    if (since === undefined) return true
    const { commands } = this.#params.handle.context
    const askedAt = performance.now()
    const isEnded = await this.#unlessEnded(commands.maySendAgain(this.#params.store.key, since, askedAt - since))
    if (!isEnded && !commands.isInTime(askedAt)) return false
    this.#lateSince = undefined
    return true
  }

  async #batchOf(entry: StreamEntry, passed: PassedOver): Promise<ChangeBatch | undefined> {
    if (!entry.isGone) {
      const batch = await batchOf(entry, this.#time)
      if (!('error' in batch)) return batch
      passed.unreadable++
      passed.error ??= this.#params.handle.withQueueName(batch.error)
    }
    passed.ids.push(entry.id)
    return undefined
  }

  /** Reports unreadable entries and acknowledges them. There can be any number, so those of a page cost one script. */
  async #passOver({ ids, unreadable, error }: PassedOver): Promise<void> {
    const { reader, store, handle } = this.#params
    if (error !== undefined) {
      handle.context.hub.emit('quarantined', { queue: handle.name, reason: 'undecodable', count: unreadable, error })
    }
    if (reader === undefined || ids.length === 0) return
    await this.#unlessEnded(store.acknowledge(reader.group, ids)).catch((failed: unknown) => this.#onFailure(failed))
  }

  async #onFailure(thrown: unknown): Promise<void> {
    this.#assertWanted()
    this.#unexpected = thrown instanceof InternalError ? this.#unexpected + 1 : 0
    if (
      this.#unexpected === MOST_UNEXPECTED ||
      LASTING.some((type) => thrown instanceof type) ||
      !(thrown instanceof RedelayedError)
    )
      throw thrown
    if (thrown instanceof CommandError && thrown.redisCode === 'NOGROUP') {
      this.#isRemoved = true
      return
    }
    const { handle } = this.#params
    handle.context.hub.emit('error', handle.withQueueName(thrown))
    await this.#pause(backoffDelay(AFTER_FAILURE, ++this.#failures, Math.random()))
  }

  /** Awaits a reply; the signal ends the reader also while the server is silent. */
  #unlessEnded<T>(reply: Promise<T>): Promise<T> {
    return unlessAborted(reply, this.#params.signal)
  }

  async #pause(ms: number): Promise<void> {
    await pause(ms, this.#params.signal)
    this.#assertWanted()
  }

  #assertWanted(): void {
    const { signal } = this.#params
    if (signal.aborted) throw toError(signal.reason)
  }
}

/** The id of the last entry that a script can have written. */
function lastOf(entries: readonly StreamEntry[]): string | undefined {
  return entries.findLast(({ id }) => isOfClock(id))?.id
}

/** Whether an id is ahead of the clock: of an entry that another program wrote, or of a damaged reply. */
function isAhead(id: string): boolean {
  return Number.parseInt(id, 10) > Date.now() + FUTURE_MS
}

function isBefore(id: string, other: string): boolean {
  const [ms = 0n, n = 0n] = id.split('-').map(BigInt)
  const [otherMs = 0n, otherN = 0n] = other.split('-').map(BigInt)
  return ms < otherMs || (ms === otherMs && n < otherN)
}
