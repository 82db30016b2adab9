import { objectIn } from './stored-json.js'

/** The commands of an ioredis client that a log sends. */
export interface LogCommands {
  xadd(...args: [key: string, ...rest: (string | number)[]]): Promise<unknown>
  pexpire(key: string, ms: number): Promise<unknown>
  xrevrange(...args: [key: string, from: string, to: string, word: 'COUNT', count: number]): Promise<unknown>
  del(key: string): Promise<unknown>
}

export interface LogPage<T> {
  readonly entries: T[]
  /** Where the next page begins. */
  readonly next: string | undefined
}

/** The last entries of logs, each a Redis stream with a bound of its own. */
export class StreamLog<T> {
  readonly #redis: LogCommands
  readonly #bounds: { readonly count: number; readonly ms?: number }

  /** @param bounds about so many entries are kept, and all of them for so long after the last one */
  constructor(redis: LogCommands, bounds: { readonly count: number; readonly ms?: number }) {
    this.#redis = redis
    this.#bounds = bounds
  }

  async add(key: string, entry: T): Promise<void> {
    const { count, ms } = this.#bounds
    await Promise.all([
      this.#redis.xadd(key, 'MAXLEN', '~', count, '*', 'd', JSON.stringify(entry)),
      ms === undefined ? undefined : this.#redis.pexpire(key, ms),
    ])
  }

  /** The newest first, before a place in the log; without what no instance has written. */
  async list(key: string, count: number, before?: string): Promise<LogPage<T>> {
    const from = before === undefined ? '+' : `(${before}`
    const found = (await this.#redis.xrevrange(key, from, '-', 'COUNT', count + 1)) as [string, string[]][]
    const page = found.slice(0, count)
    return {
      entries: page.flatMap(([, fields]) => (objectIn(fields[1]) as T | undefined) ?? []),
      next: found.length > count ? page.at(-1)?.[0] : undefined,
    }
  }

  async forget(key: string): Promise<void> {
    await this.#redis.del(key)
  }
}
