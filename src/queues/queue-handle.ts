import { closeBudget, openBudget } from '../codecs/budget.js'
import type { Codec } from '../codecs/codec.js'
import {
  DecodeError,
  EncodeError,
  InvalidArgumentError,
  NoSuchElementError,
  PayloadTooLargeError,
  RedelayedError,
  ShutdownError,
  attributeTo,
  describe,
  toError,
  withCallers,
} from '../errors.js'
import type { CallOptions, Command, CommandArg, Sender } from '../store/sender.js'
import { nextTurn } from '../timing/pause.js'
import type { QueueContext } from './context.js'

/** After this many errors other work of the event loop gets a turn. */
const FAILURES_PER_TURN = 250

/**
 * The part that every queue object has: a name, a codec and the client's parts. It encodes and decodes values, and sends commands; its
 * errors carry the queue's name.
 */
export class QueueHandle<T> implements Sender {
  /** The queue's name as the application knows it. */
  readonly name: string
  readonly codec: Codec<T>
  readonly context: QueueContext
  /** Why the object can no longer be used. */
  #ended: string | undefined

  constructor(context: QueueContext, { name, codec }: { readonly name: string; readonly codec: Codec<T> }) {
    this.context = context
    this.name = name
    this.codec = codec
  }

  get isUsable(): boolean {
    return this.#ended === undefined
  }

  /** Ends the use of the object; false if it had ended before. */
  end(why: string): boolean {
    if (this.#ended !== undefined) return false
    this.#ended = why
    return true
  }

  assertUsable(): void {
    if (this.#ended !== undefined) throw this.withQueueName(new ShutdownError(this.#ended))
  }

  /** `what` names the value in errors. */
  encode(value: T, what = 'value'): Buffer {
    if (value === null || value === undefined)
      throw this.withQueueName(new InvalidArgumentError(what, 'a value', value))
    let bytes: Buffer
    try {
      bytes = this.codec.encode(value)
    } catch (thrown) {
      if (thrown instanceof RedelayedError) throw this.withQueueName(thrown)
      throw this.withQueueName(new EncodeError(this.codec.name, '$', toError(thrown).message, { cause: thrown }))
    }
    if (!Buffer.isBuffer(bytes)) {
      const problem = `its encode returned ${describe(bytes)} instead of a Buffer`
      throw this.withQueueName(new EncodeError(this.codec.name, '$', problem))
    }
    this.#assertSize(bytes)
    return bytes
  }

  /** The bytes of each different value once. */
  encodeDistinct(values: Iterable<T>, limit = Infinity): Buffer[] {
    const distinct = new Map<string, Buffer>()
    let index = 0
    for (const value of values) {
      const bytes = this.encode(value, `values[${index++}]`)
      distinct.set(bytes.toString('latin1'), bytes)
    }
    if (distinct.size > limit) {
      const error = new InvalidArgumentError('values', `at most ${limit} different ones`, [...distinct.keys()])
      throw this.withQueueName(error)
    }
    return [...distinct.values()]
  }

  decode(bytes: Buffer): T {
    this.#assertSize(bytes)
    let value: T
    try {
      openBudget().allow(this.context.settings.maxPayloadBytes)
      value = this.codec.decode(bytes)
    } catch (thrown) {
      if (thrown instanceof RedelayedError) throw this.withQueueName(thrown)
      throw this.withQueueName(new DecodeError(this.codec.name, toError(thrown).message, { cause: thrown }))
    } finally {
      closeBudget()
    }
    // null means an empty queue, so it cannot be a message
    if (value === null || value === undefined) {
      throw this.withQueueName(
        new DecodeError(this.codec.name, 'the payload decoded to null, which is not a valid element'),
      )
    }
    return value
  }

  /** Decodes elements that stay where they are; undecodable ones are left out and reported by an `error` event. */
  async decodeAll(
    elements: readonly Buffer[],
    decode: (bytes: Buffer) => T = (bytes) => this.decode(bytes),
  ): Promise<T[]> {
    const values: T[] = []
    let failed = 0
    for (const bytes of elements) {
      try {
        values.push(decode(bytes))
      } catch (thrown) {
        this.context.hub.emit('error', this.withQueueName(thrown as RedelayedError))
        // an error takes a hundred times as long as a value, and there can be any number of them
        if (++failed % FAILURES_PER_TURN === 0) await nextTurn()
      }
    }
    return values
  }

  /** Sends one command. */
  async call(command: string, args: readonly CommandArg[], options?: CallOptions): Promise<unknown> {
    return this.attribute(this.context.commands.call(command, args, options))
  }

  async pipeline(commands: readonly Command[], options?: Omit<CallOptions, 'resend'>): Promise<unknown[]> {
    return this.attribute(this.context.commands.pipeline(commands, options))
  }

  /** Runs an operation of several commands; a shutdown lets all of them finish. */
  trackOperation<R>(action: () => Promise<R>): Promise<R> {
    return this.attribute(this.context.commands.trackOperation(action))
  }

  /** Throws `NoSuchElementError` when the value is null. */
  orThrow<V>(value: V | null): V {
    if (value === null) throw new NoSuchElementError()
    return value
  }

  async attribute<R>(promise: Promise<R>): Promise<R> {
    try {
      return await promise
    } catch (error) {
      throw this.attributed(error)
    }
  }

  /** The caught error; one of this package gets the queue's name and the callers. */
  attributed(thrown: unknown): unknown {
    return thrown instanceof RedelayedError ? this.withQueueName(withCallers(thrown)) : thrown
  }

  withQueueName<E extends RedelayedError>(error: E): E {
    return attributeTo(error, this.name)
  }

  #assertSize(bytes: Buffer): void {
    const limit = this.context.settings.maxPayloadBytes
    if (bytes.length > limit) throw this.withQueueName(new PayloadTooLargeError(bytes.length, limit))
  }
}
