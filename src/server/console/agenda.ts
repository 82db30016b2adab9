import type { Topics } from '../topics/topics.js'
import { AgendaCounts, spanOf, type CountCommands, type Counted } from './agenda-counts.js'
import { dueKeysOf } from './reliable-keys.js'

export interface Agenda extends Counted {
  readonly at: number
  readonly from: number
  readonly to: number
  readonly bucketMs: number
  /** False: there are more topics than one request counts. */
  readonly exact: boolean
}

/** So many commands one request sends. */
const MOST_COMMANDS = 20_000

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
    const answer = (exact: boolean): Agenda => ({
      ...{ at, from, to, bucketMs: span.bucketMs, exact },
      ...counts.result(),
    })
    for (const name of names) {
      const topic = await this.#topics.openIfThere(name)
      for (const shard of topic?.shards ?? []) {
        if (counts.sent >= MOST_COMMANDS) return answer(false)
        await counts.add(dueKeysOf(shard.name))
      }
    }
    return answer(true)
  }
}
