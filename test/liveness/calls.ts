import { RedelayedError } from '../../src/index.js'
import { LostTime } from '../support/lag.js'

interface Call {
  readonly name: string
  readonly startedAt: number
  readonly limitMs: number
  /** The time that the process had lost when it began. */
  readonly lostMs: number
}

/** The most waiting calls of one kind, so that an unresponsive server does not fill the memory. */
const MOST_OF_A_KIND = 6

const lost = new LostTime()
/** The proxy and the servers wait for the same cores. */
const WAITING = 2

/** The duration of a call without the time in which this process could not run, which is not the library's fault. */
function tookBy({ startedAt, lostMs }: Call, now: number): number {
  return now - startedAt - WAITING * (lost.ms - lostMs)
}

/** All calls of one fleet: how long each took, and whether it ended as the docs say. */
export class Calls {
  readonly problems: string[] = []
  readonly errors: Record<string, number> = {}
  /** The start of the last successful call, by name. */
  readonly #lastGood = new Map<string, number>()
  readonly #pending = new Set<Call>()
  readonly #timers: NodeJS.Timeout[] = []

  get pending(): number {
    return this.#pending.size
  }

  /** Makes a call again and again; `undefined` is a call that did nothing, such as a wait without a message. */
  every(name: string, ms: number, limitMs: number, action: () => Promise<unknown>): void {
    const timer = setInterval(() => {
      const own = [...this.#pending].filter((call) => call.name === name)
      if (own.length < MOST_OF_A_KIND) void this.#make(name, limitMs, action)
    }, ms)
    this.#timers.push(timer)
  }

  /** No further calls begin. */
  stop(): void {
    for (const timer of this.#timers) clearInterval(timer)
  }

  /** Something that is no call of its own succeeded: a message was handled that was added at that time. */
  succeeded(name: string, startedAt: number): void {
    this.#lastGood.set(name, Math.max(this.#lastGood.get(name) ?? 0, startedAt))
  }

  /** The names without a successful call that began after the given time. */
  missingSince(at: number, names: readonly string[]): string[] {
    return names.filter((name) => (this.#lastGood.get(name) ?? -1) < at)
  }

  /** Notes the calls that should have ended by now. */
  overdue(): string[] {
    const now = performance.now()
    const late = [...this.#pending].filter((call) => tookBy(call, now) > call.limitMs)
    return late.map(({ name, startedAt, limitMs }) => describe(name, now - startedAt, limitMs, 'and has not ended'))
  }

  stillPending(): string[] {
    return [...new Set([...this.#pending].map(({ name }) => name))]
  }

  async #make(name: string, limitMs: number, action: () => Promise<unknown>): Promise<void> {
    const startedAt = performance.now()
    const call = { name, startedAt, limitMs, lostMs: lost.ms }
    this.#pending.add(call)
    let how = ''
    try {
      if ((await action()) !== undefined) this.succeeded(name, startedAt)
    } catch (error) {
      const isTyped = error instanceof RedelayedError || (error instanceof Error && error.name === 'TimeoutError')
      how = error instanceof RedelayedError ? error.code : String(error)
      if (!isTyped) this.problems.push(`${name} rejected with ${error instanceof Error ? error.stack : String(error)}`)
      this.errors[how] = (this.errors[how] ?? 0) + 1
    } finally {
      this.#pending.delete(call)
    }
    const took = performance.now() - startedAt
    if (tookBy(call, startedAt + took) > limitMs) this.problems.push(describe(name, took, limitMs, how))
  }
}

function describe(name: string, took: number, limitMs: number, how: string): string {
  return `${name} took ${Math.round(took)} ms, at most ${limitMs} ms are documented ${how}`.trim()
}
