import { isTopicName } from './topic-name.js'

/** The commands of an ioredis client that are sent. */
export interface DeletionCommands {
  hset(key: string, field: string, value: string): Promise<unknown>
  hdel(key: string, field: string): Promise<unknown>
  hexists(key: string, field: string): Promise<number>
  hkeys(key: string): Promise<string[]>
}

const KEY = 'redelayed:service:deletions'

/**
 * The topics whose pushes a deletion has paused, and no operator: kept in Redis, so that a deletion that fails never ends the pause of an operator,
 * and any instance ends that of one that died.
 */
export class DeletionPauses {
  readonly #redis: DeletionCommands

  constructor(redis: DeletionCommands) {
    this.#redis = redis
  }

  async add(topic: string): Promise<void> {
    await this.#redis.hset(KEY, topic, '1')
  }

  async remove(topic: string): Promise<void> {
    await this.#redis.hdel(KEY, topic)
  }

  async has(topic: string): Promise<boolean> {
    return (await this.#redis.hexists(KEY, topic)) === 1
  }

  /** What is no name of a topic is of a stranger, and is removed. */
  async list(): Promise<string[]> {
    const all = await this.#redis.hkeys(KEY)
    for (const other of all.filter((name) => !isTopicName(name))) await this.#redis.hdel(KEY, other)
    return all.filter(isTopicName)
  }
}
