import type { JournalDatabase } from '../database/database.js'
import { FINAL_STATES, toBytes, toText } from '../database/tables.js'

export interface Pruned {
  readonly messages: number
  readonly flow: number
}

const BATCH = 1_000

/** Removes messages that became final before a time, and the recorded changes before it, in batches that lock little. */
export async function prune(database: JournalDatabase, before: number, signal?: AbortSignal): Promise<Pruned> {
  const messages = await inBatches(() => pruneMessages(database, before), signal)
  const flow = await inBatches(() => pruneFlow(database, before), signal)
  return { messages, flow }
}

async function inBatches(batch: () => Promise<number>, signal: AbortSignal | undefined): Promise<number> {
  let removed = 0
  for (;;) {
    signal?.throwIfAborted()
    const some = await batch()
    removed += some
    if (some < BATCH) return removed
  }
}

function pruneMessages(database: JournalDatabase, before: number): Promise<number> {
  return database.transaction(async (sql) => {
    const rows = await sql
      .selectFrom('redelayed_messages')
      .select(['queue', 'id'])
      .where('state', 'in', FINAL_STATES)
      .where('updated_at', '<', before)
      .limit(BATCH)
      .execute()
    const byQueue = new Map<string, typeof rows>()
    for (const row of rows) {
      const name = toText(row.queue)
      const some = byQueue.get(name)
      if (some === undefined) byQueue.set(name, [row])
      else some.push(row)
    }
    for (const [queue, some] of byQueue) {
      await sql
        .deleteFrom('redelayed_messages')
        .where('queue', '=', toBytes(queue))
        .where(
          'id',
          'in',
          some.map(({ id }) => id),
        )
        .where('state', 'in', FINAL_STATES)
        .where('updated_at', '<', before)
        .execute()
    }
    return rows.length
  })
}

function pruneFlow(database: JournalDatabase, before: number): Promise<number> {
  return database.transaction(async (sql) => {
    const rows = await sql
      .selectFrom('redelayed_message_flow')
      .select('seq')
      .where('at', '<', before)
      .orderBy('at')
      .limit(BATCH)
      .execute()
    if (rows.length > 0)
      await sql
        .deleteFrom('redelayed_message_flow')
        .where(
          'seq',
          'in',
          rows.map(({ seq }) => seq),
        )
        .execute()
    return rows.length
  })
}
