import { runScript, type ScriptRunner } from '../run-script.js'
import type { Counted, Span } from './agenda-counts.js'
import { dueKeysOf } from './reliable-keys.js'
import { dueCounts } from './scripts/generated.js'

/** Counts when how many messages of reliable queues are due, with a script or two for each queue. */
export class DueCounts {
  readonly #redis: ScriptRunner
  readonly #at: number
  readonly #span: Span
  readonly #counts: number[]
  #overdue = 0
  #later = 0

  constructor(redis: ScriptRunner, at: number, span: Span) {
    this.#redis = redis
    this.#at = at
    this.#span = span
    this.#counts = span.starts.map(() => 0)
  }

  /** Counts a queue; several calls may run at once. If it fails halfway, the counts so far stay. */
  async add(queue: string): Promise<void> {
    const keys = dueKeysOf(queue)
    const { from, to, bucketMs } = this.#span
    for (let first = 1; first !== 0;) {
      const reply = (await runScript(this.#redis, dueCounts, keys, first, this.#at, from, to, bucketMs)) as number[]
      const [next = 0, overdue = 0, later = 0, ...parts] = reply.map(Number)
      this.#overdue += overdue
      this.#later += later
      for (let n = 0; n + 1 < parts.length; n += 2) {
        const part = parts[n] as number
        this.#counts[part] = (this.#counts[part] ?? 0) + (parts[n + 1] as number)
      }
      first = next
    }
  }

  /** @param exact whether all queues were counted */
  result(exact: boolean): Counted {
    const { to, bucketMs, starts } = this.#span
    const buckets = starts.map((start, n) => ({
      ...{ from: start, to: Math.min(start + bucketMs, to), count: this.#counts[n] ?? 0 },
    }))
    return { buckets, overdue: this.#overdue, later: this.#later, exact }
  }
}
