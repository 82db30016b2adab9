import { InvalidArgumentError, NoSuchElementError } from '../errors.js'
import type { QueueKeys } from '../keys.js'
import { ObjectStore, type ObjectKeys } from '../store/object-store.js'
import type { Duration } from '../duration.js'
import { toMillis, type TimeUnit } from '../timing/units.js'
import type { QueueHandle } from './queue-handle.js'

/** The condition on the current expiry for setting a new one. */
type Condition = 'always' | 'unset' | 'set' | 'greater' | 'less'

/** The methods of `KeyedObject` that need Redis. */
export class ObjectOperations {
  readonly #handle: QueueHandle<unknown>
  readonly #keysOf: (keys: QueueKeys) => ObjectKeys
  readonly #store: ObjectStore

  /** `keysOf` selects the keys of a queue that hold the object. */
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
    if (!(when instanceof Date)) {
      return this.#store.expire({ millis: toMillis('duration', when, unit), absolute: false, condition })
    }
    if (!(when.getTime() >= 0)) throw new InvalidArgumentError('date', 'a valid Date from 1970 on', when)
    return this.#store.expire({ millis: when.getTime(), absolute: true, condition })
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
    if (result < 0) throw new NoSuchElementError()
    return result === 1
  }

  async copy(newName: string, replace: boolean): Promise<boolean> {
    return this.#store.copy(this.#under(newName), replace)
  }

  #under(newName: string): ObjectKeys {
    this.#handle.assertUsable()
    return this.#keysOf(this.#handle.context.keysOf(newName))
  }
}
