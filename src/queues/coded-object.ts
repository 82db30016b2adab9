import { closeBudget, openBudget } from '../codecs/budget.js'
import type { Codec } from '../codecs/codec.js'
import {
  DecodeError,
  EncodeError,
  InvalidArgumentError,
  NoSuchElementError,
  PayloadTooLargeError,
  RedelayedError,
  attributeTo,
  describe,
  toError,
} from '../errors.js'
import { run } from '../store/run.js'
import type { ArgsOf, CommandArg, KeysOf, Script, ScriptSource } from '../store/script.js'
import type { QueueContext } from './context.js'

/** What everything with a name and a codec does alike: encode, decode, send, and put the name on errors. */
export abstract class CodedObject<T> {
  /** The queue's name as the application knows it. */
  readonly name: string
  readonly codec: Codec<T>
  /** @internal */
  readonly context: QueueContext

  /** @internal */
  constructor(context: QueueContext, { name, codec }: { readonly name: string; readonly codec: Codec<T> }) {
    this.context = context
    this.name = name
    this.codec = codec
  }

  protected encode(value: T, what = 'value'): Buffer {
    if (value === null || value === undefined) throw this.named(new InvalidArgumentError(what, 'a value', value))
    let bytes: Buffer
    try {
      bytes = this.codec.encode(value)
    } catch (thrown) {
      if (thrown instanceof RedelayedError) throw this.named(thrown)
      throw this.named(new EncodeError(this.codec.name, '$', toError(thrown).message, { cause: thrown }))
    }
    if (!Buffer.isBuffer(bytes)) {
      throw this.named(
        new EncodeError(this.codec.name, '$', `its encode returned ${describe(bytes)} instead of a Buffer`),
      )
    }
    const limit = this.context.settings.maxPayloadBytes
    if (bytes.length > limit) throw this.named(new PayloadTooLargeError(bytes.length, limit))
    return bytes
  }

  /** What must be there. */
  protected required<V>(value: V | null): V {
    if (value === null) throw this.named(new NoSuchElementError())
    return value
  }

  protected decode(bytes: Buffer): T {
    const limit = this.context.settings.maxPayloadBytes
    if (bytes.length > limit) throw this.named(new PayloadTooLargeError(bytes.length, limit))
    let value: T
    try {
      openBudget().allow(limit)
      value = this.codec.decode(bytes)
    } catch (thrown) {
      if (thrown instanceof RedelayedError) throw this.named(thrown)
      throw this.named(new DecodeError(this.codec.name, toError(thrown).message, { cause: thrown }))
    } finally {
      closeBudget()
    }
    // an empty result means an empty queue, so null cannot be a message
    if (value === null || value === undefined) throw this.named(new DecodeError(this.codec.name, 'they mean null'))
    return value
  }

  /** A command that changes something: sent once. */
  protected async send(command: string, args: readonly CommandArg[]): Promise<unknown> {
    return this.attribute(this.context.commands.call(command, args))
  }

  /** A command that changes nothing: sent again when the connection breaks. */
  protected async read(command: string, args: readonly CommandArg[]): Promise<unknown> {
    return this.attribute(this.context.commands.call(command, args, { idempotent: true }))
  }

  protected async script<S extends ScriptSource, R>(
    script: Script<S, R>,
    keys: KeysOf<S>,
    args: ArgsOf<S>,
    options?: { idempotent?: boolean },
  ): Promise<R> {
    return this.attribute(run(this.context.commands, script, keys, args, options))
  }

  /** Something that takes several commands: a shutdown lets all of them finish. */
  protected whole<R>(action: () => Promise<R>): Promise<R> {
    return this.attribute(this.context.commands.whole(action))
  }

  /** An argument check whose error names the queue. */
  protected checked<R>(check: () => R): R {
    try {
      return check()
    } catch (error) {
      throw error instanceof RedelayedError ? this.named(error) : error
    }
  }

  protected named<E extends RedelayedError>(error: E): E {
    return attributeTo(error, this.name)
  }

  protected async attribute<R>(promise: Promise<R>): Promise<R> {
    try {
      return await promise
    } catch (error) {
      throw error instanceof RedelayedError ? this.named(error) : error
    }
  }
}
