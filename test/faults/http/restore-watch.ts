import { parseJournalUrl } from '../../../src/server/config/journal-options.js'
import { JournalDatabase } from '../../../src/server/database/database.js'
import { toBytes } from '../../../src/server/database/tables.js'
import type { Books } from './books.js'

const EVERY_MS = 50

/** Reads in SQL when the journal has put back what Redis lost: the service does not report that over HTTP. */
export class RestoreWatch {
  readonly #database: JournalDatabase
  readonly #queue: Uint8Array
  readonly #books: Books
  readonly #reading: Promise<void>
  #isStopped = false

  private constructor(database: JournalDatabase, queue: string, books: Books) {
    this.#database = database
    this.#queue = toBytes(queue)
    this.#books = books
    this.#reading = this.#read()
  }

  static async start(url: string, queue: string, books: Books): Promise<RestoreWatch> {
    return new RestoreWatch(await JournalDatabase.open(parseJournalUrl(url), { migrate: false }), queue, books)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#reading
    await this.#database.close()
  }

  async #read(): Promise<void> {
    while (!this.#isStopped) {
      // some faults stop or kill SQL
      const row = await this.#row().catch(() => undefined)
      if (row !== undefined) this.#books.restoring(row.generation, row.repair === 1)
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
    }
  }

  #row(): Promise<{ generation: number; repair: number } | undefined> {
    return this.#database.run((sql) =>
      sql
        .selectFrom('redelayed_positions')
        .select(['generation', 'repair'])
        .where('queue', '=', this.#queue)
        .executeTakeFirst(),
    )
  }
}
