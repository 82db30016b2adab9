import { InvalidArgumentError, NoSuchElementError } from '../errors.js'
import type { QueueKeys } from '../keys.js'
import { ObjectStore, type ObjectKeys } from '../store/object-store.js'
import type { Duration } from '../duration.js'
import { toMillis, type TimeUnit } from '../timing/units.js'
import type { QueueHandle } from './queue-handle.js'

/** Of the expiry that is set now. */
type Condition = 'always' | 'unset' | 'set' | 'greater' | 'less'

/** The methods of `KeyedObject` that need Redis. */
export class ObjectOperations {
  readonly #handle: QueueHandle<unknown>
  readonly #keysOf: (keys: QueueKeys) => ObjectKeys
  readonly #store: ObjectStore

  /** `keysOf`: those of a queue's keys that hold the object. */
  constructor(handle: QueueHandle<unknown>, keys: QueueKeys, keysOf: (keys: QueueKeys) => ObjectKeys) {
    this.#handle = handle
    this.#keysOf = keysOf
    this.#store = new ObjectStore(handle, keysOf(keys))
  }

  async exists(): Promise<boolean> {
    this.#handle.assertUsable()
    return this.#store.exists()
  }

  async delete(): Promise<boolean> {
    this.#handle.assertUsable()
    return this.#store.unlink()
  }

  async touch(): Promise<boolean> {
    this.#handle.assertUsable()
    return this.#store.touch()
  }

  async sizeInMemory(): Promise<number> {
    this.#handle.assertUsable()
    return this.#store.memory()
  }

  async expire(condition: Condition, when: Duration | Date, unit: TimeUnit | undefined): Promise<boolean> {
    this.#handle.assertUsable()
    const absolute = when instanceof Date
    const millis = this.#handle.checked(() => {
      if (!absolute) return toMillis('duration', when, unit)
      if (when.getTime() >= 0) return when.getTime()
      throw new InvalidArgumentError('date', 'a valid Date from 1970 on', when)
    })
    return this.#store.expire({ millis, absolute, condition })
  }

  async clearExpire(): Promise<boolean> {
    this.#handle.assertUsable()
    return this.#store.persist()
  }

  async timeToLive(): Promise<number> {
    this.#handle.assertUsable()
    return this.#store.timeToLive()
  }

  async expireTime(): Promise<number> {
    this.#handle.assertUsable()
    return this.#store.expireTime()
  }

  async rename(newName: string, replace: boolean): Promise<boolean> {
    const result = await this.#store.rename(this.#under(newName), replace)
    if (result < 0) throw this.#handle.withQueueName(new NoSuchElementError())
    return result === 1
  }

  async copy(newName: string, replace: boolean): Promise<boolean> {
    return this.#store.copy(this.#under(newName), replace)
  }

  #under(newName: string): ObjectKeys {
    this.#handle.assertUsable()
    return this.#keysOf(this.#handle.checked(() => this.#handle.context.keysOf(newName)))
  }
}
