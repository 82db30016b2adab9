import {
  ORDERED_ID_BYTES,
  UNGUESSABLE_ORDERED_ID_BYTES,
  UNGUESSABLE_UNORDERED_ID_BYTES,
  UNGUESSABLE_WHEEL_ID_BYTES,
  UNORDERED_ID_BYTES,
  WHEEL_ID_BYTES,
  encodeEntry,
} from '../codecs/entry.js'
import { encodeTicket, type Ticket } from '../codecs/ticket.js'
import { mayConcernOne } from '../redis/replies/server-errors.js'
import { shortfall, type Wait } from '../redis/durable/durability.js'
import type { WaitedFor } from '../store/durable-scripts.js'
import {
  ConnectionError,
  InternalError,
  InvalidArgumentError,
  RedelayedError,
  copyOf,
  toError,
  toRedelayed,
} from '../errors.js'
import { asBytesArray } from '../store/replies.js'
import {
  COLLISION,
  DUE_TOO_LARGE,
  DelayedStore,
  FIRST_ATTEMPT,
  TOO_LATE_TO_REPEAT,
  type Due,
  type Layout,
  type OffersStore,
} from '../store/delayed-store.js'
import { WheelStore } from '../store/wheel-store.js'
import type { QueueContext, QueueIdentity } from './context.js'
import { runsOf } from './runs.js'
import { TurnCollector } from '../timing/turn-collector.js'
import { warnOfTimestamp } from './warn-of-timestamp.js'

/** How often an offer whose outcome is unknown is repeated, and how often a new id is drawn. */
const MAX_ATTEMPTS = 5

/** The most entries, and bytes of entries, in one script; such a script takes about a millisecond. */
const CHUNK_ITEMS = 250
const CHUNK_BYTES = 1024 * 1024
/** How many scripts are sent before the first reply; enough to keep the server busy. */
const CHUNKS_IN_FLIGHT = 4

/** The most by which the clocks of a master and its successor may differ. */
const SKEW_MS = 1_000

/** The value of `undeliveredUntilMs` for an entry that is added at any time if it is missing. */
const EVER = Number.MAX_SAFE_INTEGER

/** The length of new ids in bytes, by layout. */
const ID_BYTES = { redisson: ORDERED_ID_BYTES, compact: UNORDERED_ID_BYTES, wheel: WHEEL_ID_BYTES }
const UNGUESSABLE_ID_BYTES = {
  redisson: UNGUESSABLE_ORDERED_ID_BYTES,
  compact: UNGUESSABLE_UNORDERED_ID_BYTES,
  wheel: UNGUESSABLE_WHEEL_ID_BYTES,
}

/** One entry on its way into the schedule. */
export interface PendingOffer {
  readonly payload: Buffer
  readonly due: Due
}

/** A call whose entry is sent at the end of this turn of the event loop. */
interface WaitingOffer {
  readonly pending: PendingOffer
  readonly resolve: (ticket: Ticket) => void
  readonly reject: (error: unknown) => void
}

interface Attempt extends PendingOffer {
  id: Buffer
  entry: Buffer
  count: number
  /**
   * After an attempt that may have been carried out: before this server time its entry cannot have been delivered, so a
   * missing entry was never added.
   */
  undeliveredUntilMs: number
  /** The error that left the outcome of an earlier attempt unknown. */
  unknown?: RedelayedError
}

/**
 * Adds entries to a schedule, each at most once however often it has to be sent: a repeated attempt carries the same id.
 * An attempt whose reply was lost is repeated only while the entry cannot have been delivered yet, by the server's clock and
 * at the moment when the script runs. After that the outcome cannot be determined, and the caller learns that it is unknown.
 */
export class Offers {
  readonly #context: QueueContext
  readonly #identity: QueueIdentity<unknown>
  readonly #store: OffersStore
  readonly #idBytes: number
  readonly #waiting = new TurnCollector<WaitingOffer>((waiting) => {
    for (const run of runsOf(waiting, ({ pending }) => 'atMs' in pending.due)) void this.#sendRun(run)
  })
  /** Whether the server is known to have the script that adds many. */
  #isScriptKnown = false

  constructor(context: QueueContext, identity: QueueIdentity<unknown>, layout: Layout, unguessable: boolean) {
    this.#context = context
    this.#identity = identity
    // errors get the queue's name from the caller
    const { commands, settings } = context
    this.#store =
      layout === 'wheel'
        ? new WheelStore(commands, identity.keys, settings)
        : new DelayedStore(commands, identity.keys, { layout, settings })
    this.#idBytes = (unguessable ? UNGUESSABLE_ID_BYTES : ID_BYTES)[layout]
  }

  /** Adds one entry, together with all others of this turn of the event loop: for many callers that is one script. */
  one(pending: PendingOffer): Promise<Ticket> {
    // tracked, so that a shutdown in this turn lets it be sent
    return this.#context.commands.trackOperation(
      () =>
        new Promise<Ticket>((resolve, reject) => {
          this.#waiting.add({ pending, resolve, reject })
        }),
    )
  }

  async #sendRun(run: readonly WaitingOffer[]): Promise<void> {
    const [first] = run
    if (first === undefined) return
    if (run.length === 1) return this.#alone(first.pending).then(first.resolve, first.reject)
    try {
      const pending = run.map((each) => each.pending)
      const results = await this.#inChunks(pending, undefined, Infinity)
      run.forEach(({ resolve, reject }, at) => {
        const result = results[at]
        if (typeof result === 'string') resolve(result)
        else reject(result ?? new InternalError('offer-result', 'there is none'))
      })
    } catch (error) {
      for (const { reject } of run) reject(copyOf(toRedelayed(error)))
    }
  }

  async #alone(pending: PendingOffer): Promise<Ticket> {
    const attempt = this.#attempt(pending, this.#context.commands.resends)
    const startedAt = performance.now()
    for (;;) {
      let result: number | Error
      try {
        result = await this.#store.offer(attempt)
      } catch (thrown) {
        result = toError(thrown)
      }
      const ticket = this.#settle(attempt, result, startedAt)
      if (typeof ticket === 'string') return ticket
      if (ticket !== undefined) throw ticket
      if (attempt.unknown !== undefined && !(await this.#limit([attempt], startedAt))) throw attempt.unknown
    }
  }

  /** Adds one entry and waits for its durability. */
  async oneDurable(pending: PendingOffer, wait: Wait): Promise<Ticket> {
    const [result] = await this.many([pending], wait)
    if (typeof result === 'string') return result
    throw result ?? new InternalError('offer-result', 'there is none')
  }

  /**
   * Adds entries; returns one ticket or error per item, in order. Entries enter the schedule in the order given, those with a date before
   * all others. Their ids increase in the order given, so that entries of one due time are delivered in it.
   */
  async many(items: readonly PendingOffer[], wait?: Wait): Promise<(Ticket | RedelayedError)[]> {
    this.#waiting.flush() // earlier offers go first
    return this.#inChunks(items, wait, CHUNKS_IN_FLIGHT)
  }

  async #inChunks(
    items: readonly PendingOffer[],
    wait: Wait | undefined,
    inFlight: number,
  ): Promise<(Ticket | RedelayedError)[]> {
    const results = new Array<Ticket | RedelayedError>(items.length)
    const ids = items.map(() => this.#newId())
    const chunks = chunksOf(items)
    const isBulk = chunks.length > inFlight
    if (isBulk && !this.#isScriptKnown) {
      // alone, so that the script is known to the server before several are under way
      const first = chunks.shift() ?? []
      await this.#chunk(items, ids, first, results, wait)
      this.#isScriptKnown = first.some((index) => typeof results[index] === 'string')
    }
    const worker = async (): Promise<void> => {
      for (let chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift()) {
        await this.#chunk(items, ids, chunk, results, wait)
      }
    }
    await Promise.all(Array.from({ length: Math.min(inFlight, chunks.length) }, worker))
    return results
  }

  async #chunk(
    items: readonly PendingOffer[],
    ids: readonly Buffer[],
    indexes: readonly number[],
    results: (Ticket | RedelayedError)[],
    wait: Wait | undefined,
  ): Promise<void> {
    const startedAt = performance.now()
    const resends = wait === undefined && this.#context.commands.resends
    let open = indexes.map((index) => {
      const item = items[index]
      if (item === undefined) throw new InternalError('offer-chunk', 'an index is out of range')
      return { index, attempt: this.#attempt(item, resends, ids[index]) }
    })
    for (let isFirst = true; open.length > 0; isFirst = false) {
      const attempts = open.map(({ attempt }) => attempt)
      const replies = await this.#send(attempts, isFirst, wait)
      open = open.filter(({ index, attempt }, position) => {
        const settled = this.#settleWaited(attempt, replies[position] ?? new Error('no reply'), startedAt, wait)
        if (settled !== undefined) results[index] = settled
        return settled === undefined
      })
      const repeated = open.map(({ attempt }) => attempt).filter(({ unknown }) => unknown !== undefined)
      if (repeated.length > 0 && !(await this.#limit(repeated, startedAt, wait?.timeoutMs))) {
        for (const { index, attempt } of open) if (attempt.unknown !== undefined) results[index] = attempt.unknown
        open = open.filter(({ attempt }) => attempt.unknown === undefined)
      }
    }
  }

  /** Sends the attempts; returns the script's reply for each. First attempts share a script, which costs a fraction. */
  #send(
    attempts: readonly Attempt[],
    isFirst: boolean,
    wait: Wait | undefined,
  ): Promise<(number | WaitedFor<number> | Error)[]> {
    if (wait !== undefined) {
      const sender = this.#context.durable.sender(this.#identity.keys.timeouts, wait)
      return this.#store.offerEachDurably(sender, attempts)
    }
    return isFirst ? this.#sendTogether(attempts) : this.#store.offerEach(attempts)
  }

  /** Sends the attempts in one script, which adds all or none. After an error that one entry may have caused, each is sent alone. */
  async #sendTogether(attempts: readonly Attempt[]): Promise<(number | Error)[]> {
    try {
      return await this.#store.offerTogether(attempts)
    } catch (thrown) {
      const error = toError(thrown)
      if (attempts.length > 1 && mayConcernOne(error)) {
        // the script may have added them: an entry that is there is not added again
        for (const attempt of attempts) attempt.undeliveredUntilMs = EVER
        return this.#store.offerEach(attempts)
      }
      return attempts.map(() => (error instanceof RedelayedError ? copyOf(error) : error))
    }
  }

  #attempt({ payload, due }: PendingOffer, resends: boolean, id = this.#newId()): Attempt {
    if ('delayMs' in due) warnOfTimestamp(this.#context, this.#identity.name, due.delayMs)
    // a client that resends does so at once, and does not report it
    const undeliveredUntilMs = resends ? EVER : FIRST_ATTEMPT
    return { payload, due, id, entry: encodeEntry(id, payload), count: 1, undeliveredUntilMs }
  }

  #newId(): Buffer {
    if (this.#context.settings.entryFormat === 'dLc0') return this.#context.ids.nextOld()
    return this.#context.ids.next(this.#idBytes)
  }

  /** As `#settle`; an accepted entry must also have reached its durability. */
  #settleWaited(
    attempt: Attempt,
    result: number | WaitedFor<number> | Error,
    startedAt: number,
    wait: Wait | undefined,
  ): Ticket | RedelayedError | undefined {
    if (wait === undefined || typeof result === 'number' || result instanceof Error) {
      return this.#settle(attempt, result as number | Error, startedAt)
    }
    const settled = this.#settle(attempt, result.reply, startedAt)
    if (typeof settled !== 'string') return settled
    return shortfall(settled, wait, result) ?? settled
  }

  /** Returns a ticket, a final error, or `undefined` if the entry has to be sent again. */
  #settle(attempt: Attempt, result: number | Error, startedAt: number): Ticket | RedelayedError | undefined {
    if (result instanceof Error) return this.#onError(attempt, result, startedAt)
    if (result === DUE_TOO_LARGE) {
      const delay = 'delayMs' in attempt.due ? attempt.due.delayMs : attempt.due.atMs
      return new InvalidArgumentError('delay', 'one whose due time is at most 2^53-1 ms', delay)
    }
    if (result === TOO_LATE_TO_REPEAT) {
      return attempt.unknown ?? new InternalError('offer-repeated', 'a first attempt came too late')
    }
    if (result === COLLISION) {
      if (attempt.count++ >= MAX_ATTEMPTS) return new InternalError('id-collision', 'every id drawn was taken')
      attempt.id = this.#newId()
      attempt.entry = encodeEntry(attempt.id, attempt.payload)
      return undefined
    }
    this.#context.transfers.onOffered(this.#identity, result)
    return encodeTicket(this.#identity.keys.destination, attempt.id, result)
  }

  #onError(attempt: Attempt, error: Error, startedAt: number): RedelayedError | undefined {
    const refused = !(error instanceof ConnectionError) || error.outcome === 'not-applied'
    // this attempt was refused, but an earlier one may have been carried out
    if (refused && attempt.unknown !== undefined) return new ConnectionError(error.message, 'unknown', { cause: error })
    if (refused) {
      return error instanceof RedelayedError ? error : new InternalError('offer-error', error.message, { cause: error })
    }
    const { due } = attempt
    const remaining = 'atMs' in due ? due.atMs - Date.now() : due.delayMs - (performance.now() - startedAt)
    if (remaining <= 0 || attempt.count++ >= MAX_ATTEMPTS) return error
    attempt.unknown = error
    return undefined
  }

  /**
   * Asks the server, whose clock decides, until when attempts that began at `startedAt` can be repeated. False without a
   * connection, because the repetition would wait as long for one again, and when the time of a call is over.
   */
  async #limit(attempts: readonly Attempt[], startedAt: number, waitMs = 0): Promise<boolean> {
    const { commands } = this.#context
    if (!commands.isInTime(startedAt, waitMs)) return false
    // another master may have answered, or may answer next, with a clock of its own
    const skew = commands.moves ? SKEW_MS : 0
    let serverStartedAt = -Infinity // without a reply only entries with a date can be repeated
    try {
      const [seconds, microseconds] = asBytesArray(await commands.call('TIME', [], { resend: 'reads', startedAt }))
      const now = Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
      serverStartedAt = now - Math.ceil(performance.now() - startedAt) - skew
    } catch (error) {
      if (error instanceof ConnectionError && error.outcome === 'not-applied') return false
    }
    if (!(await commands.maySendAgain(this.#identity.keys.timeouts, startedAt, waitMs).catch(() => false))) return false
    for (const attempt of attempts) {
      const { due } = attempt
      attempt.undeliveredUntilMs = Math.max(0, 'atMs' in due ? due.atMs - skew : serverStartedAt + due.delayMs)
    }
    return true
  }
}

/**
 * The indexes of the items, cut so that no command is too long or too large. A script takes either dates or delays, so items with
 * dates come first: cut at each change, a mixture would be one command per item.
 */
function chunksOf(items: readonly PendingOffer[]): number[][] {
  const isDate = ({ due }: PendingOffer): boolean => 'atMs' in due
  return [...chunksWhere(items, isDate), ...chunksWhere(items, (item) => !isDate(item))]
}

function chunksWhere(items: readonly PendingOffer[], belongs: (item: PendingOffer) => boolean): number[][] {
  const chunks: number[][] = []
  let bytes = 0
  items.forEach((item, index) => {
    if (!belongs(item)) return
    let chunk = chunks.at(-1)
    if (chunk === undefined || chunk.length >= CHUNK_ITEMS || bytes + item.payload.length > CHUNK_BYTES) {
      chunk = []
      chunks.push(chunk)
      bytes = 0
    }
    chunk.push(index)
    bytes += item.payload.length
  })
  return chunks
}
