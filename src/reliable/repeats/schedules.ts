import { DecodeError, InternalError, RedelayedError } from '../../errors.js'
import type { QueueHandle } from '../../queues/queue-handle.js'
import type { ReliableStore } from '../../store/reliable-store.js'
import type { Headers } from '../record.js'
import {
  assertRepeatName,
  definitionOf,
  readState,
  type RepeatDefinition,
  type RepeatState,
  type ScheduleOptions,
} from './repeat-definition.js'
import type { Repeats } from './repeats.js'
import { repeatTurns } from './turns.js'

/** A schedule and its last prepared tick. */
export interface ScheduleInfo<T> {
  readonly name: string
  readonly payload: T
  readonly headers: Headers
  readonly priority: number
  readonly group: string | null
  readonly every: number | null
  readonly cron: string | null
  readonly timeZone: string | null
  /** The tick whose message was prepared last: the next tick, unless no consumer has polled since it came, or there is no later one. */
  readonly lastPrepared: Date
}

/** The most attempts of a change while other processes change the same schedule, or replies have a wrong time. */
const MAX_ATTEMPTS = 20

/** The schedules of a reliable queue: sets, ends and lists them. */
export class Schedules<T> {
  readonly #handle: QueueHandle<T>
  readonly #store: ReliableStore
  readonly #repeats: Repeats

  constructor(handle: QueueHandle<T>, store: ReliableStore, repeats: Repeats) {
    this.#handle = handle
    this.#store = store
    this.#repeats = repeats
  }

  /**
   * @param since the last prepared tick of the same schedule in another queue, where it is about to end: a new one here continues after it
   */
  async upsert(name: string, payload: T, options: ScheduleOptions, since: number | null = null): Promise<boolean> {
    const definition = this.#definitionOf(name, payload, options)
    return this.#change(name, async (known, now) => {
      const state = known && this.#sameOf(known, definition)
      if (state !== null && (await this.#repeats.isTicking(name, state, now))) return null
      if (known === null && since !== null && since <= now) return this.#repeats.resume(name, definition, since, now)
      return this.#repeats.begin(name, definition, known, now)
    })
  }

  /** The last prepared tick of this very schedule, epoch milliseconds; `null` if there is none. */
  async lastTickOf(name: string, payload: T, options: ScheduleOptions): Promise<number | null> {
    const definition = this.#definitionOf(name, payload, options)
    const known = await this.#store.repeats.get(name)
    return (known && this.#sameOf(known, definition))?.tick ?? null
  }

  async remove(name: string): Promise<boolean> {
    assertRepeatName(name)
    return this.#change(name, async (known, now) => (known === null ? null : this.#repeats.end(name, known, now)))
  }

  async list(): Promise<ScheduleInfo<T>[]> {
    const infos: ScheduleInfo<T>[] = []
    for await (const [name, value] of this.#store.repeats.all()) {
      const info = await repeatTurns.take(() => this.#infoOf(name.toString(), value))
      if (info !== undefined) infos.push(info)
    }
    return infos.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  #definitionOf(name: string, payload: T, options: ScheduleOptions): RepeatDefinition {
    assertRepeatName(name)
    return definitionOf(options, this.#handle.encode(payload, 'payload'))
  }

  /** The stored state if its definition is this one. */
  #sameOf(known: Buffer, definition: RepeatDefinition): RepeatState | null {
    const state = stateOf(known, this.#handle.context.settings.maxPayloadBytes)
    return JSON.stringify(state?.definition) === JSON.stringify(definition) ? state : null
  }

  /** Repeats the change until it succeeds, or resolves with `null` because there is nothing to change. */
  async #change(
    name: string,
    change: (known: Buffer | null, now: number) => Promise<boolean | null>,
  ): Promise<boolean> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const known = await this.#store.repeats.get(name)
      const isDone = await change(known, await this.#store.now())
      if (isDone !== false) return isDone === true
    }
    throw new InternalError(
      'repeat-changed',
      `other processes changed the schedule ${MAX_ATTEMPTS} times in between, or the server replied with wrong times`,
    )
  }

  #infoOf(name: string, value: Buffer | number | null): ScheduleInfo<T> | undefined {
    if (value === null) return undefined // it was ended meanwhile
    try {
      if (typeof value === 'number') throw new DecodeError('repeat', `${value} bytes, which is too many`)
      const { tick, definition } = readState(value, this.#handle.context.settings.maxPayloadBytes)
      const { every, cron, timeZone, headers, priority, group, payload } = definition
      return {
        name,
        payload: this.#handle.decode(Buffer.from(payload, 'base64')),
        headers: headers ?? {},
        priority,
        group: group ?? null,
        every: every ?? null,
        cron: cron ?? null,
        timeZone: timeZone ?? null,
        lastPrepared: new Date(tick),
      }
    } catch (thrown) {
      if (!(thrown instanceof RedelayedError)) throw thrown
      this.#handle.context.hub.emit('error', this.#handle.withQueueName(thrown))
      return undefined
    }
  }
}

function stateOf(known: Buffer, maxPayloadBytes: number): RepeatState | null {
  try {
    return readState(known, maxPayloadBytes)
  } catch {
    return null // an unreadable schedule is replaced
  }
}
