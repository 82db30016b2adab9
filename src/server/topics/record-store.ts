import { codecs, ConnectionError, type Codec, type RedelayedClient, type ReliableQueue } from 'redelayed'
import type { Journal } from '../journal/journal.js'
import type { JournalQueue } from '../journal/journal-queue.js'

/** What is kept of a record: any client of the server can have written anything there. */
export type Kept<T> = Readonly<Partial<Record<keyof T, unknown>>>

/** No record is larger. */
const MOST_BYTES = 65_536

/**
 * Records of all instances by name: a message for each, under its name, in a reliable queue that no consumer polls. So one of two instances that
 * make a record at once makes it, and the journal brings the records back.
 */
export class RecordStore<T> {
  readonly #queue: ReliableQueue<T>
  #journal: JournalQueue<T> | undefined

  /** @param complete makes a record of what is kept */
  constructor(client: RedelayedClient, queue: string, complete: (kept: Kept<T>) => T) {
    this.#queue = client.getReliableQueue<T>(queue, { codec: completing(complete) })
  }

  get queueName(): string {
    return this.#queue.name
  }

  /** From now on the journal has the records too. */
  async keepIn(journal: Journal): Promise<void> {
    this.#journal = await journal.attach(this.#queue)
  }

  /** Redis may have lost the record a moment ago: then the journal knows it. */
  async get(name: string): Promise<T | null> {
    const info = await this.#queue.get(name)
    if (info !== null) return info.payload
    const kept = await this.#journal?.get(name)
    return kept?.state === 'open' || kept?.state === 'accepted'
      ? this.#queue.codec.decode(Buffer.from(kept.payload))
      : null
  }

  /** False when there is one of this name; then nothing was changed. */
  async create(name: string, record: T): Promise<boolean> {
    if (this.#journal !== undefined) return (await this.#journal.add(record, { id: name })).outcome !== 'kept'
    return (await this.#queue.add(record, { id: name, existing: 'keep' })).outcome === 'added'
  }

  /** False when there is none of this name. */
  async replace(name: string, record: T): Promise<boolean> {
    return this.#queue.updatePayload(name, record)
  }

  async remove(name: string): Promise<boolean> {
    if (this.#journal !== undefined) return this.#journal.cancel(name)
    return (await this.#queue.remove(name)) === 1
  }

  size(): Promise<number> {
    return this.#queue.size()
  }

  /** The clock of Redis. */
  now(): Promise<number> {
    return this.#queue.now()
  }

  /** Asks the journal's database something small. @throws JournalError */
  async askJournal(): Promise<void> {
    await this.#journal?.get('?')
  }

  /** Puts back by hand what the journal has and Redis lacks. @throws JournalError */
  async restore(): Promise<void> {
    await this.#journal?.restore()
  }

  /** The names of so many, the first that were made. */
  async someNames(count: number): Promise<string[]> {
    const names: string[] = []
    for await (const { id } of this.#queue.listAll({ pageSize: count })) if (names.push(id) >= count) break
    return names
  }

  /** All of them by name. */
  async list(): Promise<[name: string, record: T][]> {
    const found = new Map<string, T>()
    for await (const { id, payload } of this.#queue.listAll({ pageSize: 1_000 })) found.set(id, payload)
    return [...found].sort(([a], [b]) => (a < b ? -1 : 1))
  }
}

/** Whether Redis did not answer, or not in time. */
export function isAway(thrown: unknown): boolean {
  return thrown instanceof ConnectionError
}

/** JSON. What is none, or too large, is completed too, so that an operator sees the record and can replace or remove it. */
function completing<T>(complete: (kept: Kept<T>) => T): Codec<T> {
  const json = codecs.json()
  const nothing = {} as Kept<T>
  const read = (bytes: Buffer): Kept<T> => {
    if (bytes.length > MOST_BYTES) return nothing
    try {
      const kept = json.decode(bytes)
      return typeof kept === 'object' && kept !== null ? (kept as Kept<T>) : nothing
    } catch {
      return nothing
    }
  }
  return { name: 'json', encode: (record) => json.encode(record), decode: (bytes) => complete(read(bytes)) }
}
