import type { RedelayedClient } from 'redelayed'
import type { Journal } from '../journal/journal.js'
import { RecordStore, type Kept } from './record-store.js'
import { isTopicName, RESERVED } from './topic-name.js'
import { completeSettings, type TopicSettings } from './topic-settings.js'

/** The stored record of a topic. */
export interface TopicRecord {
  readonly settings: TopicSettings
  /** Epoch milliseconds. */
  readonly createdAt: number
}

/** The topics, shared by all instances. */
export class TopicRegistry {
  readonly #records: RecordStore<TopicRecord>

  constructor(client: RedelayedClient) {
    this.#records = new RecordStore<TopicRecord>(client, `${RESERVED}topics`, complete)
  }

  get queueName(): string {
    return this.#records.queueName
  }

  keepIn(journal: Journal): Promise<void> {
    return this.#records.keepIn(journal)
  }

  get(name: string): Promise<TopicRecord | null> {
    return this.#records.get(name)
  }

  /** False when the name is taken; then nothing was changed. */
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

  async someNames(count: number): Promise<string[]> {
    return (await this.#records.someNames(count)).filter(isTopicName)
  }

  /** All topics, sorted by name. */
  async list(): Promise<[name: string, record: TopicRecord][]> {
    return (await this.#records.list()).filter(([name]) => isTopicName(name))
  }
}

/** Fills in defaults: a record of an older version lacks newer settings, and another program may have written anything. */
function complete({ settings, createdAt }: Kept<TopicRecord>): TopicRecord {
  return { settings: completeSettings(settings), createdAt: Number.isSafeInteger(createdAt) ? Number(createdAt) : 0 }
}
