import type { ScriptRunner } from '../run-script.js'
import type { Topics } from '../topics/topics.js'
import { spanOf, type Counted } from './agenda-counts.js'
import { DueCounts } from './due-counts.js'

export interface Agenda extends Counted {
  readonly at: number
  readonly from: number
  readonly to: number
  readonly bucketMs: number
}

/** The most queues counted at once by all requests together, so that replies overlap. */
const AT_ONCE = 32
/** The longest that one request counts queues. */
const MOST_MS = 10_000

/** Reads when how many messages become visible. */
export class AgendaReader {
  readonly #redis: ScriptRunner
  readonly #topics: Pick<Topics, 'now' | 'queuesOf'>
  readonly #mostMs: number
  readonly #turns = new Turns(AT_ONCE)

  constructor(redis: ScriptRunner, topics: Pick<Topics, 'now' | 'queuesOf'>, mostMs = MOST_MS) {
    this.#redis = redis
    this.#topics = topics
    this.#mostMs = mostMs
  }

  /** @param isGone whether the caller no longer waits for the result */
  async read(
    names: readonly string[],
    { from, to, count }: { readonly from: number; readonly to: number; readonly count: number },
    isGone: () => boolean = () => false,
  ): Promise<Agenda> {
    const topics = await this.#topics.queuesOf(names)
    const at = this.#topics.now()
    const span = spanOf(from, to, count)
    const counts = new DueCounts(this.#redis, at, span)
    const until = performance.now() + this.#mostMs
    const isOver = (): boolean => performance.now() > until || isGone()
    const left = topics.values()
    let counted = 0
    const work = async (): Promise<void> => {
      for (const { queues } of left) {
        if (isOver()) return
        for (const queue of queues) {
          const isCounted = await this.#turns.run(async () => {
            if (isOver()) return false
            await counts.add(queue)
            return true
          })
          if (!isCounted) return
        }
        counted++
      }
    }
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, topics.length) }, work))
    return { at, from, to, bucketMs: span.bucketMs, ...counts.result(counted === topics.length) }
  }
}

/** Limits how many actions run at once, in order of arrival, so that a small request need not wait for all of a large one. */
class Turns {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  async run<T>(action: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => void this.#waiting.push(resolve))
    try {
      return await action()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}
