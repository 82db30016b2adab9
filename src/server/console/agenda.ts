import type { Topics } from '../topics/topics.js'
import { AgendaCounts, spanOf, type CountCommands, type Counted } from './agenda-counts.js'
import { dueKeysOf } from './reliable-keys.js'

export interface Agenda extends Counted {
  readonly at: number
  readonly from: number
  readonly to: number
  readonly bucketMs: number
}

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
    const span = spanOf(from, to, count)
    const counts = new AgendaCounts(this.#redis, at, span)
    const answer = (): Agenda => ({ at, from, to, bucketMs: span.bucketMs, ...counts.result() })
    for (const name of names) {
      const topic = await this.#topics.openIfThere(name)
      for (const shard of topic?.shards ?? []) {
        if (!(await counts.add(dueKeysOf(shard.name)))) return answer()
      }
    }
    return answer()
  }
}
