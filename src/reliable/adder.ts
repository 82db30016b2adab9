import { AddManyError, InternalError, RedelayedError } from '../errors.js'
import type { Instrumentation } from '../instrumentation.js'
import type { QueueHandle } from '../queues/queue-handle.js'
import {
  assertAddItem,
  assertAddManyOptions,
  assertAddOptions,
  howOf,
  prepare,
  type AddItem,
  type AddManyOptions,
  type AddOptions,
  type How,
  type MessageOptions,
  type PendingMessage,
} from './add-options.js'
import { checkHeaders } from './record.js'

/** The id and the outcome of an added message. */
export interface Added {
  readonly id: string
  /**
   * `'kept'`: a message of this id exists and is unchanged; `'duplicate'`: the message was deduplicated. In both cases the new payload is
   * not in the queue.
   */
  readonly outcome: 'added' | 'replaced' | 'postponed' | 'kept' | 'duplicate'
}

/** Sends checked and encoded messages, to one queue or to several. */
export interface AddRoute {
  /** Draws the id of a message without one; `mark` is its deduplication mark, or empty. */
  drawId(mark: string): string
  /** Resolves with one result or error per message, in order. */
  send(pending: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]>
}

/** Checks and encodes all messages of a call before any is sent, and combines their results. */
export class Adder<T> {
  readonly #handle: QueueHandle<T>
  readonly #route: AddRoute
  readonly #onAdd: Instrumentation['onAdd']

  constructor(handle: QueueHandle<T>, route: AddRoute, instrumentation: Instrumentation | undefined) {
    this.#handle = handle
    this.#route = route
    this.#onAdd = instrumentation?.onAdd?.bind(instrumentation)
  }

  async add(payload: T, options: AddOptions): Promise<Added> {
    assertAddOptions(options)
    const [result] = await this.#route.send([this.#prepare(payload, options, 'payload')], howOf(options))
    if (result !== undefined && !(result instanceof RedelayedError)) return result
    throw result ?? new InternalError('add-result', 'there is none')
  }

  async addMany(items: Iterable<AddItem<T>>, options: AddManyOptions): Promise<Added[]> {
    assertAddManyOptions(options)
    const pending = Array.from(items, (item, at) => {
      assertAddItem(item, at)
      return this.#prepare(item.payload, item, `items[${at}].payload`)
    })
    const results = await this.#route.send(pending, howOf(options))
    const failures = results.flatMap((result, index) =>
      result instanceof RedelayedError ? [{ index, error: this.#handle.withQueueName(result) }] : [],
    )
    if (failures.length === 0) return results as Added[]
    throw new AddManyError(
      results.map((result) => (result instanceof RedelayedError ? null : result)),
      failures,
    )
  }

  #prepare(payload: T, given: MessageOptions, what: string): PendingMessage {
    const headers = this.#onAdd?.(this.#handle.name, checkHeaders(given.headers))
    const options = headers === undefined ? given : { ...given, headers }
    return prepare(options, this.#handle.encode(payload, what), (mark) => this.#route.drawId(mark))
  }
}
