import type { Ticket } from '../codecs/ticket.js'
import { resolveDurability, type Durability, type Wait } from '../redis/durable/durability.js'
import { InvalidArgumentError, OfferAllError, RedelayedError, type OfferFailure } from '../errors.js'
import { onlyKnown } from '../options.js'
import { toMillis } from '../timing/units.js'
import type { Due } from '../store/delayed-store.js'
import type { QueueHandle } from './queue-handle.js'

export function dueAfter(what: string, delay: unknown, unit?: unknown): Due {
  return { delayMs: toMillis(what, delay, unit) }
}

/** The due time of a date; one in the past is due at once. */
export function dueAt(date: unknown, what = 'date'): Due {
  if (!(date instanceof Date) || Number.isNaN(date.getTime())) {
    throw new InvalidArgumentError(what, 'a valid Date', date)
  }
  return { atMs: Math.max(0, date.getTime()) }
}

export function dueOfItem(item: { delay?: unknown; unit?: unknown; date?: unknown }, what: string): Due {
  if (item.date === undefined) return dueAfter(`${what}.delay`, item.delay, item.unit)
  if ((item.delay ?? item.unit) === undefined) return dueAt(item.date, `${what}.date`)
  throw new InvalidArgumentError(what, 'either a delay or a date', item)
}

/** The durability that an offer waits for, if any. */
export function waitOf(
  options: { readonly durability?: Durability | undefined },
  known: readonly string[] = ['durability'],
): Wait | undefined {
  onlyKnown('options', options, known)
  return options.durability === undefined ? undefined : resolveDurability(options.durability)
}

/** Checks all items of an `offerAll` before anything is sent; the error names every invalid item. */
export function prepareAll<I extends object, P>(
  handle: QueueHandle<unknown>,
  items: Iterable<I>,
  shape: string,
  prepare: (item: I, what: string) => P,
): P[] {
  const list = [...items]
  const prepared: P[] = []
  const failures: OfferFailure[] = []
  list.forEach((item: unknown, index) => {
    const what = `items[${index}]`
    try {
      if (typeof item !== 'object' || item === null) throw new InvalidArgumentError(what, shape, item)
      prepared.push(prepare(item as I, what))
    } catch (error) {
      failures.push({ index, error: handle.attributed(error) as RedelayedError })
    }
  })
  if (failures.length === 0) return prepared
  const tickets = list.map(() => null)
  throw handle.withQueueName(new OfferAllError(tickets, failures))
}

/** Returns all tickets, or throws an error that names the missing ones. */
export function ticketsOf(handle: QueueHandle<unknown>, results: readonly (Ticket | RedelayedError)[]): Ticket[] {
  const failures = results.flatMap((error, index) => (error instanceof RedelayedError ? [{ index, error }] : []))
  const tickets = results.map((result) => (typeof result === 'string' ? result : null))
  if (failures.length > 0) throw handle.withQueueName(new OfferAllError(tickets, failures))
  return tickets as Ticket[]
}
