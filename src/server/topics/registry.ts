import { codecs, type RedelayedClient, type ReliableQueue } from 'redelayed'
import { RESERVED } from './topic-name.js'
import { TOPIC_DEFAULTS, type TopicSettings } from './topic-settings.js'

/** The settings of a topic as they are kept. */
export interface TopicRecord {
  readonly settings: TopicSettings
  /** Epoch milliseconds. */
  readonly createdAt: number
}

/**
 * The topics that there are, for all instances: a message for each, under the topic's name, in a reliable queue that no consumer polls. So one of two
 * instances that make a topic at once makes it, and a journal of that queue brings it back.
 */
export class TopicRegistry {
  readonly #queue: ReliableQueue<TopicRecord>

  constructor(client: RedelayedClient) {
    this.#queue = client.getReliableQueue<TopicRecord>(`${RESERVED}topics`, { codec: codecs.json<TopicRecord>() })
  }

  get queue(): ReliableQueue<TopicRecord> {
    return this.#queue
  }

  async get(name: string): Promise<TopicRecord | null> {
    return recordOf(await this.#queue.get(name))
  }

  /** False when there is one of this name; then nothing was changed. */
  async create(name: string, record: TopicRecord): Promise<boolean> {
    return (await this.#queue.add(record, { id: name, existing: 'keep' })).outcome === 'added'
  }

  async replace(name: string, record: TopicRecord): Promise<void> {
    await this.#queue.add(record, { id: name, existing: 'replace' })
  }

  async remove(name: string): Promise<boolean> {
    return (await this.#queue.remove(name)) === 1
  }

  size(): Promise<number> {
    return this.#queue.size()
  }

  /** All of them by name. */
  async list(): Promise<[name: string, record: TopicRecord][]> {
    const found = new Map<string, TopicRecord>()
    for await (const info of this.#queue.listAll({ pageSize: 1_000 })) {
      const record = recordOf(info)
      if (record !== null) found.set(info.id, record)
    }
    return [...found].sort(([a], [b]) => (a < b ? -1 : 1))
  }
}

/** What an older version has written lacks the newer settings. */
function recordOf(info: { readonly payload: TopicRecord } | null): TopicRecord | null {
  if (info === null) return null
  const { settings, createdAt } = info.payload
  return { settings: { ...TOPIC_DEFAULTS, ...settings }, createdAt }
}
