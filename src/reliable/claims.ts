import { CommandError, toError, toRedelayed } from '../errors.js'
import { integer, oneOf, onlyKnown } from '../options.js'
import type { QueueHandle } from '../queues/queue-handle.js'
import type { PolledRecord, PollReply } from '../store/reliable-scripts.js'
import { AS_SET, type HowToHold, type ReliableStore } from '../store/reliable-store.js'
import { systemClock } from '../timing/clock.js'
import { Seldom } from '../timing/seldom.js'
import { durationMs, type Duration } from '../duration.js'
import { visibilityMs } from './visibility.js'
import type { Acknowledger } from './acknowledger.js'
import { ReliableMessage, isSuspect } from './message.js'
import type { QueueRegistry } from '../scheduler/queue-registry.js'
import { Poller, type PollerParams } from './poller.js'
import { readRecord } from './record.js'
import type { Repeats } from './repeats/repeats.js'
import { groupUnreadable, type Unreadable, type UnreadableGroup } from './unreadable.js'

export interface PollOptions {
  /**
   * How long to wait for a message, in milliseconds; `Infinity` waits without end. Without it the call does not wait.
   */
  readonly timeout?: Duration | undefined
  /**
   * For how many milliseconds no other consumer gets the message. 1 millisecond to 365 days; default: the queue's configuration, else
   * 30,000.
   */
  readonly visibilityTimeout?: Duration | undefined
  /** `'auto'` acknowledges the message before the call resolves: at most once. Default `'manual'`. */
  readonly acknowledge?: 'manual' | 'auto' | undefined
  /** Ends the wait; it rejects with the signal's reason, and has claimed no message. */
  readonly signal?: AbortSignal | undefined
}

export interface PollManyOptions extends PollOptions {
  /** The most messages. 1 to 1,000. */
  readonly count: number
  /**
   * The call takes no more messages once the taken ones have this many stored bytes. One script can exceed it, by up to 1 MiB or one
   * message that is larger. 1 or more; default: no limit.
   */
  readonly maxBytes?: number | undefined
}

/** The most messages of one call. */
export const MOST_POLLED = 1_000

const OPTIONS = ['timeout', 'visibilityTimeout', 'acknowledge', 'signal'] as const

/** The checked options of a poll. */
export interface HowToPoll {
  /** How long the poll waits; without it, without end. */
  readonly timeoutMs: number | undefined
  readonly visibilityMs: number
  /** Whether messages are acknowledged before the caller gets them. */
  readonly isFinal: boolean
}

export function howToPoll({ timeout, visibilityTimeout, acknowledge }: PollOptions): HowToPoll {
  return {
    visibilityMs: visibilityTimeout === undefined ? AS_SET : visibilityMs('visibilityTimeout', visibilityTimeout),
    timeoutMs: timeout === Infinity ? undefined : durationMs('timeout', timeout ?? 0),
    isFinal: oneOf('acknowledge', acknowledge ?? 'manual', ['manual', 'auto']) === 'auto',
  }
}

export function assertPollOptions(options: PollOptions): void {
  onlyKnown('options', options, OPTIONS)
}

export function assertPollManyOptions(options: PollManyOptions): void {
  onlyKnown('options', options, ['count', 'maxBytes', ...OPTIONS])
  integer('count', options.count, 1, MOST_POLLED)
  if (options.maxBytes !== undefined) integer('maxBytes', options.maxBytes, 1, Number.MAX_SAFE_INTEGER)
}

/** The parts of a queue that a poll needs. */
interface Parts<T> {
  readonly acknowledger: Acknowledger<T>
  readonly repeats: Repeats
  readonly polls: QueueRegistry<Poller>
}

/** Takes messages from a queue for their visibility, without waiting or as soon as there are any. */
export class Claims<T> {
  readonly #handle: QueueHandle<T>
  readonly #store: ReliableStore
  readonly #parts: Parts<T>
  readonly #poller: PollerParams
  readonly #seldom = new Seldom(systemClock)
  #answeredAt = -Infinity

  constructor(handle: QueueHandle<T>, store: ReliableStore, parts: Parts<T>) {
    this.#handle = handle
    this.#store = store
    this.#parts = parts
    const address = { name: handle.name, channel: store.keys.channel }
    this.#poller = {
      address,
      noConnectionYet: (triedForMs) => handle.context.commands.noConnectionYet(triedForMs),
      poll: (count, how, announce) => this.#poll(count, how, announce),
      release: async (polled) => {
        await parts.acknowledger.giveBack(polled, { how: 'released', delayMs: 0, reason: '""' })
      },
      onError: (error) => parts.polls.report(address, error),
      clock: systemClock,
      random: Math.random,
      retries: parts.polls.retries,
      fineWaits: handle.context.fineWaits,
    }
  }

  /** When Redis last answered a poll of this queue, by the monotonic clock; `-Infinity` for never. */
  get answeredAt(): number {
    return Math.max(this.#answeredAt, this.#parts.polls.find(this.#poller.address)?.answeredAt ?? -Infinity)
  }

  async one(options: PollOptions): Promise<ReliableMessage<T> | null> {
    assertPollOptions(options)
    const [message = null] = await this.claim({ ...options, count: 1 })
    return message
  }

  async many(options: PollManyOptions): Promise<ReliableMessage<T>[]> {
    assertPollManyOptions(options)
    return this.claim(options)
  }

  /** `beforehand`: some of the messages are not handled at once. */
  async claim(options: PollManyOptions, beforehand = false): Promise<ReliableMessage<T>[]> {
    const { count, maxBytes = Infinity, signal } = options
    const { timeoutMs, visibilityMs, isFinal } = howToPoll(options)
    const how = { visibilityMs, beforehand }
    const deadline = timeoutMs === undefined ? undefined : performance.now() + timeoutMs
    // there can be any number of unreadable messages, so a poll that does not wait has a deadline too
    const until =
      timeoutMs === 0 ? performance.now() + this.#handle.context.settings.commandTimeout : (deadline ?? Infinity)
    for (;;) {
      if (signal?.aborted === true) throw toError(signal.reason)
      const polled =
        timeoutMs === 0
          ? await this.#now(count, maxBytes, how, until)
          : // one script hands them out
            await this.#wait(count, how, deadline, signal)
      const readable = await this.#read(polled)
      const messages = isFinal ? await this.#acknowledged(readable) : readable
      this.#emitPolled(messages)
      if (messages.length > 0 || polled.length === 0 || performance.now() >= until) return messages
    }
  }

  /** Takes up to `count` visible messages, and no more once they have `maxBytes`. */
  async #now(count: number, maxBytes: number, how: HowToHold, until: number): Promise<PolledRecord[]> {
    const polled: PolledRecord[] = []
    for (let bytes = 0; polled.length < count && bytes < maxBytes;) {
      const reply = await this.#poll(count - polled.length, how, false).catch((error: unknown) => {
        if (polled.length === 0) throw error
        return undefined // messages handed out before must reach the caller
      })
      if (reply === undefined) break
      polled.push(...reply.messages)
      for (const { record } of reply.messages) bytes += record.length
      if (reply.next === null || reply.next > reply.now || reply.changed === 0) break
      if (polled.length === 0 && performance.now() >= until) break
    }
    return polled
  }

  /** Waits for 1 to `count` messages; resolves with none when the time is over. */
  #wait(
    count: number,
    how: HowToHold,
    deadline: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<PolledRecord[]> {
    const timeoutMs = deadline === undefined ? undefined : Math.max(0, deadline - performance.now())
    const poller = this.#parts.polls.serve(this.#poller.address, () => new Poller(this.#poller))
    return poller.take(count, how, { timeoutMs, signal })
  }

  /** Runs the script, emits the events of its reply, and advances repeats. */
  async #poll(count: number, how: HowToHold, announce: boolean): Promise<PollReply> {
    const reply = await this.#store.poll(count, how, announce)
    this.#answeredAt = systemClock.now()
    const { name, context } = this.#handle
    context.hub.messages('expired', name, [], reply.expired)
    context.hub.messages('rejected', name, [], reply.deadLettered)
    if (reply.problem !== '' && this.#seldom.may(reply.problem)) {
      const code = /: ([A-Z]+)/.exec(reply.problem)?.[1] ?? 'ERR'
      context.hub.emit('error', this.#handle.withQueueName(new CommandError(code, reply.problem)))
    }
    // not awaited: the messages handed out need not wait for it
    if (reply.repeats.length > 0) void this.#parts.repeats.advance(reply.repeats, reply.now)
    return reply
  }

  /** Decodes messages. An unreadable message has failed; its delivery limit decides how often other consumers get it. */
  async #read(polled: readonly PolledRecord[]): Promise<ReliableMessage<T>[]> {
    const messages: ReliableMessage<T>[] = []
    const unreadable: Unreadable[] = []
    for (const record of polled) {
      try {
        messages.push(this.#message(record))
      } catch (thrown) {
        unreadable.push({ record, error: this.#handle.withQueueName(toRedelayed(thrown)) })
      }
    }
    if (unreadable.length > 0) {
      const groups = groupUnreadable(unreadable, this.#handle.codec.name)
      await Promise.all(groups.map((group) => this.#postpone(group)))
    }
    return messages
  }

  #message(polled: PolledRecord): ReliableMessage<T> {
    const { headers, payload, group = null } = readRecord(polled.record)
    // a suspect is decoded only after its delivery was counted
    const value = isSuspect(polled) ? (payload as T) : this.#handle.decode(payload)
    return new ReliableMessage(this.#parts.acknowledger, polled, headers, value, group)
  }

  async #postpone({ records, giveBack, error }: UnreadableGroup): Promise<void> {
    const { name, context } = this.#handle
    await this.#parts.acknowledger.giveBack(records, giveBack).catch((failed: unknown) => {
      // the messages are redelivered when their visibility timeout ends, which counts as a failure too
      context.hub.emit('error', this.#handle.withQueueName(toRedelayed(failed)))
    })
    context.hub.emit('quarantined', { queue: name, reason: 'undecodable', count: records.length, error })
  }

  /** Acknowledges messages; returns those that were. Another consumer may have the others by now. */
  async #acknowledged(messages: readonly ReliableMessage<T>[]): Promise<ReliableMessage<T>[]> {
    const done = await this.#parts.acknowledger.acknowledgeMany(messages)
    return messages.filter((_, at) => done[at] === true)
  }

  #emitPolled(messages: readonly ReliableMessage<T>[]): void {
    const { name, context } = this.#handle
    if (!context.hub.hasListener('polled', name)) return
    const ids = messages.map(({ id }) => id)
    context.hub.messages('polled', name, ids)
  }
}
