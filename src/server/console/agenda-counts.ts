/** The commands of an ioredis client that the counts need. */
export interface CountCommands {
  readonly isCluster?: boolean
  pipeline(commands: string[][]): { exec(): Promise<[error: Error | null, reply: unknown][] | null> }
}

/** A time span, divided into buckets of one length. */
export interface Span {
  readonly from: number
  readonly to: number
  readonly bucketMs: number
  readonly starts: readonly number[]
}

export interface Counted {
  readonly buckets: { readonly from: number; readonly to: number; readonly count: number }[]
  /** Messages due before the time of the count that no consumer has. */
  readonly overdue: number
  /** Messages due at the end of the span or later. */
  readonly later: number
  /** False: one request could not count everything. */
  readonly exact: boolean
}

/** The most commands of a pipeline: about a millisecond of Redis. */
const PIPELINE = 500
/** After this many commands no further queue is counted. */
const MOST_COMMANDS = 20_000

export function spanOf(from: number, to: number, count: number): Span {
  const bucketMs = Math.max(1, Math.ceil((to - from) / count))
  const starts = Array.from({ length: Math.ceil((to - from) / bucketMs) }, (_, n) => from + n * bucketMs)
  return { from, to, bucketMs, starts }
}

/** Counts when how many messages are due, from schedules (sorted sets of due times), one queue after the other. */
export class AgendaCounts {
  readonly #redis: CountCommands
  readonly #at: number
  readonly #span: Span
  readonly #counts: number[]
  #overdue = 0
  #later = 0
  #sent = 0
  #exact = true

  constructor(redis: CountCommands, at: number, span: Span) {
    this.#redis = redis
    this.#at = at
    this.#span = span
    this.#counts = span.starts.map(() => 0)
  }

  /** Counts the schedules of one queue, which are in one slot. False if it was not counted, because the limit is reached. */
  async add(keys: readonly string[]): Promise<boolean> {
    if (this.#sent >= MOST_COMMANDS) return (this.#exact = false)
    const { from, to, bucketMs, starts } = this.#span
    const around = await this.#count(
      keys.flatMap((key) => [
        [key, '-inf', `(${this.#at}`],
        [key, String(from), `(${to}`],
        [key, String(to), '+inf'],
      ]),
    )
    const busy: string[] = []
    keys.forEach((key, n) => {
      this.#overdue += around[3 * n] ?? 0
      this.#later += around[3 * n + 2] ?? 0
      if ((around[3 * n + 1] ?? 0) > 0) busy.push(key)
    })
    for (const key of busy) {
      const found = await this.#count(starts.map((start) => [key, String(start), `(${Math.min(start + bucketMs, to)}`]))
      found.forEach((each, n) => (this.#counts[n] = (this.#counts[n] ?? 0) + each))
    }
    return true
  }

  result(): Counted {
    const { to, bucketMs, starts } = this.#span
    const buckets = starts.map((start, n) => ({
      ...{ from: start, to: Math.min(start + bucketMs, to), count: this.#counts[n] ?? 0 },
    }))
    return { buckets, overdue: this.#overdue, later: this.#later, exact: this.#exact }
  }

  async #count(ranges: readonly string[][]): Promise<number[]> {
    const counts: number[] = []
    for (let from = 0; from < ranges.length; from += PIPELINE) {
      const commands = ranges.slice(from, from + PIPELINE).map((range) => ['zcount', ...range])
      for (const [error, reply] of (await this.#redis.pipeline(commands).exec()) ?? []) {
        if (error !== null) throw error
        counts.push(Number(reply))
      }
    }
    this.#sent += ranges.length
    return counts
  }
}
