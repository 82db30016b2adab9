import { run } from '../store/run.js'
import type { Codec } from '../codecs/codec.js'
import { InvalidArgumentError, NoSuchElementError } from '../errors.js'
import type { QueueKeys } from '../keys.js'
import { asInteger } from '../store/replies.js'
import { copy, expire, expireTime, persist, rename } from '../store/scripts.js'
import { toMillis, type TimeUnit } from '../timing/units.js'
import { QueueObject } from './queue-object.js'

type Condition = 'always' | 'unset' | 'set' | 'greater' | 'less'

/**
 * What Redisson's `RObject` and `RExpirable` do with the keys of an object as a whole. They act on the object's own keys:
 * those of a delayed queue are its pending messages, never its destination.
 */
export abstract class KeyedObject<T> extends QueueObject<T> {
  /** The keys that hold the object's state, the one that decides first; the same twice where there is one. */
  protected abstract keysOf(keys: QueueKeys): readonly [first: string, second: string]

  /** The channel on which a schedule is announced that was created under another name; empty where there is none. */
  protected abstract channelOf(keys: QueueKeys): string

  /** Throws when the object may not be used any more. */
  protected assertUsable(): void {}

  /** The queue's name as the application knows it. The same as `name`. */
  getName(): string {
    return this.name
  }

  /** The same as `codec`. */
  getCodec(): Codec<T> {
    return this.codec
  }

  /** Whether there is anything in Redis. */
  async isExists(): Promise<boolean> {
    this.assertUsable()
    return asInteger(await this.handle.call('EXISTS', this.#keys(), { idempotent: true })) > 0
  }

  /** Deletes everything in it; resolves with whether there was anything. */
  async delete(): Promise<boolean> {
    this.assertUsable()
    return asInteger(await this.handle.call('UNLINK', this.#keys())) > 0
  }

  /** The same as `delete`: here too the server frees the memory later. */
  unlink(): Promise<boolean> {
    return this.delete()
  }

  /** Deletes everything in it. */
  async clear(): Promise<void> {
    await this.delete()
  }

  /** Marks it as used just now, for servers that evict what was not used for long; resolves with whether it exists. */
  async touch(): Promise<boolean> {
    this.assertUsable()
    return asInteger(await this.handle.call('TOUCH', this.#keys(), { idempotent: true })) > 0
  }

  /** How many bytes it takes at the server, estimated from a sample. */
  async sizeInMemory(): Promise<number> {
    this.assertUsable()
    const sizes = [...new Set(this.#keys())].map((key) =>
      this.handle.call('MEMORY', ['USAGE', key], { idempotent: true }),
    )
    return (await Promise.all(sizes)).reduce<number>((sum, size) => sum + (size === null ? 0 : asInteger(size)), 0)
  }

  /**
   * Lets everything in it expire: so long from now (milliseconds unless a unit is given), or at a date. Resolves with
   * whether there was anything. An emptied queue forgets it.
   */
  async expire(when: number | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#expire('always', when, unit)
  }

  /** As `expire`, if an expiry is set. */
  async expireIfSet(when: number | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#expire('set', when, unit)
  }

  /** As `expire`, if none is set. */
  async expireIfNotSet(when: number | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#expire('unset', when, unit)
  }

  /** As `expire`, if that is later than now set; what does not expire is later than everything. */
  async expireIfGreater(when: number | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#expire('greater', when, unit)
  }

  /** As `expire`, if that is earlier than now set, or none is set. */
  async expireIfLess(when: number | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#expire('less', when, unit)
  }

  /** Lets it live for ever again; resolves with whether it would have expired. */
  async clearExpire(): Promise<boolean> {
    this.assertUsable()
    const [first, second] = this.#keys()
    return run(this.handle, persist, { first, second }, {})
  }

  /** Milliseconds until it expires; -1 when it does not, -2 when it does not exist. */
  async remainTimeToLive(): Promise<number> {
    this.assertUsable()
    return asInteger(await this.handle.call('PTTL', [this.#keys()[0]], { idempotent: true }))
  }

  /** When it expires, in epoch milliseconds; -1 when it does not, -2 when it does not exist. */
  async getExpireTime(): Promise<number> {
    this.assertUsable()
    return run(this.handle, expireTime, { key: this.#keys()[0] }, {}, { idempotent: true })
  }

  /**
   * Moves everything to the queue `newName`; what stood there is gone. This object keeps its name: get one for the new name
   * to go on. Rejects with a `NoSuchElementError` when there is nothing.
   */
  async rename(newName: string): Promise<void> {
    await this.#rename(newName, true)
  }

  /** As `rename`, if there is nothing under the new name yet; resolves with whether it was renamed. */
  async renamenx(newName: string): Promise<boolean> {
    return this.#rename(newName, false)
  }

  /** Copies everything to the queue `newName` if there is nothing yet; resolves with whether it was copied. */
  async copy(newName: string): Promise<boolean> {
    return this.#copy(newName, false)
  }

  /** As `copy`, in place of what is there. */
  async copyAndReplace(newName: string): Promise<boolean> {
    return this.#copy(newName, true)
  }

  async #expire(condition: Condition, when: number | Date, unit: TimeUnit | undefined): Promise<boolean> {
    this.assertUsable()
    const absolute = when instanceof Date
    const millis = this.handle.checked(() => {
      if (!absolute) return toMillis('duration', when, unit)
      if (when.getTime() >= 0) return when.getTime()
      throw new InvalidArgumentError('date', 'a valid Date from 1970 on', when)
    })
    const [first, second] = this.#keys()
    return run(this.handle, expire, { first, second }, { millis, absolute, condition })
  }

  async #rename(newName: string, replace: boolean): Promise<boolean> {
    const { keys, channel } = this.#under(newName)
    const result = await run(this.handle, rename, keys, { replace, channel })
    if (result < 0) throw this.handle.withQueueName(new NoSuchElementError())
    return result === 1
  }

  async #copy(newName: string, replace: boolean): Promise<boolean> {
    const { keys, channel } = this.#under(newName)
    return run(this.handle, copy, keys, { replace, channel })
  }

  #under(newName: string) {
    this.assertUsable()
    const other = this.handle.checked(() => this.context.keysOf(newName))
    const [first, second] = this.#keys()
    const [newFirst, newSecond] = this.keysOf(other)
    return { keys: { first, second, newFirst, newSecond }, channel: this.channelOf(other) }
  }

  #keys(): readonly [string, string] {
    return this.keysOf(this.identity.keys)
  }
}
