import type { QueueKeys } from '../keys.js'
import { asInteger } from './replies.js'
import { run } from './run.js'
import { copy, expire, expireTime, persist, rename } from './scripts.js'
import type { Sender } from './sender.js'

/** The keys that hold an object's state, the one that decides first; the same twice where there is one. */
export interface ObjectKeys {
  readonly first: string
  readonly second: string
  /** Where a schedule is announced that was created under another name; empty for a list. */
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
    return asInteger(await this.#sender.call('EXISTS', this.#both, { idempotent: true })) > 0
  }

  async unlink(): Promise<boolean> {
    return asInteger(await this.#sender.call('UNLINK', this.#both)) > 0
  }

  async touch(): Promise<boolean> {
    return asInteger(await this.#sender.call('TOUCH', this.#both, { idempotent: true })) > 0
  }

  /** The bytes of all keys. */
  async memory(): Promise<number> {
    const replies = [...new Set(this.#both)].map((key) =>
      this.#sender.call('MEMORY', ['USAGE', key], { idempotent: true }),
    )
    return (await Promise.all(replies)).reduce<number>((sum, size) => sum + (size === null ? 0 : asInteger(size)), 0)
  }

  /** Milliseconds until it expires; -1 when it does not, -2 when it does not exist. */
  async timeToLive(): Promise<number> {
    return asInteger(await this.#sender.call('PTTL', [this.#keys.first], { idempotent: true }))
  }

  /** When it expires, in epoch milliseconds; -1 and -2 as above. */
  expireTime(): Promise<number> {
    return run(this.#sender, expireTime, { key: this.#keys.first }, {}, { idempotent: true })
  }

  /** False when the condition does not hold, or it does not exist. */
  expire(how: {
    readonly millis: number
    /** Since the epoch; otherwise from now. */
    readonly absolute: boolean
    readonly condition: 'always' | 'unset' | 'set' | 'greater' | 'less'
  }): Promise<boolean> {
    return run(this.#sender, expire, this.#keys, how)
  }

  /** Whether it would have expired. */
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
