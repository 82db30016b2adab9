import { sql as raw } from 'kysely'
import type { JournalDatabase } from '../database/database.js'
import type { Bytes, RowState } from '../database/tables.js'
import { ROW_COLUMNS, type Row } from './rows.js'

/** The most bytes of payloads in a page, unless a single payload is larger: memory holds a page several times while it is restored. */
export const PAGE_BYTES = 4 * 1024 * 1024
/** The most ids in one SQL condition. */
const IDS = 500

/** Selects rows of a queue. */
export interface RowFilter {
  readonly queue: Bytes
  readonly states: readonly RowState[]
  /** Only rows of generations before this one. */
  readonly before?: number | undefined
}

/** The id of a row and the size of its payload. */
export interface SizedId {
  readonly id: Bytes
  readonly bytes: number
}

/** Also the time at which the message was accepted: another message with the same id has another time. */
export interface SizedRow extends SizedId {
  readonly accepted_at: number
}

/** `after`: where the next page begins; `null` at the end. */
interface Page<R> {
  readonly rows: readonly R[]
  readonly after: Bytes | null
}

/** The first ids whose payloads fit into a page together; at least one, if there is any. */
export function thatFit<S extends Pick<SizedId, 'bytes'>>(sized: readonly S[]): readonly S[] {
  let bytes = 0
  const end = sized.findIndex((each, at) => (bytes += each.bytes) > PAGE_BYTES && at > 0)
  return end < 0 ? sized : sized.slice(0, end)
}

/** The ids of the rows after a given id, in order, as many as fit into a page. */
export async function readIds(
  database: JournalDatabase,
  filter: RowFilter,
  after: Bytes | null,
  most: number,
): Promise<Page<SizedRow>> {
  const found = await database.run((db) =>
    matching(db, filter, after)
      .select(['id', 'accepted_at', raw<number>`length(payload)`.as('bytes')])
      .orderBy('id')
      .limit(most)
      .execute(),
  )
  const rows = thatFit(found)
  const isEnd = rows.length === found.length && found.length < most
  return { rows, after: isEnd ? null : (rows.at(-1)?.id ?? null) }
}

/** The rows after a given id, in the order of their ids, as many as fit into a page. */
export async function readRows(
  database: JournalDatabase,
  filter: RowFilter,
  after: Bytes | null,
  most: number,
): Promise<Page<Row>> {
  if ((await weigh(database, filter, after, most)) <= PAGE_BYTES) {
    const rows = await readWhole(database, filter, { after, most })
    return { rows, after: rows.length < most ? null : (rows.at(-1)?.id ?? null) }
  }
  const ids = await readIds(database, filter, after, most)
  const last = ids.rows.at(-1)?.id
  return last === undefined
    ? { rows: [], after: null }
    : { rows: await readWhole(database, filter, { after, until: last }), after: ids.after }
}

/** The rows after a given id, in the order of their ids: at most `most`, or all up to `until`, as more may have come in between. */
export async function readWhole(
  database: JournalDatabase,
  filter: RowFilter,
  { after, ...end }: { readonly after: Bytes | null } & ({ readonly until: Bytes } | { readonly most: number }),
): Promise<Row[]> {
  const found = await database.run((db) => {
    const query = matching(db, filter, after).select(ROW_COLUMNS).orderBy('id')
    return ('until' in end ? query.where('id', '<=', end.until) : query.limit(end.most)).execute()
  })
  return found.map((row) => Object.assign(row, { queue: filter.queue }))
}

/** The rows with these ids, page by page. */
export async function* rowsWithIds(
  database: JournalDatabase,
  filter: RowFilter,
  ids: readonly Bytes[],
): AsyncGenerator<Row[], void> {
  for (let from = 0; from < ids.length; from += IDS) {
    const some = ids.slice(from, from + IDS)
    let sized: readonly SizedId[] = await database.run((db) =>
      matching(db, filter, null)
        .select(['id', raw<number>`length(payload)`.as('bytes')])
        .where('id', 'in', some)
        .execute(),
    )
    while (sized.length > 0) {
      const fitting = thatFit(sized)
      sized = sized.slice(fitting.length)
      yield await database.run((db) =>
        matching(db, filter, null)
          .selectAll()
          .where(
            'id',
            'in',
            fitting.map(({ id }) => id),
          )
          .execute(),
      )
    }
  }
}

/** The bytes of the payloads of a page, as one number: most pages fit, and then their ids are read only once. */
async function weigh(database: JournalDatabase, filter: RowFilter, after: Bytes | null, most: number): Promise<number> {
  const { bytes } = await database.run((db) =>
    db
      .selectFrom(
        matching(db, filter, after)
          .select(raw<number>`length(payload)`.as('bytes'))
          .orderBy('id')
          .limit(most)
          .as('page'),
      )
      .select((of) => of.fn.sum<number | string | null>('bytes').as('bytes'))
      .executeTakeFirstOrThrow(),
  )
  return Number(bytes)
}

function matching(db: Parameters<Parameters<JournalDatabase['run']>[0]>[0], filter: RowFilter, after: Bytes | null) {
  const { queue, states, before } = filter
  let query = db.selectFrom('redelayed_messages').where('queue', '=', queue).where('state', 'in', states)
  if (before !== undefined) query = query.where('generation', '<', before)
  return after === null ? query : query.where('id', '>', after)
}
