import type {
  AddItem,
  Added,
  Codec,
  ReliableQueue,
  StoredQueueConfig,
  RestoreItem,
  RestoreOutcome,
  StoredRawMessage,
} from 'redelayed'
import type { ChangeReading, JournalledQueue } from './journalled-queue.js'

/** A reliable queue of the library as the journal sees it, or the queue of the dead letters of one. */
export function asJournalled<T>(queue: ReliableQueue<T>, deadLetters = false): JournalledQueue<T> {
  return new Journalled(queue, deadLetters)
}

class Journalled<T> implements JournalledQueue<T> {
  readonly name: string
  readonly deadLettersName: string
  readonly codec: Codec<T>
  readonly #queue: ReliableQueue<T>
  readonly #areDeadLetters: boolean

  constructor(queue: ReliableQueue<T>, areDeadLetters: boolean) {
    this.#areDeadLetters = areDeadLetters
    this.#queue = queue
    this.name = queue.name
    this.deadLettersName = queue.deadLetters.name
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

  restoreMany(messages: Iterable<RestoreItem>, options?: { readonly known?: boolean }): Promise<RestoreOutcome[]> {
    return this.#queue.restoreMany(messages, { ...options, deadLetters: this.#areDeadLetters })
  }

  getAllRaw(ids: readonly string[]): Promise<(StoredRawMessage | null)[]> {
    return this.#queue.getAllRaw(ids)
  }

  listAllRaw(options?: { pageSize?: number }): AsyncIterable<StoredRawMessage[]> {
    return this.#queue.listAllRaw(options)
  }

  async size(): Promise<number> {
    return (await this.#queue.counts()).total
  }

  now(): Promise<number> {
    return this.#queue.now()
  }

  getConfig(): Promise<StoredQueueConfig> {
    return this.#queue.getConfig()
  }

  async keepChanges(group: string, lost: StoredQueueConfig = {}): Promise<void> {
    const { changes } = await this.#queue.getConfig()
    // a bound of the user's own stays
    if (!changes || changes.keep !== 'groups' || changes.payloads !== true) {
      const known = changes || lost.changes
      const maxLength = known && known.keep === 'groups' ? known.maxLength : undefined
      const own = changes ? {} : lost
      await this.#queue.setConfig({ ...own, changes: { keep: 'groups', payloads: true, maxLength } })
    }
    await this.#queue.releaseChanges(group, '0-0')
  }

  readChanges(
    { id, epoch, digest }: { readonly id: string; readonly epoch: string | null; readonly digest?: string | null },
    count: number,
  ): Promise<ChangeReading> {
    return this.#queue.readChanges({ after: { id, epoch, digest }, count })
  }

  releaseChanges(group: string, id: string): Promise<boolean> {
    return this.#queue.releaseChanges(group, id)
  }
}
