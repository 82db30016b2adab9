import { codecs, ConnectionError, type Codec, type RedelayedClient, type ReliableQueue } from 'redelayed'
import type { Journal } from '../journal/journal.js'
import type { JournalQueue } from '../journal/journal-queue.js'

/** A record as Redis has it: another program may have written anything there. */
export type Kept<T> = Readonly<Partial<Record<keyof T, unknown>>>

/** The most bytes of a record. */
const MOST_BYTES = 65_536

/**
 * Records that all instances share, by name: each is a message under its name, in a reliable queue that no consumer polls. So only one of
 * two instances can create a record, and the journal restores the records.
 */
export class RecordStore<T> {
  readonly #queue: ReliableQueue<T>
  #journal: JournalQueue<T> | undefined

  /** @param complete makes a record of what Redis has */
  constructor(client: RedelayedClient, queue: string, complete: (kept: Kept<T>) => T) {
    this.#queue = client.getReliableQueue<T>(queue, { codec: completing(complete) })
  }

  get queueName(): string {
    return this.#queue.name
  }

  /** From now on the journal keeps the records too. */
  async keepIn(journal: Journal): Promise<void> {
    this.#journal = await journal.attach(this.#queue)
  }

  /** Asks Redis, and then the journal: Redis may have just lost the record. */
  async get(name: string): Promise<T | null> {
    const info = await this.#queue.get(name)
    if (info !== null) return info.payload
    const kept = await this.#journal?.get(name)
    return kept?.state === 'open' || kept?.state === 'accepted'
      ? this.#queue.codec.decode(Buffer.from(kept.payload))
      : null
  }

  /** Whether the record exists; while Redis is away, the journal can answer. */
  async has(name: string): Promise<boolean> {
    // without the database, Redis decides
    const kept = await this.#journal?.get(name).catch(() => undefined)
    return kept?.state === 'open' || kept?.state === 'accepted' || (await this.#queue.contains(name))
  }

  /** False when the name is taken; then nothing was changed. */
  async create(name: string, record: T): Promise<boolean> {
    if (this.#journal !== undefined) return (await this.#journal.add(record, { id: name })).outcome !== 'kept'
    return (await this.#queue.add(record, { id: name, existing: 'keep' })).outcome === 'added'
  }

  /** False when no record has this name. */
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

  /** Sends a small query to the journal's database. @throws JournalError */
  async askJournal(): Promise<void> {
    await this.#journal?.get('?')
  }

  /** Puts back the records that the journal has and Redis lacks. @throws JournalError */
  async restore(): Promise<void> {
    await this.#journal?.restore()
  }

  /** The names of the first `count` records, oldest first. */
  async someNames(count: number): Promise<string[]> {
    const names: string[] = []
    for await (const { id } of this.#queue.listAll({ pageSize: count })) if (names.push(id) >= count) break
    return names
  }

  /** All records, sorted by name. */
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

/** JSON. Invalid or too large records are completed too, so that an operator sees them and can replace or remove them. */
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
