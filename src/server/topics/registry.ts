import type { RedelayedClient } from 'redelayed'
import type { Journal } from '../journal/journal.js'
import { RecordStore } from './record-store.js'
import { RESERVED } from './topic-name.js'
import { TOPIC_DEFAULTS, type TopicSettings } from './topic-settings.js'

/** The settings of a topic as they are kept. */
export interface TopicRecord {
  readonly settings: TopicSettings
  /** Epoch milliseconds. */
  readonly createdAt: number
}

/** The topics that there are, for all instances. */
export class TopicRegistry {
  readonly #records: RecordStore<TopicRecord>

  constructor(client: RedelayedClient) {
    this.#records = new RecordStore<TopicRecord>(client, `${RESERVED}topics`)
  }

  get queueName(): string {
    return this.#records.queueName
  }

  keepIn(journal: Journal): Promise<void> {
    return this.#records.keepIn(journal)
  }

  async get(name: string): Promise<TopicRecord | null> {
    const record = await this.#records.get(name)
    return record === null ? null : complete(record)
  }

  /** False when there is one of this name; then nothing was changed. */
  create(name: string, record: TopicRecord): Promise<boolean> {
    return this.#records.create(name, record)
  }

  replace(name: string, record: TopicRecord): Promise<boolean> {
    return this.#records.replace(name, record)
  }

  remove(name: string): Promise<boolean> {
    return this.#records.remove(name)
  }

  size(): Promise<number> {
    return this.#records.size()
  }

  now(): Promise<number> {
    return this.#records.now()
  }

  askJournal(): Promise<void> {
    return this.#records.askJournal()
  }

  restore(): Promise<void> {
    return this.#records.restore()
  }

  someNames(count: number): Promise<string[]> {
    return this.#records.someNames(count)
  }

  /** All of them by name. */
  async list(): Promise<[name: string, record: TopicRecord][]> {
    return (await this.#records.list()).map(([name, record]) => [name, complete(record)])
  }
}

/** What an older version has written lacks the newer settings. */
function complete({ settings, createdAt }: TopicRecord): TopicRecord {
  return { settings: { ...TOPIC_DEFAULTS, ...settings }, createdAt }
}
