import {
  DecodeError,
  RedelayedError,
  ShutdownError,
  UnsupportedOperationError,
  attributeTo,
  toError,
} from '../../errors.js'
import { repeat, type RepeatRecord } from '../../lua/reliable-scripts.js'
import { run } from '../../lua/run.js'
import { scriptTime } from '../../options.js'
import { dueKeys, type ReliableContext, type ReliableIdentity } from '../context.js'
import { writeRecord } from '../record.js'
import { readState, tickId, writeState, type RepeatDefinition, type RepeatState } from './repeat-definition.js'
import { nextTickOf } from './ticks.js'

/** How many missed ticks get their messages with one script, and how large these are together but for the first. */
const MOST_TICKS = 200
const MOST_BYTES = 1024 * 1024
const NOTHING = Buffer.alloc(0)

/** One tick and when its message expires. */
interface Tick {
  readonly at: number
  readonly expiresAt: number | null
}

/** Changes of what is repeated: each is done by one of all processes that try it. */
export class Repeats {
  readonly #context: ReliableContext
  readonly #identity: ReliableIdentity<unknown>
  /** What this process cannot compute, so that it tells of it once. */
  readonly #told = new Set<string>()

  constructor(context: ReliableContext, identity: ReliableIdentity<unknown>) {
    this.#context = context
    this.#identity = identity
  }

  /** Begins a repeat, or changes it from `known` on. False when somebody else changed it meanwhile. */
  begin(name: string, definition: RepeatDefinition, known: Buffer | null, now: number): Promise<boolean> {
    const first = nextTickOf(definition)(now)
    // what has no tick left is kept nonetheless, so that the same again is no change
    const state = { tick: first ?? now, definition }
    return this.#change(name, {
      known: known ?? NOTHING,
      value: writeState(state),
      definition,
      ticks: first === null ? [] : [tickOf(definition, first)],
      at: first,
      withdrawn: known === null ? NOTHING : pendingOf(name, known, now),
    })
  }

  /** Ends a repeat; the message of a tick to come is removed. False when somebody else changed it meanwhile. */
  end(name: string, known: Buffer, now: number): Promise<boolean> {
    const withdrawn = pendingOf(name, known, now)
    return this.#change(name, { known, value: NOTHING, definition: undefined, ticks: [], at: null, withdrawn })
  }

  /** Prepares the next messages of repeats whose tick has come. Never rejects. */
  async advance(due: readonly RepeatRecord[], now: number): Promise<void> {
    await Promise.all(
      due.map(({ name, value }) =>
        this.#advance(name, value, now).catch((thrown: unknown) => this.#report(name, thrown)),
      ),
    )
  }

  async #advance(name: string, known: Buffer, now: number): Promise<void> {
    const { tick, definition } = await this.#read(name, known)
    const ticks = ticksAfter(definition, tick, now)
    const last = ticks.at(-1)
    const value = writeState({ tick: last?.at ?? tick, definition })
    await this.#change(name, { known, value, definition, ticks, at: last?.at ?? null })
  }

  /** What cannot be read is not asked for again; it stays where it is, to be looked at. */
  async #read(name: string, known: Buffer): Promise<RepeatState> {
    try {
      return readState(known)
    } catch (error) {
      if (error instanceof DecodeError) {
        await this.#change(name, { known, value: known, definition: undefined, ticks: [], at: null })
        const { name: queue } = this.#identity
        this.#context.queues.hub.emit('quarantined', { queue, reason: 'undecodable', count: 1, error })
      }
      throw error
    }
  }

  #change(
    name: string,
    change: {
      readonly known: Buffer
      readonly value: Buffer
      readonly definition: RepeatDefinition | undefined
      readonly ticks: readonly Tick[]
      /** When the next message has to be prepared. */
      readonly at: number | null
      /** The id of a message that goes, if nobody has got it. */
      readonly withdrawn?: Buffer
    },
  ): Promise<boolean> {
    const { keys } = this.#identity
    const { messages, deliveries, failures, repeats, ticks, inFlight, channel } = keys
    const { commands, settings } = this.#context.queues
    const { definition } = change
    return run(
      commands,
      repeat,
      { ...dueKeys(keys), messages, deliveries, failures, repeats, ticks, inFlight },
      {
        channel,
        nowMs: scriptTime(settings),
        name,
        expected: change.known,
        value: change.value,
        at: change.at === null ? '' : String(change.at),
        priority: definition?.priority ?? 0,
        withdrawn: change.withdrawn ?? NOTHING,
        items: definition === undefined ? [] : change.ticks.flatMap((tick) => itemOf(name, definition, tick)),
      },
      { idempotent: true }, // a second time the value is another one, and nothing happens
    )
  }

  #report(name: string, thrown: unknown): void {
    const error = toError(thrown)
    if (error instanceof ShutdownError) return
    const code = error instanceof RedelayedError ? error.code : 'ERR_INTERNAL'
    if (error instanceof UnsupportedOperationError && this.#told.has(name)) return
    this.#told.add(name)
    const told = new RedelayedError(code, `the repeat ${JSON.stringify(name)}: ${error.message}`, { cause: error })
    this.#context.queues.hub.emit('error', attributeTo(told, this.#identity.name))
  }
}

/** The ticks that get messages now: what was missed as the policy says, and the one to come. */
function ticksAfter(definition: RepeatDefinition, last: number, now: number): Tick[] {
  const nextTick = nextTickOf(definition)
  const ticks: Tick[] = []
  const most = Math.min(MOST_TICKS, 1 + Math.floor(MOST_BYTES / Math.max(1, definition.payload.length)))
  for (let after = definition.missed === 'all' ? last : Math.max(last, now); ticks.length < most;) {
    const at = nextTick(after)
    if (at === null) break
    ticks.push(tickOf(definition, at))
    if (at > now) break
    after = at
  }
  return ticks
}

function tickOf(definition: RepeatDefinition, at: number): Tick {
  const own = definition.timeToLive === undefined ? Infinity : at + definition.timeToLive
  const next = definition.missed === 'none' ? (nextTickOf(definition)(at) ?? Infinity) : Infinity
  const expiresAt = Math.min(own, next)
  return { at, expiresAt: Number.isSafeInteger(expiresAt) ? expiresAt : null }
}

function itemOf(name: string, definition: RepeatDefinition, { at, expiresAt }: Tick): Buffer[] {
  const record = writeRecord({
    headers: definition.headers ?? {},
    payload: Buffer.from(definition.payload, 'base64'),
    expiresAt,
    deliveryLimit: definition.deliveryLimit ?? null,
  })
  return [Buffer.from(tickId(name, at)), Buffer.from(String(at)), record]
}

/** The id of the message that waits for its tick, if there is any; one whose tick has come waits for its next attempt. */
function pendingOf(name: string, known: Buffer, now: number): Buffer {
  const tick = Number(/^\d+/.exec(known.toString('latin1', 0, 20))?.[0])
  return tick > now ? Buffer.from(tickId(name, tick)) : NOTHING
}
