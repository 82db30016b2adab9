import type {
  AddItem,
  Added,
  Codec,
  ReliableQueue,
  ReliableQueueConfig,
  RestoreItem,
  RestoreOutcome,
  StoredRawMessage,
} from 'redelayed'
import type { ChangeReading, JournalledQueue } from './journalled-queue.js'

/** A reliable queue of the library as the journal sees it. */
export function asJournalled<T>(queue: ReliableQueue<T>): JournalledQueue<T> {
  return new Journalled(queue)
}

/** The change stream by pages, where the library has it. */
interface Changes {
  setConfig(config: { changes: { keep: 'groups'; payloads: boolean } }): Promise<void>
  readChanges(options: { after: { id: string; epoch: string | null }; count: number }): Promise<ChangeReading>
  releaseChanges(group: string, id: string): Promise<void>
}

class Journalled<T> implements JournalledQueue<T> {
  readonly name: string
  readonly codec: Codec<T>
  readonly #queue: ReliableQueue<T>
  readonly #changes: Changes

  constructor(queue: ReliableQueue<T>) {
    this.#queue = queue
    this.#changes = queue as unknown as Changes
    this.name = queue.name
    this.codec = queue.codec
  }

  addMany(items: Iterable<AddItem<T>>, options?: { readonly existing?: 'keep' }): Promise<Added[]> {
    return this.#queue.addMany(items, options)
  }

  remove(...ids: readonly string[]): Promise<number> {
    return this.#queue.remove(...ids)
  }

  cancel(id: string): Promise<boolean> {
    return this.#queue.cancel(id)
  }

  contains(id: string): Promise<boolean> {
    return this.#queue.contains(id)
  }

  restoreMany(messages: Iterable<RestoreItem>): Promise<RestoreOutcome[]> {
    return this.#queue.restoreMany(messages)
  }

  getAllRaw(ids: readonly string[]): Promise<(StoredRawMessage | null)[]> {
    return this.#queue.getAllRaw(ids)
  }

  listAllRaw(options?: { pageSize?: number }): AsyncIterable<StoredRawMessage[]> {
    return this.#queue.listAllRaw(options)
  }

  now(): Promise<number> {
    return this.#queue.now()
  }

  getConfig(): Promise<ReliableQueueConfig> {
    return this.#queue.getConfig()
  }

  async keepChanges(group: string): Promise<void> {
    await this.#changes.setConfig({ changes: { keep: 'groups', payloads: true } })
    await this.#changes.releaseChanges(group, '0-0')
  }

  readChanges(after: { readonly id: string; readonly epoch: string | null }, count: number): Promise<ChangeReading> {
    return this.#changes.readChanges({ after: { id: after.id, epoch: after.epoch }, count })
  }

  async releaseChanges(group: string, id: string): Promise<void> {
    await this.#changes.releaseChanges(group, id)
  }
}
