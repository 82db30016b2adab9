import type { SessionCommands } from './sessions.js'

/** The most sessions; one more ends the oldest. */
const MOST = 10_000

/** The sessions of a process that must not write to Redis. */
export class MemorySessions implements SessionCommands {
  readonly #values = new Map<string, { readonly value: string; readonly endsAt: number }>()
  /** The sets, one for each API key, with members in the order in which they came. */
  readonly #sets = new Map<string, Set<string>>()

  async set(key: string, value: string, _word: 'PX', ms: number): Promise<void> {
    this.#values.set(key, { value, endsAt: performance.now() + ms })
    const [oldest] = this.#values.keys()
    if (this.#values.size > MOST && oldest !== undefined) this.#values.delete(oldest)
  }

  async get(key: string): Promise<string | null> {
    const found = this.#values.get(key)
    if (found === undefined || found.endsAt > performance.now()) return found?.value ?? null
    this.#values.delete(key)
    return null
  }

  async del(...keys: string[]): Promise<void> {
    for (const key of keys) if (!this.#values.delete(key)) this.#sets.delete(key)
  }

  async zadd(key: string, _score: number, member: string): Promise<void> {
    this.#sets.set(key, (this.#sets.get(key) ?? new Set()).add(member))
  }

  async zrem(key: string, ...members: string[]): Promise<void> {
    for (const member of members) this.#sets.get(key)?.delete(member)
  }

  async zcard(key: string): Promise<number> {
    return this.#sets.get(key)?.size ?? 0
  }

  async zrangebyscore(
    key: string,
    _min: string,
    _max: string,
    _limit: 'LIMIT',
    from: number,
    count: number,
  ): Promise<string[]> {
    return [...(this.#sets.get(key) ?? [])].slice(from, from + count)
  }

  async pexpire(): Promise<void> {
    // not needed: a set has at most as many members as a key may have sessions
  }
}
