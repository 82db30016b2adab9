import { recordIn, type Form } from '../records/record-in.js'
import { logPage } from '../records/scripts/generated.js'
import { runScript, type ScriptRunner } from '../run-script.js'

/** The commands of an ioredis client that a log sends. */
export interface LogCommands extends ScriptRunner {
  xadd(...args: [key: string, ...rest: (string | number)[]]): Promise<unknown>
  pexpire(key: string, ms: number): Promise<unknown>
  del(key: string): Promise<unknown>
}

export interface LogPage<T> {
  readonly entries: T[]
  /** The place before which the next page begins. */
  readonly next: string | undefined
}

/** The most bytes of an entry; a webhook's has up to twice 4 KiB of an answer. */
const MOST_BYTES = 65_536

/** Logs of recent entries, each a bounded Redis stream. Entries that no instance has written are left out. */
export class StreamLog<T> {
  readonly #redis: LogCommands
  readonly #form: Form<T>
  readonly #bounds: { readonly count: number; readonly ms?: number }

  /** @param bounds about how many entries are kept, and how long after the last one */
  constructor(redis: LogCommands, form: Form<T>, bounds: { readonly count: number; readonly ms?: number }) {
    this.#redis = redis
    this.#form = form
    this.#bounds = bounds
  }

  async add(key: string, entry: T): Promise<void> {
    const { count, ms } = this.#bounds
    await Promise.all([
      this.#redis.xadd(key, 'MAXLEN', '~', count, '*', 'd', JSON.stringify(entry)),
      ms === undefined ? undefined : this.#redis.pexpire(key, ms),
    ])
  }

  /** Entries before a place in the log, the newest first. */
  async list(key: string, count: number, before?: string): Promise<LogPage<T>> {
    const { entries, next } = await this.places(key, count, before)
    return { entries: entries.map(({ entry }) => entry), next }
  }

  /** The same, each with its place in the log. */
  async places(key: string, count: number, before?: string): Promise<LogPage<{ place: string; entry: T }>> {
    const from = before === undefined ? '+' : `(${before}`
    const [next = '', ...page] = (await runScript(this.#redis, logPage, key, from, count, MOST_BYTES)) as string[]
    const entries = page.flatMap((text, at) => {
      const entry = at % 2 === 1 ? recordIn(text, this.#form) : undefined
      return entry === undefined ? [] : [{ place: page[at - 1] ?? '', entry }]
    })
    return { entries, next: next === '' ? undefined : next }
  }

  async forget(key: string): Promise<void> {
    await this.#redis.del(key)
  }
}
