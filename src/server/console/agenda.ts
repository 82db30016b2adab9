import type { Topics } from '../topics/topics.js'
import { dueKeysOf } from './reliable-keys.js'

/** The commands of an ioredis client that are needed. */
export interface CountCommands {
  pipeline(commands: string[][]): { exec(): Promise<[error: Error | null, reply: unknown][] | null> }
}

export interface Agenda {
  readonly at: number
  readonly from: number
  readonly to: number
  readonly bucketMs: number
  readonly buckets: { readonly from: number; readonly to: number; readonly count: number }[]
  /** Due before `at`, and with no consumer. */
  readonly overdue: number
  /** Due from `to` on. */
  readonly later: number
  /** False: there are more topics than one request counts. */
  readonly exact: boolean
}

/** So many commands one request sends, and so many one pipeline: about a millisecond of Redis. */
const MOST_COMMANDS = 20_000
const PIPELINE = 500

/** How many messages become visible when. */
export class AgendaReader {
  readonly #redis: CountCommands
  readonly #topics: Topics

  constructor(redis: CountCommands, topics: Topics) {
    this.#redis = redis
    this.#topics = topics
  }

  async read(names: readonly string[], from: number, to: number, count: number): Promise<Agenda> {
    const at = this.#topics.now()
    const bucketMs = Math.max(1, Math.ceil((to - from) / count))
    const starts = Array.from({ length: Math.ceil((to - from) / bucketMs) }, (_, n) => from + n * bucketMs)
    const counts = starts.map(() => 0)
    let [overdue, later, sent, exact] = [0, 0, 0, true]
    for (const name of names) {
      const topic = await this.#topics.openIfThere(name)
      for (const shard of topic?.shards ?? []) {
        if (sent >= MOST_COMMANDS) {
          exact = false
          break
        }
        const keys = dueKeysOf(shard.name)
        const around = await this.#count(
          keys.flatMap((key) => [
            [key, '-inf', `(${at}`],
            [key, String(from), `(${to}`],
            [key, String(to), '+inf'],
          ]),
        )
        sent += around.length
        const busy: string[] = []
        keys.forEach((key, n) => {
          overdue += around[3 * n] ?? 0
          later += around[3 * n + 2] ?? 0
          if ((around[3 * n + 1] ?? 0) > 0) busy.push(key)
        })
        for (const key of busy) {
          const found = await this.#count(
            starts.map((start) => [key, String(start), `(${Math.min(start + bucketMs, to)}`]),
          )
          sent += found.length
          found.forEach((each, n) => (counts[n] = (counts[n] ?? 0) + each))
        }
      }
      if (!exact) break
    }
    const buckets = starts.map((start, n) => ({
      ...{ from: start, to: Math.min(start + bucketMs, to), count: counts[n] ?? 0 },
    }))
    return { at, from, to, bucketMs, buckets, overdue, later, exact }
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
    return counts
  }
}
