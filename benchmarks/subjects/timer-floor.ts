import { Redis } from 'ioredis'
import {
  Collector,
  payloadOf,
  type Session,
  type SessionOptions,
  type Subject,
  type TakeOptions,
  type Taken,
} from './subject.js'

/**
 * The floor of lateness on this machine and at this moment: a timer in the process for each message, and one round trip to the server when
 * it fires. No queue: nothing is stored, and who knows the due time in its own process needs none.
 */
export const timerFloor: Subject = {
  name: 'a timer and a PING (floor)',
  promise: 'no queue',
  open: (options) => Promise.resolve(new TimerSession(options)),
}

class TimerSession implements Session {
  readonly #redis: Redis
  readonly #bytes: number
  readonly #timers: NodeJS.Timeout[] = []
  #collector: Collector | undefined

  constructor({ url, ca, payloadBytes }: SessionOptions) {
    this.#redis = new Redis(url, ca === undefined ? {} : { tls: { ca } })
    this.#bytes = payloadBytes
  }

  async schedule(dues: readonly number[]): Promise<readonly number[]> {
    dues.forEach(
      (due, index) => (this.#timers[index] = setTimeout(() => void this.#fire(index, due), due - Date.now())),
    )
    return Promise.resolve(dues)
  }

  async ready(): Promise<void> {
    await this.#redis.ping()
  }

  async take(count: number, _options: TakeOptions): Promise<Taken> {
    this.#collector = new Collector(count)
    return this.#collector.done
  }

  fill(): Promise<void> {
    return Promise.reject(new Error('it stores nothing'))
  }

  load(): Promise<void> {
    return this.fill()
  }

  produce(): Promise<void> {
    return this.fill()
  }

  add(): Promise<number> {
    return Promise.reject(new Error('it stores nothing'))
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#redis.disconnect()
    return Promise.resolve()
  }

  /** A timer counts from a moment up to a millisecond ago, and fires too early by as much. */
  async #fire(index: number, due: number): Promise<void> {
    if (Date.now() < due) {
      this.#timers[index] = setTimeout(() => void this.#fire(index, due), 1)
      return
    }
    await this.#redis.ping()
    this.#collector?.add(payloadOf(index, this.#bytes))
  }
}
