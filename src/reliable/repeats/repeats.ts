import {
  ChangesBehindError,
  DecodeError,
  QueueFullError,
  RedelayedError,
  ShutdownError,
  UnsupportedOperationError,
  failureOf,
  isOfShutdown,
  toError,
} from '../../errors.js'
import { PRIORITIES } from '../../keys.js'
import type { QueueHandle } from '../../queues/queue-handle.js'
import type { RepeatRecord } from '../../store/reliable-scripts.js'
import type { ReliableStore } from '../../store/reliable-store.js'
import { mostRepeatBytes } from '../../store/repeat-store.js'
import type { QueueRegistry } from '../../scheduler/queue-registry.js'
import type { Poller } from '../poller.js'
import { encodeHeaders, writeRecord } from '../record.js'
import { readRepeat, tickId, writeState, type RepeatDefinition, type RepeatState } from './repeat-definition.js'
import { CatchUp, MOST_MISSED } from './catch-up.js'
import { nextTickOf, type NextTick } from './ticks.js'
import { MOST_MS, repeatTurns } from './turns.js'

/** The most missed ticks that get messages with one script, and the most bytes of these messages after the first. */
const MOST_TICKS = 200
const MOST_BYTES = 1024 * 1024
/** How long the scripts postpone a repeat without room or with an unreadable state; more than the clocks of servers differ. */
const LATEST_MS = 60_000
const NOTHING = Buffer.alloc(0)
/** The most repeats remembered as reported: other programs can write any number of names. */
const MOST_NAMES = 1_000

/** One tick and when its message expires. */
interface Tick {
  readonly at: number
  readonly expiresAt: number | null
}

/** The due ticks of a repeat. */
interface DueTicks {
  readonly ticks: readonly Tick[]
  /** Whether some missed ticks get no message. */
  readonly skipped: boolean
}

/** Changes the repeats of a queue: of all processes that try the same change, one succeeds. */
export class Repeats {
  readonly #handle: QueueHandle<unknown>
  readonly #store: ReliableStore
  readonly #polls: Pick<QueueRegistry<Poller>, 'isClosed'>
  /** The names of repeats that this process cannot compute; each is reported once. */
  readonly #reported = new Set<string>()
  /** The names of the repeats whose next messages this process is preparing. */
  readonly #underway = new Set<string>()
  /** The names of the repeats that skipped ticks, until none is missed any more. */
  readonly #skipping = new Set<string>()
  readonly #catchUp = new CatchUp(() => performance.now())

  constructor(handle: QueueHandle<unknown>, store: ReliableStore, polls: Pick<QueueRegistry<Poller>, 'isClosed'>) {
    this.#handle = handle
    this.#store = store
    this.#polls = polls
  }

  /** Begins a repeat, or changes it from `known` on. False when another process changed it meanwhile, or `now` is wrong. */
  async begin(name: string, definition: RepeatDefinition, known: Buffer | null, now: number): Promise<boolean> {
    const first = nextTickOf(definition)(now)
    // a repeat without further ticks is stored too, so that the same call again changes nothing
    const state = { tick: first ?? now, definition }
    const result = await this.#change(Buffer.from(name), {
      computedAt: now,
      known: known ?? NOTHING,
      value: writeState(state),
      definition,
      ticks: first === null ? [] : [tickOf(definition, first)],
      at: first,
      withdrawn: known === null ? NOTHING : pendingOf(name, known, now),
    })
    if (result < 0) throw new QueueFullError()
    return result === 1
  }

  /**
   * Begins a repeat after the tick `last`: the next poll prepares what has been missed since then. False when another process began it
   * meanwhile, or `now` is wrong.
   */
  async resume(name: string, definition: RepeatDefinition, last: number, now: number): Promise<boolean> {
    const value = writeState({ tick: last, definition })
    const at = nextTickOf(definition)(last)
    const change = { computedAt: now, known: NOTHING, value, definition, ticks: [], at }
    return (await this.#change(Buffer.from(name), change)) === 1
  }

  /**
   * Whether the queue will prepare the next message of a repeat in time. False if the time of its next tick was deleted, or comes from a
   * clock that was set back.
   */
  async isTicking(name: string, { tick, definition }: RepeatState, now: number): Promise<boolean> {
    const next = nextTickOf(definition)(now)
    if (next === null) return true
    const latest = Math.max(next, now + LATEST_MS)
    const at = tick <= latest ? await this.#store.repeats.tickOf(name) : null
    return at !== null && at <= latest
  }

  /** Ends a repeat; the message of a tick to come is removed. False when another process changed it meanwhile, or `now` is wrong. */
  async end(name: string, known: Buffer, now: number): Promise<boolean> {
    const withdrawn = pendingOf(name, known, now)
    const change = { computedAt: now, known, value: NOTHING, definition: undefined, ticks: [], at: null, withdrawn }
    return (await this.#change(Buffer.from(name), change)) === 1
  }

  /** Prepares the next messages of repeats whose tick has come. Never rejects. */
  async advance(due: readonly RepeatRecord[], now: number): Promise<void> {
    await Promise.all(due.map((each) => this.#advanceOnce(each, now)))
  }

  /** Advances one repeat; if that takes longer than a second, the next poll asks again. */
  async #advanceOnce(record: RepeatRecord, now: number): Promise<void> {
    const { name } = record
    if (this.#underway.has(name)) return
    this.#underway.add(name)
    try {
      await this.#advance(record, now)
    } catch (thrown) {
      this.#report(name, thrown)
    } finally {
      this.#underway.delete(name)
    }
  }

  async #advance(record: RepeatRecord, now: number): Promise<void> {
    const { name, key, value: known } = record
    if (known === null) {
      const most = mostRepeatBytes(this.#handle.context.settings.maxPayloadBytes)
      this.#quarantined(name, new DecodeError('repeat', `more than ${most} bytes`))
      return
    }
    const read = await this.#read(name, key, known, now)
    if (read === undefined) return
    const { definition, skipped } = read
    const missedOf = (some: readonly Tick[]): number => some.filter(({ at }) => at <= now).length
    for (let { ticks } = read; ;) {
      const last = ticks.at(-1)
      const value = writeState({ tick: last?.at ?? read.tick, definition })
      const change = { computedAt: now, known, value, definition, ticks, at: last?.at ?? null }
      const result = await this.#change(key, change).catch((thrown: unknown) => {
        if (thrown instanceof ChangesBehindError) this.#catchUp.giveBack(missedOf(ticks))
        throw thrown
      })
      if (result === 1) this.#noteSkipped(name, skipped)
      // another process changed the schedule, or the time was wrong: then the next poll, a second later, computes the ticks again
      if (result === 0) this.#catchUp.giveBack(missedOf(ticks))
      if (result >= 0) return
      const room = -1 - result
      const ids = ticks.slice(room).map(({ at }) => tickId(name, at))
      this.#handle.context.hub.messages('full', this.#handle.name, ids)
      this.#catchUp.giveBack(missedOf(ticks.slice(room)))
      if (room === 0) return // the next poll after a second tries again
      ticks = ticks.slice(0, room)
    }
  }

  /** Reports skipped ticks, once for consecutive ones. */
  #noteSkipped(name: string, skipped: boolean): void {
    if (!skipped) {
      this.#skipping.delete(name)
    } else if (!this.#skipping.has(name) && this.#skipping.size < MOST_NAMES) {
      this.#skipping.add(name)
      const message = `only the last ${MOST_MISSED} missed ticks of all repeats of the queue have messages`
      this.#report(name, new RedelayedError('ERR_TICKS_SKIPPED', message))
    }
  }

  /** Reads a repeat. An unreadable one is set aside, and stays in Redis for examination. */
  async #read(name: string, key: Buffer, value: Buffer, now: number): Promise<(RepeatState & DueTicks) | undefined> {
    try {
      const state = await this.#inTurn(() => readRepeat(key, value, this.#handle.context.settings.maxPayloadBytes))
      const due = await this.#inTurn(() => {
        const found = ticksAfter(state.definition, state.tick, now, this.#catchUp.room)
        this.#catchUp.spend(found.ticks.filter(({ at }) => at <= now).length)
        return found
      })
      return { ...state, ...due }
    } catch (thrown) {
      if (thrown instanceof UnsupportedOperationError || thrown instanceof ShutdownError) throw thrown
      const error = thrown instanceof DecodeError ? thrown : new DecodeError('repeat', toError(thrown).message)
      // one of the processes that meet it reports it
      if ((await this.#setAside(key, value, now)) === 1) this.#quarantined(name, error)
      return undefined
    }
  }

  #quarantined(name: string, error: DecodeError): void {
    const { name: queue, context } = this.#handle
    context.hub.emit('quarantined', { queue, reason: 'undecodable', count: 1, error })
    this.#report(name, error)
  }

  #inTurn<R>(compute: () => R): Promise<R> {
    return repeatTurns.take(() => {
      if (this.#polls.isClosed) throw new ShutdownError('the client was shut down')
      return compute()
    })
  }

  #setAside(key: Buffer, known: Buffer, now: number): Promise<number> {
    return this.#change(key, { computedAt: now, known, value: known, definition: undefined, ticks: [], at: null })
  }

  #change(
    name: Buffer,
    change: {
      readonly computedAt: number
      readonly known: Buffer
      readonly value: Buffer
      readonly definition: RepeatDefinition | undefined
      readonly ticks: readonly Tick[]
      /** When the next message has to be prepared. */
      readonly at: number | null
      /** The id of a message to remove, unless a consumer has it. */
      readonly withdrawn?: Buffer
    },
  ): Promise<number> {
    const { computedAt, known, value, definition, ticks, at, withdrawn = NOTHING } = change
    const items = definition === undefined ? [] : itemsOf(name.toString(), definition, ticks)
    const priority = definition?.group === undefined ? (definition?.priority ?? 0) : PRIORITIES
    return this.#store.repeats.change(name, { computedAt, known, value, at, priority, withdrawn, items })
  }

  #report(name: string, thrown: unknown): void {
    const error = toError(thrown)
    if (isOfShutdown(error)) return
    if (error instanceof UnsupportedOperationError) {
      if (this.#reported.has(name) || this.#reported.size >= MOST_NAMES) return
      this.#reported.add(name)
    }
    const what = `the repeat ${JSON.stringify(name.slice(0, 100))}`
    this.#handle.context.hub.emit('error', failureOf(what, error, { queue: this.#handle.name }))
  }
}

/** The ticks that get messages now: the missed ones by the policy, and the next one. */
function ticksAfter(definition: RepeatDefinition, last: number, now: number, room: number): DueTicks {
  const nextTick = nextTickOf(definition)
  const ticks: Tick[] = []
  const bytesOfEach = Math.max(1, definition.payload.length + encodeHeaders(definition.headers).length)
  const most = Math.min(MOST_TICKS, 1 + Math.floor(MOST_BYTES / bytesOfEach))
  const startedAt = performance.now()
  const isTooLong = (): boolean => performance.now() - startedAt > MOST_MS
  const earliest = definition.missed === 'all' ? earliestMissed(nextTick, last, now, room, isTooLong) : now
  const from = Math.max(last, earliest)
  for (let after = from; ticks.length < most;) {
    const at = nextTick(after)
    if (at === null) break
    ticks.push(tickOf(definition, at))
    if (at > now || isTooLong()) break
    after = at
  }
  return { ticks, skipped: definition.missed === 'all' && from > last }
}

/** The time before which missed ticks get no message: there are more than `room`, estimated from the distance of some. */
function earliestMissed(nextTick: NextTick, last: number, now: number, room: number, isTooLong: () => boolean): number {
  let end = last
  let count = 0
  while (count < Math.min(20, room + 1) && !(count > 0 && isTooLong())) {
    const at = nextTick(end)
    if (at === null || at > now) return last // fewer than `room`
    end = at
    count++
  }
  return now - Math.ceil((room * (end - last)) / count)
}

function tickOf(definition: RepeatDefinition, at: number): Tick {
  const own = definition.timeToLive === undefined ? Infinity : at + definition.timeToLive
  const next = definition.missed === 'none' ? (nextTickOf(definition)(at) ?? Infinity) : Infinity
  const expiresAt = Math.min(own, next)
  return { at, expiresAt: Number.isSafeInteger(expiresAt) ? expiresAt : null }
}

/** The script's arguments for the messages of some ticks; their common parts are encoded once. */
function itemsOf(name: string, definition: RepeatDefinition, ticks: readonly Tick[]): Buffer[] {
  const headerBytes = encodeHeaders(definition.headers)
  const payload = Buffer.from(definition.payload, 'base64')
  const { deliveryLimit = null, group } = definition
  return ticks.flatMap(({ at, expiresAt }) => [
    Buffer.from(tickId(name, at)),
    Buffer.from(String(at)),
    writeRecord({ headerBytes, payload, expiresAt, deliveryLimit, group }),
  ])
}

/** The id of the message that waits for its tick; empty if there is none. A message whose tick has come may wait for its next attempt. */
function pendingOf(name: string, known: Buffer, now: number): Buffer {
  const tick = Number(/^\d+/.exec(known.toString('latin1', 0, 20))?.[0])
  return tick > now ? Buffer.from(tickId(name, tick)) : NOTHING
}
