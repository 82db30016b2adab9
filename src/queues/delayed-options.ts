import { InvalidArgumentError } from '../errors.js'
import { boolean, oneOf, onlyKnown } from '../options.js'
import type { Durability } from '../redis/durable/durability.js'
import type { Duration } from '../duration.js'
import type { TimeUnit } from '../timing/units.js'
import type { QueueContext } from './context.js'

export interface DelayedQueueOptions {
  /**
   * `'redisson'` (default) is Redisson's exact layout: all methods of Java's RDelayedQueue see these entries, at the price of a
   * walk through the order list for every message that is not delivered in offer order. `'compact'` leaves that list out:
   * every operation is O(log N) and takes less memory; Java still delivers and takes the messages, but its `size`,
   * `readAll` and `poll` on the delayed queue do not see them.
   */
  readonly layout?: 'redisson' | 'compact' | undefined
  /**
   * Whether this client takes part in delivering the queue. Default true. `false` is for processes that only offer, cancel
   * or read: they open no subscriber connection, and another client delivers, such as any consumer of the queue.
   */
  readonly deliver?: boolean | undefined
  /**
   * Whether tickets have at least 64 random bits, for those that leave your system: other tickets of the queue say nothing of them. Eight
   * bytes more per message. Not with `entryFormat: 'dLc0'`. Default false.
   */
  readonly unguessableTickets?: boolean | undefined
}

export interface OfferOptions {
  /**
   * What must have the message, beside the memory of the server, before the offer resolves: so many replicas, or the
   * append-only file on disk. Such offers go over a connection of their own, several of them with one wait at the end; one
   * that comes while others are waited for goes with the next. Without it an offer resolves when the server has accepted it.
   * It says nothing of what happens later: see docs/durability.md.
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
  { settings }: QueueContext,
): Required<{ [K in keyof DelayedQueueOptions]: NonNullable<DelayedQueueOptions[K]> }> {
  onlyKnown('options', options, ['layout', 'deliver', 'unguessableTickets'])
  const unguessableTickets = boolean('unguessableTickets', options.unguessableTickets ?? false)
  if (unguessableTickets && settings.entryFormat === 'dLc0') {
    const expected = `false with entryFormat 'dLc0', whose ids have 8 bytes`
    throw new InvalidArgumentError('unguessableTickets', expected, true, { queue })
  }
  if (options.layout === 'compact' && settings.entryFormat === 'dLc0') {
    const expected = `'redisson' with entryFormat 'dLc0', whose entries are always in the order list`
    throw new InvalidArgumentError('layout', expected, options.layout, { queue })
  }
  const layout = oneOf('layout', options.layout ?? 'redisson', ['redisson', 'compact'])
  return { layout, deliver: boolean('deliver', options.deliver ?? true), unguessableTickets }
}
