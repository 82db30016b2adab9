import type { SessionCommands } from './sessions.js'

/** More end the oldest. */
const MOST = 10_000

/** The sessions of one process that must not write into Redis. */
export class MemorySessions implements SessionCommands {
  readonly #values = new Map<string, { readonly value: string; readonly endsAt: number }>()

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

  async del(key: string): Promise<void> {
    this.#values.delete(key)
  }
}
