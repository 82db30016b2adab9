import type { Codec } from '../codecs/codec.js'
import type { Duration } from '../duration.js'
import type { TimeUnit } from '../timing/units.js'
import type { QuarantinedEntry } from './quarantine.js'

/**
 * The methods of Redisson's `RObject` and `RExpirable`, which act on all keys of an object. The keys of a delayed queue are
 * those of its pending messages, never its destination.
 */
export interface KeyedObject<T> {
  /** The queue's name as the application knows it. */
  readonly name: string
  readonly codec: Codec<T>

  /**
   * The queue's name as the application knows it. The same as `name`.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * console.log(queue.getName())
   * ```
   */
  getName(): string

  /**
   * The same as `codec`.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * console.log(queue.getCodec().name)
   * ```
   */
  getCodec(): Codec<T>

  /**
   * Whether the object has keys in Redis.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.isExists())
   * ```
   */
  isExists(): Promise<boolean>

  /**
   * Deletes the whole content; resolves with whether there was any.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.delete())
   * ```
   */
  delete(): Promise<boolean>

  /**
   * The same as `delete`: here too the server frees the memory later.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.unlink())
   * ```
   */
  unlink(): Promise<boolean>

  /**
   * Deletes the whole content.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await queue.clear()
   * ```
   */
  clear(): Promise<void>

  /**
   * Marks the object as just used, for servers that evict keys that were not used for long; resolves with whether it exists.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.touch())
   * ```
   */
  touch(): Promise<boolean>

  /**
   * How many bytes the object takes at the server, estimated from a sample.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.sizeInMemory(), 'bytes')
   * ```
   */
  sizeInMemory(): Promise<number>

  /**
   * Lets the whole content expire after a time from now (milliseconds unless a unit is given), or at a date. Resolves with
   * whether there was any content. The expiry ends when the queue becomes empty.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await queue.expire(1, 'days')
   * await queue.expire(new Date('2030-01-01'))
   * ```
   */
  expire(when: Duration | Date, unit?: TimeUnit): Promise<boolean>

  /**
   * As `expire`, if an expiry is set.
   *
   * @throws as `expire`
   *
   * @example
   * ```ts
   * await queue.expireIfSet(1, 'hours')
   * ```
   */
  expireIfSet(when: Duration | Date, unit?: TimeUnit): Promise<boolean>

  /**
   * As `expire`, if none is set.
   *
   * @throws as `expire`
   *
   * @example
   * ```ts
   * await queue.expireIfNotSet(1, 'hours')
   * ```
   */
  expireIfNotSet(when: Duration | Date, unit?: TimeUnit): Promise<boolean>

  /**
   * As `expire`, if the new expiry is later than the current one; no expiry counts as the latest.
   *
   * @throws as `expire`
   *
   * @example
   * ```ts
   * await queue.expireIfGreater(1, 'hours')
   * ```
   */
  expireIfGreater(when: Duration | Date, unit?: TimeUnit): Promise<boolean>

  /**
   * As `expire`, if the new expiry is earlier than the current one, or none is set.
   *
   * @throws as `expire`
   *
   * @example
   * ```ts
   * await queue.expireIfLess(1, 'hours')
   * ```
   */
  expireIfLess(when: Duration | Date, unit?: TimeUnit): Promise<boolean>

  /**
   * Removes the expiry; resolves with whether there was one.
   *
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await queue.clearExpire()
   * ```
   */
  clearExpire(): Promise<boolean>

  /**
   * The milliseconds until the object expires; -1 when it does not expire, -2 when it does not exist.
   *
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.remainTimeToLive())
   * ```
   */
  remainTimeToLive(): Promise<number>

  /**
   * When the object expires, in epoch milliseconds; -1 when it does not expire, -2 when it does not exist.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const at = await queue.getExpireTime()
   * if (at > 0) console.log(new Date(at))
   * ```
   */
  getExpireTime(): Promise<number>

  /**
   * Moves the whole content to the queue `newName`, whose content is deleted. This object keeps its name: get an object for the
   * new name. Rejects with a `NoSuchElementError` when there is no content.
   *
   * @throws NoSuchElementError `ERR_NO_SUCH_ELEMENT`: there is none
   * @throws CrossSlotError `ERR_CROSS_SLOT`: in a cluster, the other queue is in another slot
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await queue.rename('mails:old')
   * ```
   */
  rename(newName: string): Promise<void>

  /**
   * As `rename`, if the new name has no content yet; resolves with whether it was renamed.
   *
   * @throws NoSuchElementError `ERR_NO_SUCH_ELEMENT`: there is none
   * @throws CrossSlotError `ERR_CROSS_SLOT`: in a cluster, the other queue is in another slot
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.renamenx('mails:old'))
   * ```
   */
  renamenx(newName: string): Promise<boolean>

  /**
   * Copies the whole content to the queue `newName`, if that has none yet; resolves with whether it was copied.
   *
   * @throws CrossSlotError `ERR_CROSS_SLOT`: in a cluster, the other queue is in another slot
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.copy('mails:backup'))
   * ```
   */
  copy(newName: string): Promise<boolean>

  /**
   * As `copy`, replacing the content of the other queue.
   *
   * @throws CrossSlotError `ERR_CROSS_SLOT`: in a cluster, the other queue is in another slot
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await queue.copyAndReplace('mails:backup')
   * ```
   */
  copyAndReplace(newName: string): Promise<boolean>

  /**
   * The oldest `limit` (1 to 10,000; default 100) entries of the queue's quarantine. They stay there.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * for (const { reason, at, bytes } of await queue.readQuarantine()) console.log(reason, at, bytes.length)
   * ```
   */
  readQuarantine(limit?: number): Promise<QuarantinedEntry[]>

  /**
   * Deletes the queue's quarantine; resolves with whether there was one.
   *
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await queue.clearQuarantine()
   * ```
   */
  clearQuarantine(): Promise<boolean>
}
