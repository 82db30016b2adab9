import type { QueueKeys } from '../keys.js'
import { asInteger } from './replies.js'
import { run } from './run.js'
import { copy, expire, expireTime, persist, rename } from './scripts.js'
import type { Sender } from './sender.js'

/** The keys of an object, the deciding one first; the same key twice if there is only one. */
export interface ObjectKeys {
  readonly first: string
  readonly second: string
  /** The channel for a schedule that was created under another name; empty for a list. */
  readonly channel: string
}

export function listKeys({ destination }: QueueKeys): ObjectKeys {
  return { first: destination, second: destination, channel: '' }
}

/** The keys of the pending messages, never the destination. */
export function scheduleKeys({ timeouts, order, channel }: QueueKeys): ObjectKeys {
  return { first: timeouts, second: order, channel }
}

/** The keys of one object as a whole: their existence, expiry and names. */
export class ObjectStore {
  readonly #sender: Sender
  readonly #keys: ObjectKeys
  readonly #both: readonly string[]

  constructor(sender: Sender, keys: ObjectKeys) {
    this.#sender = sender
    this.#keys = keys
    this.#both = [keys.first, keys.second]
  }

  async exists(): Promise<boolean> {
    return asInteger(await this.#sender.call('EXISTS', this.#both, { resend: 'reads' })) > 0
  }

  async unlink(): Promise<boolean> {
    return asInteger(await this.#sender.call('UNLINK', this.#both)) > 0
  }

  async touch(): Promise<boolean> {
    return asInteger(await this.#sender.call('TOUCH', this.#both, { resend: 'harmless' })) > 0
  }

  /** The memory of all keys in bytes. */
  async memory(): Promise<number> {
    const replies = [...new Set(this.#both)].map((key) =>
      this.#sender.call('MEMORY', ['USAGE', key], { resend: 'reads' }),
    )
    return (await Promise.all(replies)).reduce<number>((sum, size) => sum + (size === null ? 0 : asInteger(size)), 0)
  }

  /** Milliseconds until the object expires; -1 if it does not expire, -2 if it does not exist. */
  async timeToLive(): Promise<number> {
    return asInteger(await this.#sender.call('PTTL', [this.#keys.first], { resend: 'reads' }))
  }

  /** When the object expires, in epoch milliseconds; -1 and -2 as above. */
  expireTime(): Promise<number> {
    return run(this.#sender, expireTime, { key: this.#keys.first }, {}, { resend: 'reads' })
  }

  /** Sets an expiry; false if the condition is not met, or the object does not exist. */
  expire(how: {
    readonly millis: number
    /** Whether `millis` counts from the epoch; otherwise from now. */
    readonly absolute: boolean
    readonly condition: 'always' | 'unset' | 'set' | 'greater' | 'less'
  }): Promise<boolean> {
    return run(this.#sender, expire, this.#keys, how)
  }

  /** Removes the expiry; resolves with whether there was one. */
  persist(): Promise<boolean> {
    return run(this.#sender, persist, this.#keys, {})
  }

  /** 1 when renamed, 0 when a new name is taken, -1 when there is nothing to rename. */
  rename(target: ObjectKeys, replace: boolean): Promise<number> {
    return run(this.#sender, rename, this.#and(target), { replace, channel: target.channel })
  }

  copy(target: ObjectKeys, replace: boolean): Promise<boolean> {
    return run(this.#sender, copy, this.#and(target), { replace, channel: target.channel })
  }

  #and({ first, second }: ObjectKeys) {
    return { ...this.#keys, newFirst: first, newSecond: second }
  }
}
