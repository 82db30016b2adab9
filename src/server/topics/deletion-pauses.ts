import { valuesOf } from '../records/hash-values.js'
import type { ScriptRunner } from '../run-script.js'
import { isTopicName } from './topic-name.js'

/** The commands of an ioredis client that this class sends. */
export interface DeletionCommands extends ScriptRunner {
  hset(key: string, field: string, value: string): Promise<unknown>
  hdel(key: string, field: string): Promise<unknown>
}

const KEY = 'redelayed:service:deletions'

/**
 * The topics whose pushes a deletion has paused, and not an operator. Redis keeps them, so that a deletion that fails never ends the pause
 * of an operator, and any instance can end the pause of a deletion whose instance died.
 */
export class DeletionPauses {
  readonly #redis: DeletionCommands

  constructor(redis: DeletionCommands) {
    this.#redis = redis
  }

  async add(topic: string): Promise<void> {
    await this.#redis.hset(KEY, topic, topic)
  }

  async remove(topic: string): Promise<void> {
    await this.#redis.hdel(KEY, topic)
  }

  async has(topic: string): Promise<boolean> {
    return (await valuesOf(this.#redis, KEY, topic)).includes(topic)
  }

  /** Ignores entries that cannot be names of topics: another program has written them. */
  async list(): Promise<string[]> {
    return (await valuesOf(this.#redis, KEY)).filter(isTopicName)
  }
}
