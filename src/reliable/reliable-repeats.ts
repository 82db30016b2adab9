import { run } from '../store/run.js'
import { InternalError, RedelayedError } from '../errors.js'
import { asArray, asBytes, asBytesOrNull } from '../store/replies.js'
import { get } from '../store/reliable-scripts.js'
import type { ReliableContext, ReliableIdentity } from './context.js'
import {
  assertRepeatName,
  definitionOf,
  readState,
  type RepeatDefinition,
  type ScheduleOptions,
} from './repeats/repeat-definition.js'
import { Repeats } from './repeats/repeats.js'
import { repeatTurns } from './repeats/turns.js'
import type { Headers } from './record.js'
import { ReliableChanges } from './reliable-changes.js'

/** What is repeated, and how far it has come. */
export interface ScheduleInfo<T> {
  readonly name: string
  readonly payload: T
  readonly headers: Headers
  readonly priority: number
  readonly every: number | null
  readonly cron: string | null
  readonly timeZone: string | null
  /** The tick whose message was prepared last: the next one, unless no consumer has polled since it came, or it was the last. */
  readonly lastPrepared: Date
}

/** How often a change is tried while others change the same. */
const MAX_ATTEMPTS = 20

/** Messages that a reliable queue gets again and again. */
export abstract class ReliableRepeats<T> extends ReliableChanges<T> {
  protected readonly repeats: Repeats

  /** @internal */
  constructor(reliable: ReliableContext, identity: ReliableIdentity<T>) {
    super(reliable, identity)
    this.repeats = new Repeats(reliable, identity)
  }

  /**
   * From now on a message is added at each tick, once however many processes call this and run: the same call again changes
   * nothing, another one for the same name takes its place. The message of the next tick is in the queue as a delayed one with the id
   * `<name>@<epoch ms>`; who polls when its tick has come prepares the following. Resolves with whether anything was changed.
   *
   * @throws InvalidArgumentError also for a cron expression or a time zone that cannot be read
   * @throws UnsupportedOperationError a cron expression without the package `croner`
   */
  async upsertSchedule(name: string, payload: T, options: ScheduleOptions): Promise<boolean> {
    const definition = this.handle.checked(() => {
      assertRepeatName(name)
      return definitionOf(options, this.handle.encode(payload, 'payload'))
    })
    return this.#change(name, async (known, now) => {
      if (known !== null && isSame(known, definition, this.context.settings.maxPayloadBytes)) return null
      return this.repeats.begin(name, definition, known, now)
    })
  }

  /** Ends a repeat; its message is removed unless its tick has come. False when there is none of this name. */
  async removeSchedule(name: string): Promise<boolean> {
    this.handle.checked(() => assertRepeatName(name))
    return this.#change(name, async (known, now) => (known === null ? null : this.repeats.end(name, known, now)))
  }

  /** All of them, by their names; one that cannot be read is left out and reported by an `error` event. */
  async listSchedules(): Promise<ScheduleInfo<T>[]> {
    const { repeats } = this.identity.keys
    const names = asArray(await this.handle.call('HKEYS', [repeats], { idempotent: true })).map(asBytes)
    if (names.length === 0) return []
    const values = asArray(await this.handle.call('HMGET', [repeats, ...names], { idempotent: true })).map(
      asBytesOrNull,
    )
    const infos: ScheduleInfo<T>[] = []
    for (const [at, name] of names.entries()) {
      const info = await repeatTurns.take(() => this.#infoOf(name.toString(), values[at] ?? null))
      if (info !== undefined) infos.push(info)
    }
    return infos.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** Until it was done by this call, or there was nothing to do, which is what `null` says. */
  async #change(
    name: string,
    change: (known: Buffer | null, now: number) => Promise<boolean | null>,
  ): Promise<boolean> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const known = asBytesOrNull(
        await this.handle.call('HGET', [this.identity.keys.repeats, name], { idempotent: true }),
      )
      const isDone = await this.handle.attribute(change(known, await this.#now()))
      if (isDone !== false) return isDone === true
    }
    throw this.handle.withQueueName(
      new InternalError('repeat-changed', `others changed it ${MAX_ATTEMPTS} times in between`),
    )
  }

  /** The clock that decides when something becomes visible, epoch milliseconds. */
  async #now(): Promise<number> {
    const { messages, deliveries, failures, inFlight } = this.identity.keys
    const keys = { ...this.due, messages, deliveries, failures, inFlight }
    return (await run(this.handle, get, keys, { nowMs: this.now, ids: [] }, { idempotent: true })).now
  }

  #infoOf(name: string, value: Buffer | null): ScheduleInfo<T> | undefined {
    if (value === null) return undefined // it was ended meanwhile
    try {
      const { tick, definition } = readState(value, this.context.settings.maxPayloadBytes)
      const { every, cron, timeZone, headers, priority, payload } = definition
      return {
        name,
        payload: this.handle.decode(Buffer.from(payload, 'base64')),
        headers: headers ?? {},
        priority,
        every: every ?? null,
        cron: cron ?? null,
        timeZone: timeZone ?? null,
        lastPrepared: new Date(tick),
      }
    } catch (thrown) {
      if (!(thrown instanceof RedelayedError)) throw thrown
      this.context.hub.emit('error', this.handle.withQueueName(thrown))
      return undefined
    }
  }
}

function isSame(known: Buffer, definition: RepeatDefinition, maxPayloadBytes: number): boolean {
  try {
    return JSON.stringify(readState(known, maxPayloadBytes).definition) === JSON.stringify(definition)
  } catch {
    return false // what cannot be read is replaced
  }
}
