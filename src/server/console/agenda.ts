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

/** So many topics are counted at once, so that a reply is awaited while others are on their way. */
const AT_ONCE = 64
/** After so long no more topics are counted. */
const MOST_MS = 10_000

/** How many messages become visible when. */
export class AgendaReader {
  readonly #redis: ScriptRunner
  readonly #topics: Pick<Topics, 'now' | 'openIfThere'>

  constructor(redis: ScriptRunner, topics: Pick<Topics, 'now' | 'openIfThere'>) {
    this.#redis = redis
    this.#topics = topics
  }

  async read(names: readonly string[], from: number, to: number, count: number): Promise<Agenda> {
    const at = this.#topics.now()
    const span = spanOf(from, to, count)
    const counts = new DueCounts(this.#redis, at, span)
    const until = performance.now() + MOST_MS
    const left = names.values()
    let counted = 0
    const work = async (): Promise<void> => {
      for (const name of left) {
        if (performance.now() > until) return
        const topic = await this.#topics.openIfThere(name)
        for (const shard of topic?.shards ?? []) await counts.add(shard.name)
        counted++
      }
    }
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, names.length) }, work))
    return { at, from, to, bucketMs: span.bucketMs, ...counts.result(counted === names.length) }
  }
}
