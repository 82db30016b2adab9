import { payloadOf } from '../codecs/entry.js'
import { toRedelayed, type RedelayedError } from '../errors.js'
import type { DelayedStore } from '../store/delayed-store.js'
import { toScheduledMessage, type ScheduledMessage } from './inspection.js'
import { pages } from './paging.js'
import type { Quarantine } from './quarantine.js'
import type { QueueHandle } from './queue-handle.js'

/** Reads the pending entries of a delayed queue as values, or takes them before they are due. */
export class PendingEntries<T> {
  readonly #handle: QueueHandle<T>
  readonly #store: DelayedStore
  readonly #quarantine: Quarantine<T>

  constructor(handle: QueueHandle<T>, store: DelayedStore, quarantine: Quarantine<T>) {
    this.#handle = handle
    this.#store = store
    this.#quarantine = quarantine
  }

  async first(): Promise<T | null> {
    const [entry] = await this.#store.range(0, 0)
    return entry === undefined ? null : this.#decode(entry)
  }

  async all(): Promise<T[]> {
    return this.#decodeAll(await this.#store.range(0, -1))
  }

  async *each(options: { pageSize?: number }): AsyncGenerator<T, void> {
    const fetch = (first: number, last: number) => this.#store.range(first, last)
    for await (const page of pages(options, fetch)) yield* await this.#decodeAll(page)
  }

  /** The next entries, the earliest due first. `destination` is part of their tickets. */
  async scheduled(limit: number, destination: string): Promise<ScheduledMessage<T>[]> {
    const messages: ScheduledMessage<T>[] = []
    for (const entry of await this.#store.firstScheduled(limit)) {
      try {
        messages.push(toScheduledMessage(destination, entry, (payload) => this.#handle.decode(payload)))
      } catch (thrown) {
        this.#handle.context.hub.emit('error', this.#handle.attributed(thrown) as RedelayedError)
      }
    }
    return messages
  }

  take(limit: number): Promise<T[]> {
    return this.#handle.trackOperation(async () => {
      // another program can have written any number of unreadable entries
      const until = performance.now() + this.#handle.context.settings.commandTimeout
      const values: T[] = []
      while (values.length < limit && (values.length > 0 || performance.now() < until)) {
        const entries = await this.#store.poll(limit - values.length).catch((error: unknown) => {
          if (values.length === 0) throw error
          return [] // the elements taken before must reach the caller
        })
        if (entries.length === 0) break
        for (const entry of entries) values.push(...(await this.#accept(entry)))
      }
      return values
    })
  }

  /** The value of a taken entry; empty if the entry had to be set aside. */
  async #accept(entry: Buffer): Promise<T[]> {
    let payload: Buffer
    try {
      payload = payloadOf(entry)
    } catch (thrown) {
      await this.#quarantine.setAside(entry, this.#handle.withQueueName(toRedelayed(thrown)))
      return []
    }
    return this.#quarantine.accept([payload])
  }

  #decode(entry: Buffer): T {
    return this.#handle.decode(payloadOf(entry))
  }

  #decodeAll(entries: readonly Buffer[]): Promise<T[]> {
    return this.#handle.decodeAll(entries, (entry) => this.#decode(entry))
  }
}
