import type { Topic } from '../topics/topic.js'
import type { CountCommands } from './agenda-counts.js'
import { configKeyOf } from './reliable-keys.js'

export type Paused = 'receive' | 'push'

/** Reads which sides of topics are paused. A topic is paused as a whole, so its first shard shows it. */
export class Pauses {
  readonly #redis: CountCommands

  constructor(redis: CountCommands) {
    this.#redis = redis
  }

  async of(topics: readonly Topic[]): Promise<Paused[][]> {
    if (topics.length === 0) return []
    const keys = topics.map(({ shards }) => configKeyOf(shards[0]?.name ?? ''))
    // one pipeline each: the keys are in several slots
    const commands = keys.map((key) => this.#redis.pipeline([['hmget', key, 'pollPaused', 'addPaused']]).exec())
    return (await Promise.all(commands))
      .flatMap((replies) => replies ?? [])
      .map(([error, reply]) => {
        if (error !== null) throw error
        const [poll, add] = reply as readonly (string | null)[]
        return [...(poll === '1' ? ['receive' as const] : []), ...(add === '1' ? ['push' as const] : [])]
      })
  }
}
