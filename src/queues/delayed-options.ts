import { InvalidArgumentError } from '../errors.js'
import { boolean, oneOf, onlyKnown } from '../options.js'
import type { Durability } from '../redis/durable/durability.js'
import type { Duration } from '../duration.js'
import type { TimeUnit } from '../timing/units.js'
import type { Layout } from '../store/delayed-store.js'

export type { Layout } from '../store/delayed-store.js'
import type { QueueContext } from './context.js'

export const LAYOUTS: readonly Layout[] = ['redisson', 'compact', 'wheel']

export interface DelayedQueueOptions {
  /**
   * `'redisson'` (default) is Redisson's exact layout: all methods of Java's RDelayedQueue see these entries, at the price of a walk
   * through the order list for every message that is not delivered in offer order. `'compact'` leaves that list out: every operation is
   * O(log N) and takes less memory; Java still delivers and takes the messages, but its `size`, `readAll` and `poll` on the delayed queue
   * do not see them. `'wheel'` is for many messages that are due much later: they are in lists, one per minute, until shortly before their
   * minute, and take about half the memory of `'compact'`; then clients of this package, but not of Java, move them to the schedule.
   * Methods that read or take pending messages, and methods that expire, rename or copy a queue, reject.
   */
  readonly layout?: 'redisson' | 'compact' | 'wheel' | undefined
  /**
   * Whether this client takes part in delivering the queue. Default true. `false` is for processes that only offer, cancel
   * or read: they open no subscriber connection, and another client delivers, such as any consumer of the queue.
   */
  readonly deliver?: boolean | undefined
  /**
   * Whether tickets have at least 64 random bits, so that a ticket cannot be guessed from other tickets of the queue. Eight
   * bytes more per message. Not with `entryFormat: 'dLc0'`. Default false.
   */
  readonly unguessableTickets?: boolean | undefined
}

export interface OfferOptions {
  /**
   * Where the message must be stored, besides the server's memory, before the offer resolves: on a number of replicas, or in the
   * append-only file on disk. Such offers use a connection of their own, and several share one wait; an offer
   * that comes during a wait shares the next one. Without `durability` an offer resolves when the server has accepted it.
   * The option guarantees nothing about later failures: see docs/durability.md.
   */
  readonly durability?: Durability | undefined
}

/** One message for `offerAll`: with a delay, or with a date by the Redis clock. */
export type OfferItem<T> =
  | { readonly value: T; readonly delay: Duration; readonly unit?: TimeUnit | undefined; readonly date?: undefined }
  | { readonly value: T; readonly date: Date; readonly delay?: undefined; readonly unit?: undefined }

/** Checks the options; errors name the queue. */
export function resolveDelayedOptions(
  options: DelayedQueueOptions,
  queue: string,
  { settings, commands }: QueueContext,
): Required<{ [K in keyof DelayedQueueOptions]: NonNullable<DelayedQueueOptions[K]> }> {
  onlyKnown('options', options, ['layout', 'deliver', 'unguessableTickets'])
  const unguessableTickets = boolean('unguessableTickets', options.unguessableTickets ?? false)
  if (unguessableTickets && settings.entryFormat === 'dLc0') {
    const expected = `false with entryFormat 'dLc0', whose ids have 8 bytes`
    throw new InvalidArgumentError('unguessableTickets', expected, true, { queue })
  }
  if ((options.layout === 'compact' || options.layout === 'wheel') && settings.entryFormat === 'dLc0') {
    const expected = `'redisson' with entryFormat 'dLc0', whose entries are always in the order list`
    throw new InvalidArgumentError('layout', expected, options.layout, { queue })
  }
  if (options.layout === 'wheel' && commands.resends) {
    const expected = `'redisson' or 'compact' with a client of yours that sends commands again by itself (autoResendUnfulfilledCommands)`
    throw new InvalidArgumentError('layout', expected, options.layout, { queue })
  }
  const layout = oneOf('layout', options.layout ?? 'redisson', LAYOUTS)
  return { layout, deliver: boolean('deliver', options.deliver ?? true), unguessableTickets }
}
