import type { SqlTransaction } from '../database/database.js'
import { toText, type Bytes } from '../database/tables.js'
import type { Upsert } from '../database/upsert.js'
import { STATE, type Row } from './rows.js'

/** A change that fewer rows share is written with others; with more rows it gets a statement of its own. */
const FEW = 10
/** The most ids in one SQL condition. */
const IDS = 500

type Changed = Partial<Pick<Row, (typeof STATE)[number]>>

/**
 * Writes the states of existing rows. A script often changes many messages in the same way, for example when it adds them: one statement
 * with their ids then updates all these rows, instead of a whole row for each.
 */
export class StateWriter {
  readonly #states: Upsert<Row>

  constructor(states: Upsert<Row>) {
    this.#states = states
  }

  /** `known`: each row, by its id, as this transaction has read it, so that equal values are not written. */
  async write(sql: SqlTransaction, queue: Bytes, rows: readonly Row[], known: ReadonlyMap<string, Row>): Promise<void> {
    const alike = new Map<string, { readonly changed: Changed; readonly rows: Row[] }>()
    const others: Row[] = []
    for (const row of rows) {
      const changed = changedIn(row, known.get(toText(row.id)))
      if (changed === undefined) {
        others.push(row)
        continue
      }
      const name = JSON.stringify(changed)
      const group = alike.get(name)
      if (group === undefined) alike.set(name, { changed, rows: [row] })
      else group.rows.push(row)
    }
    for (const { changed, rows: own } of alike.values()) {
      if (own.length < FEW) others.push(...own)
      else if (Object.keys(changed).length > 0) await update(sql, queue, own, changed)
    }
    await this.#states.write(sql, others)
  }
}

/** The columns that differ; `undefined` if there is no row to compare with, or a changed value is binary. */
function changedIn(row: Row, before: Row | undefined): Changed | undefined {
  if (before === undefined) return undefined
  const changed: Record<string, unknown> = {}
  for (const name of STATE) {
    const value = row[name]
    if (value === before[name]) continue
    if (value instanceof Uint8Array) return undefined
    changed[name] = value
  }
  return changed
}

async function update(sql: SqlTransaction, queue: Bytes, rows: readonly Row[], changed: Changed): Promise<void> {
  for (let from = 0; from < rows.length; from += IDS) {
    const ids = rows.slice(from, from + IDS).map(({ id }) => id)
    await sql.updateTable('redelayed_messages').set(changed).where('queue', '=', queue).where('id', 'in', ids).execute()
  }
}
