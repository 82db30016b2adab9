import type { SqlTransaction } from '../database/database.js'
import { toText, type Bytes } from '../database/tables.js'
import type { JournalBatch } from './journalled-queue.js'

/** The most characters kept of a client's name. */
export const MOST_CLIENT = 64
const TIMES = 500

/**
 * After Redis went back in time, separates the entries that SQL has from those that it lacks: the stream can hold old entries from the
 * snapshot, and others that were added since. SQL has an entry if the flow table has its time, its client and all its changes.
 */
export class Reread {
  async news(
    sql: SqlTransaction,
    queue: Bytes,
    until: number,
    page: readonly JournalBatch[],
  ): Promise<readonly JournalBatch[]> {
    const times = [...new Set(page.flatMap(({ at }) => (at <= until ? [at] : [])))]
    if (times.length === 0) return page
    const known = new Set<string>()
    for (let from = 0; from < times.length; from += TIMES) {
      const rows = await sql
        .selectFrom('redelayed_message_flow')
        .select(['id', 'change', 'at', 'client'])
        .where('queue', '=', queue)
        .where('at', 'in', times.slice(from, from + TIMES))
        .execute()
      for (const { id, change, at, client } of rows) known.add(nameOf(at, client, change, toText(id)))
    }
    return page.filter(
      ({ at, client, changes }) =>
        at > until ||
        !changes.every(
          ({ change, id }) => !isInFlow(change) || known.has(nameOf(at, client.slice(0, MOST_CLIENT), change, id)),
        ),
    )
  }
}

/** Whether the flow table records a change: all but progress, which a handler reports as often as it likes. */
export function isInFlow(change: string): boolean {
  return change !== 'progress'
}

function nameOf(at: number, client: string, change: string, id: string): string {
  return `${at} ${client} ${change} ${id}`
}
