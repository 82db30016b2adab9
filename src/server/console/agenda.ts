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

/** So many queues are counted at once, for all requests together, so that a reply is awaited while others are on their way. */
const AT_ONCE = 16
/** After so long one request counts no more queues. */
const MOST_MS = 10_000

/** How many messages become visible when. */
export class AgendaReader {
  readonly #redis: ScriptRunner
  readonly #topics: Pick<Topics, 'now' | 'openIfThere'>
  readonly #mostMs: number
  readonly #turns = new Turns(AT_ONCE)

  constructor(redis: ScriptRunner, topics: Pick<Topics, 'now' | 'openIfThere'>, mostMs = MOST_MS) {
    this.#redis = redis
    this.#topics = topics
    this.#mostMs = mostMs
  }

  /** @param isGone whether no one waits for it any more */
  async read(
    names: readonly string[],
    { from, to, count }: { readonly from: number; readonly to: number; readonly count: number },
    isGone: () => boolean = () => false,
  ): Promise<Agenda> {
    const at = this.#topics.now()
    const span = spanOf(from, to, count)
    const counts = new DueCounts(this.#redis, at, span)
    const until = performance.now() + this.#mostMs
    const isOver = (): boolean => performance.now() > until || isGone()
    const left = names.values()
    let counted = 0
    const work = async (): Promise<void> => {
      for (const name of left) {
        if (isOver()) return
        const topic = await this.#topics.openIfThere(name)
        for (const shard of topic?.shards ?? []) {
          const isCounted = await this.#turns.run(async () => {
            if (isOver()) return false
            await counts.add(shard.name)
            return true
          })
          if (!isCounted) return
        }
        counted++
      }
    }
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, names.length) }, work))
    return { at, from, to, bucketMs: span.bucketMs, ...counts.result(counted === names.length) }
  }
}

/** Has so many run at once, in the order in which they have come: a small request is not behind all of a large one. */
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
