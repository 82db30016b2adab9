import { codecs, type RedelayedClient } from 'redelayed'
import type { Journal } from '../journal/journal.js'
import { isAway } from './record-store.js'
import type { TopicRecord, TopicRegistry } from './registry.js'
import { Topic, type TopicQueue } from './topic.js'
import { fits, topicName } from './topic-name.js'
import type { TopicSettings } from './topic-settings.js'

/** How long an instance trusts what it knows of a topic. */
const FRESH_MS = 1_000
/**
 * A list of all topics is trusted for this multiple of the time that reading it took, if that is longer: thousands take most of a second.
 */
const LIST_SHARE = 3

export interface KnownTopic {
  readonly topic: Topic
  readonly createdAt: number
  readonly checkedAt: number
}

export interface NamedTopic {
  readonly name: string
  readonly record: TopicRecord
}

/** A topic, and the queues of its shards. */
export interface TopicQueues {
  readonly topic: string
  readonly queues: readonly string[]
}

interface KnownTopicsParams {
  readonly client: RedelayedClient
  readonly registry: TopicRegistry
  readonly journal: Journal | undefined
  /** Gets errors of background work. */
  readonly onError: (error: unknown) => void
}

/** What an instance knows of the topics in the registry, and the `Topic` objects through which it uses them. */
export class KnownTopics {
  readonly #params: KnownTopicsParams
  readonly #known = new Map<string, KnownTopic>()
  readonly #opening = new Map<string, Promise<KnownTopic | undefined>>()
  /** Topics under creation, which the registry does not have yet. */
  readonly #creating = new Set<string>()
  /** The list that concurrent requests share. */
  #listed: { until: number; readonly all: Promise<readonly NamedTopic[]> } | undefined

  constructor(params: KnownTopicsParams) {
    this.#params = params
  }

  /** The topics that this instance uses. */
  get used(): readonly Topic[] {
    return Array.from(this.#known.values(), ({ topic }) => topic)
  }

  /** The topic, as known at most a second ago; `undefined` when it does not exist. */
  async find(given: string): Promise<KnownTopic | undefined> {
    const name = topicName(given)
    const known = this.#known.get(name)
    if (known !== undefined && performance.now() - known.checkedAt < FRESH_MS) return known
    const opening = this.#opening.get(name) ?? this.read(name).finally(() => this.#opening.delete(name))
    this.#opening.set(name, opening)
    return opening.catch((thrown: unknown) => {
      // while Redis is away, the journal accepts messages of a known topic
      if (known !== undefined && this.#params.journal?.mode === 'sync' && isAway(thrown)) return known
      throw thrown
    })
  }

  /** The topic as the registry has it now. */
  async read(given: string): Promise<KnownTopic | undefined> {
    const name = topicName(given)
    const record = await this.#params.registry.get(name)
    if (record !== null) return this.use(name, record)
    if (!this.#creating.has(name)) this.forget(name)
    return undefined
  }

  /** Detaches the queue of a deleted topic. A later topic of this name is attached anew. */
  forget(name: string): void {
    const known = this.#known.get(name)
    this.#known.delete(name)
    if (known !== undefined) this.#params.journal?.detach(known.topic.queue).catch(this.#params.onError)
  }

  /** The object for a topic with these settings, which the registry has or will have. */
  async use(name: string, record: TopicRecord): Promise<KnownTopic> {
    const before = this.#known.get(name)
    const isSame = JSON.stringify(before?.topic.settings) === JSON.stringify(record.settings)
    const topic = before !== undefined && isSame ? before.topic : await this.#topic(name, record.settings)
    const known = { topic, createdAt: record.createdAt, checkedAt: performance.now() }
    this.#known.set(name, known)
    return known
  }

  async #topic(name: string, settings: TopicSettings): Promise<Topic> {
    // each payload is made for one message and never changed: it needs no copy
    const codec = { ...codecs.bytes(), encode: (payload: Uint8Array) => payload as Buffer }
    const { shards } = settings
    const queue: TopicQueue =
      shards === 1
        ? this.#params.client.getReliableQueue<Uint8Array>(name, { codec })
        : this.#params.client.getShardedReliableQueue<Uint8Array>(name, { codec, shards })
    const { journal } = this.#params
    if (journal === undefined) return new Topic(name, settings, queue)
    const attached = await journal.attach(queue as never)
    const parts = 'shards' in queue ? queue.shards : [queue]
    const deadLetters = await Promise.all(parts.map((shard) => journal.attach(shard.deadLetters)))
    const topic = new Topic(name, settings, queue, attached, deadLetters)
    // Redis may have lost the settings while no instance was running
    await topic.configure({ enable: false, removes: false })
    return topic
  }

  /** While `work` runs, a topic that the registry does not have is not taken for a deleted one. */
  async whileCreating<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.#creating.add(name)
    try {
      return await work()
    } finally {
      this.#creating.delete(name)
    }
  }

  /** The registry has changed: the next list is read anew. */
  onChanged(): void {
    this.#listed = undefined
  }

  /**
   * All topics, sorted by name. The list can be a second old, or three times as old as reading it took: reading ten thousand topics for
   * each request would keep Redis and the instance busy. `fresh`: reads them now.
   */
  list({ fresh = false }: { readonly fresh?: boolean } = {}): Promise<readonly NamedTopic[]> {
    if (!fresh && this.#listed !== undefined && performance.now() < this.#listed.until) return this.#listed.all
    const at = performance.now()
    const listed = {
      until: Infinity,
      all: this.#params.registry.list().then((found) => {
        listed.until = at + Math.max(FRESH_MS, LIST_SHARE * (performance.now() - at))
        return found.map(([name, record]): NamedTopic => ({ name, record }))
      }),
    }
    const { all } = listed
    this.#listed = listed
    all.catch(() => {
      if (this.#listed === listed) this.#listed = undefined
    })
    return all
  }

  /** The queues of some topics, which need not be open; for several topics as the list has them. */
  async queuesOf(names: readonly string[]): Promise<TopicQueues[]> {
    const [only] = names
    if (only === undefined) return []
    if (names.length === 1) {
      const topic = (await this.find(only))?.topic
      return topic === undefined ? [] : [{ topic: only, queues: topic.shards.map(({ name }) => name) }]
    }
    const wanted = new Set(names)
    return (await this.list())
      .filter(({ name }) => wanted.has(name))
      .map(({ name, record }) => ({ topic: name, queues: this.#queueNames(name, record.settings.shards) }))
  }

  #queueNames(name: string, shards: number): readonly string[] {
    if (shards === 1) return [name]
    return this.#params.client.getShardedReliableQueue(name, { shards }).shards.map((shard) => shard.name)
  }

  /** The names that match a pattern, in which `*` stands for any characters. */
  async matching(pattern: string): Promise<string[]> {
    return (await this.list()).map(({ name }) => name).filter((name) => fits(name, pattern))
  }
}
