import type { StoredQueueConfig } from 'redelayed'
import type { JournalDatabase } from '../database/database.js'
import { toBytes, toText, type Bytes } from '../database/tables.js'

/** The last known configurations of the queues, for a Redis that has lost them. */
export class QueueConfigs {
  readonly #database: JournalDatabase
  /** The configurations that this process knows SQL to have. */
  readonly #known = new Map<string, string>()

  constructor(database: JournalDatabase) {
    this.#database = database
  }

  async load(queue: Bytes): Promise<StoredQueueConfig | undefined> {
    const row = await this.#database.run((sql) =>
      sql.selectFrom('redelayed_positions').select('config').where('queue', '=', queue).executeTakeFirst(),
    )
    if (!row?.config) return undefined
    const text = toText(row.config)
    this.#known.set(toText(queue), text)
    return JSON.parse(text) as StoredQueueConfig
  }

  /** Saves a configuration; the queue must have a position. */
  async save(queue: Bytes, config: StoredQueueConfig): Promise<void> {
    const text = JSON.stringify(config)
    const name = toText(queue)
    if (this.#known.get(name) === text) return
    const { numUpdatedRows } = await this.#database.run((sql) =>
      sql
        .updateTable('redelayed_positions')
        .set({ config: toBytes(text) })
        .where('queue', '=', queue)
        .executeTakeFirst(),
    )
    // MySQL counts only changed rows: an unchanged one is written again the next time
    if (numUpdatedRows > 0n) this.#known.set(name, text)
  }
}
