import type { TopicQueues } from '../topics/known-topics.js'
import type { Topics } from '../topics/topics.js'
import { inFlightKeyOf } from './reliable-keys.js'

/** The command of an ioredis client that this class sends. */
export interface SizeCommands {
  zcard(key: string): Promise<number>
}

/** The most topics asked at once. */
const AT_ONCE = 500

/** Finds the topics whose messages consumers have: usually a few of thousands, so that the others need not be read. */
export class HeldTopics {
  readonly #redis: SizeCommands
  readonly #topics: Pick<Topics, 'queuesOf'>

  constructor(redis: SizeCommands, topics: Pick<Topics, 'queuesOf'>) {
    this.#redis = redis
    this.#topics = topics
  }

  /** The given topics with messages in flight, in their order. */
  async of(names: readonly string[]): Promise<string[]> {
    const all = await this.#topics.queuesOf(names)
    const held = new Set<string>()
    for (let from = 0; from < all.length; from += AT_ONCE) {
      const some = all.slice(from, from + AT_ONCE)
      const answers = await Promise.all(some.map((each) => this.#isHeld(each)))
      some.forEach(({ topic }, at) => answers[at] && held.add(topic))
    }
    return names.filter((name) => held.has(name))
  }

  async #isHeld({ queues }: TopicQueues): Promise<boolean> {
    const sizes = await Promise.all(queues.map((queue) => this.#redis.zcard(inFlightKeyOf(queue))))
    return sizes.some((size) => size > 0)
  }
}
