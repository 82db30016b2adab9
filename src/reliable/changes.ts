import { CrossSlotError, InvalidArgumentError, PayloadTooLargeError } from '../errors.js'
import type { ReliableKeys } from '../keys.js'
import { integer, onlyKnown } from '../options.js'
import type { QueueHandle } from '../queues/queue-handle.js'
import { warnOfTimestamp } from '../queues/warn-of-timestamp.js'
import { AS_SET, type ReliableStore } from '../store/reliable-store.js'
import { durationMs, type Duration } from '../duration.js'
import { quoted } from '../text.js'
import { assertPriority, dateText } from './add-options.js'
import { assertKnownId } from './message-id.js'

export interface MoveMessages {
  /** The other queue, or its name; in a cluster it must be in the same slot. */
  readonly to: string | { readonly name: string }
  /** The ids of the messages to move; without it the first `count`. */
  readonly ids?: readonly string[] | undefined
  /** The most messages to move without `ids`. 1 to 1,000; default 100. */
  readonly count?: number | undefined
  /** The priority of the messages to move without `ids`. 0 to 9; default 0. */
  readonly priority?: number | undefined
}

/** Removes, reschedules, updates and moves stored messages without claiming them. */
export class Changes<T> {
  readonly #handle: QueueHandle<T>
  readonly #store: ReliableStore
  readonly #keysOf: (name: string) => ReliableKeys

  constructor(handle: QueueHandle<T>, store: ReliableStore, keysOf: (name: string) => ReliableKeys) {
    this.#handle = handle
    this.#store = store
    this.#keysOf = keysOf
  }

  /** Removes messages, with `alsoHeld` also those that consumers have; resolves with how many. */
  async remove(ids: readonly string[], how: { readonly alsoHeld: boolean }): Promise<number> {
    ids.forEach((id, at) => assertKnownId(`ids[${at}]`, id))
    let removed = 0
    for await (const gone of this.#store.remove(ids, how)) {
      removed += gone.length
      this.#handle.context.hub.messages('removed', this.#handle.name, gone)
    }
    return removed
  }

  async reschedule(id: string, when: Duration | Date | undefined, options: { priority?: number }): Promise<boolean> {
    onlyKnown('options', options, ['priority'])
    const bytes = Buffer.from(assertKnownId('id', id))
    const priority = options.priority === undefined ? AS_SET : assertPriority(options.priority)
    const isAsSet = when === undefined && priority !== AS_SET
    const visibleAt = await this.#store.reschedule(bytes, isAsSet ? '' : this.#timeOf(when), priority)
    if (visibleAt !== null && visibleAt < 0)
      throw new InvalidArgumentError('delay', 'a time of at most 2^53-1 ms', when)
    return visibleAt !== null
  }

  #timeOf(when: Duration | Date | undefined): string {
    if (when instanceof Date) return dateText('delay', when)
    const delayMs = durationMs('delay', when)
    warnOfTimestamp(this.#handle.context, this.#handle.name, delayMs)
    return String(delayMs)
  }

  async updatePayload(id: string, given: T): Promise<boolean> {
    const bytes = Buffer.from(assertKnownId('id', id))
    const payload = this.#handle.encode(given, 'payload')
    const result = await this.#store.update(bytes, payload)
    if (result < 0) throw new PayloadTooLargeError(payload.length, 'what the queue allows')
    return result === 1
  }

  async move(options: MoveMessages): Promise<number> {
    onlyKnown('options', options, ['to', 'ids', 'count', 'priority'])
    const to = nameOf(options.to)
    const target = this.#keysOf(to)
    const ids = options.ids?.map((id, at) => Buffer.from(assertKnownId(`ids[${at}]`, id)))
    const count = integer('count', options.count ?? 100, 1, 1_000)
    const priority = assertPriority(options.priority ?? 0)
    try {
      return await this.#store.moves.moveTo(target, { ids, count, priority, isRedriven: false })
    } catch (error) {
      if (!(error instanceof CrossSlotError)) throw error
      const message = `the queue ${quoted(to)} is in another cluster slot; give both names the same {tag}`
      throw new CrossSlotError({ cause: error }, message)
    }
  }
}

function nameOf(to: unknown): string {
  const name = typeof to === 'object' && to !== null ? (to as { name?: unknown }).name : to
  if (typeof name === 'string' && name !== '') return name
  throw new InvalidArgumentError('to', 'a reliable queue or its name', to)
}
