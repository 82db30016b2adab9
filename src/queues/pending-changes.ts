import { run } from '../store/run.js'
import { entryPrefix, payloadOf } from '../codecs/entry.js'
import { decodeTicket, encodeTicket, type Ticket } from '../codecs/ticket.js'
import { InvalidArgumentError, toError } from '../errors.js'
import { cancelOrReschedule, poll, pollLast } from '../store/scripts.js'
import { integer, scriptTime } from '../options.js'
import { toMillis, type TimeUnit } from '../timing/units.js'
import { PendingMessages } from './pending-messages.js'
import { MAX_RETAINED } from './queue-object.js'

/** How many entries one script takes. */
const PAGE = 500
/** After how many bytes of entries it ends, too. */
const PAGE_BYTES = 2 ** 20
/** How long one script may look for entries in the order list before others have their turn. */
const BUDGET_US = 2_000

/** `cancelOrReschedule` with this delay removes the entry. */
const REMOVE = -1
const DUE_TOO_LARGE = -2

/** Taking, removing and moving the pending messages of a delayed queue, before they are due. */
export abstract class PendingChanges<T> extends PendingMessages<T> {
  /** Removes a pending message. False when it was delivered or cancelled already. */
  async cancel(ticket: Ticket): Promise<boolean> {
    return (await this.#cancelOrReschedule(ticket, REMOVE)) !== null
  }

  /** Makes a pending message due `delay` from now instead; resolves with its new ticket, or `null` when it is not pending any more. */
  async reschedule(ticket: Ticket, delay: number, unit?: TimeUnit): Promise<Ticket | null> {
    let delayMs: number
    try {
      delayMs = toMillis('delay', delay, unit)
    } catch (error) {
      throw this.handle.attributed(error)
    }
    const result = await this.#cancelOrReschedule(ticket, delayMs)
    return result === null ? null : result.ticket
  }

  /** Takes the first pending message before it is due; it will not be delivered. `null` when there is none. */
  poll(): Promise<T | null>
  /** Takes up to `limit` (0 to 2^53-1) pending messages. */
  poll(limit: number): Promise<T[]>
  async poll(limit?: number): Promise<T | null | T[]> {
    this.assertUsable()
    if (limit === undefined) return (await this.#poll(1))[0] ?? null
    return this.#poll(this.handle.checked(() => integer('limit', limit, 0, Number.MAX_SAFE_INTEGER)))
  }

  /** Takes the first pending message; rejects with `NoSuchElementError` when there is none. */
  remove(): Promise<T>
  /** Removes the first pending message with the same encoded bytes as `value`. A walk: `cancel(ticket)` is O(log N). */
  remove(value: T): Promise<boolean>
  async remove(...args: [] | [T]): Promise<T | boolean> {
    if (args.length > 0) return this.find(args[0] as T, true)
    return this.handle.orThrow(await this.poll())
  }

  /** Removes every pending message that equals one of `values`; resolves with whether there was any. Walks the schedule, page by page. */
  async removeAll(values: Iterable<T>): Promise<boolean> {
    this.assertUsable()
    const distinct = this.handle.encodeDistinct(values)
    return this.handle.trackOperation(async () => {
      let removed = 0
      for (let i = 0; i < distinct.length; i += PAGE) {
        removed += (await this.filter(distinct.slice(i, i + PAGE), 'matches')).removed
      }
      return removed > 0
    })
  }

  /**
   * Removes every pending message that equals none of `values` (at most 10,000 different ones), so that it will not be
   * delivered; resolves with whether there was any. Walks the schedule, page by page.
   */
  async retainAll(values: Iterable<T>): Promise<boolean> {
    this.assertUsable()
    const distinct = this.handle.encodeDistinct(values, MAX_RETAINED)
    if (distinct.length === 0) return this.delete()
    return this.handle.trackOperation(async () => (await this.filter(distinct, 'others')).removed > 0)
  }

  /**
   * Takes the last pending message (the last offered, or with `layout: 'compact'` the last due) and puts it in front of the queue
   * `name`, in one step at the server; resolves with it, or with `null` when nothing is pending. Throws a `DecodeError` when
   * its bytes cannot be read; then it is in the other queue.
   */
  async pollLastAndOfferFirstTo(name: string): Promise<T | null> {
    this.assertUsable()
    const target = this.handle.checked(() => this.context.keysOf(name).destination)
    const bytes = await run(this.handle, pollLast, { ...this.identity.keys, target }, { ordered: this.ordered })
    return bytes === null ? null : this.handle.decode(bytes)
  }

  async #cancelOrReschedule(ticket: Ticket, delayMs: number): Promise<{ ticket: Ticket | null } | null> {
    this.assertUsable()
    const { timeouts, order, channel, destination } = this.identity.keys
    const { id, due } = decodeTicket(destination, this.name, ticket)
    const nowMs = scriptTime(this.context.settings)
    const args = { channel, nowMs, due, prefix: entryPrefix(id), delayMs }
    const result = await run(this.handle, cancelOrReschedule, { timeouts, order }, args)
    if (result === null) return null
    if (result === DUE_TOO_LARGE) {
      throw this.handle.withQueueName(
        new InvalidArgumentError('delay', 'one whose due time is at most 2^53-1 ms', delayMs),
      )
    }
    return { ticket: delayMs === REMOVE ? null : encodeTicket(destination, id, result) }
  }

  async #poll(limit: number): Promise<T[]> {
    return this.handle.trackOperation(async () => {
      const values: T[] = []
      while (values.length < limit) {
        const count = Math.min(PAGE, limit - values.length)
        const args = { count, bytes: PAGE_BYTES, ordered: this.ordered, budgetUs: BUDGET_US }
        const entries = await run(this.handle, poll, this.identity.keys, args).catch((error: unknown) => {
          if (values.length === 0) throw error
          return [] // what was taken before must reach the caller
        })
        if (entries.length === 0) break
        for (const entry of entries) values.push(...(await this.#acceptEntry(entry)))
      }
      return values
    })
  }

  /** The value of an entry that was taken, or nothing when it had to be set aside. */
  async #acceptEntry(entry: Buffer): Promise<T[]> {
    let payload: Buffer
    try {
      payload = payloadOf(entry)
    } catch (thrown) {
      await this.setAside(entry, toError(thrown))
      return []
    }
    return this.accept([payload])
  }
}
