import type { JournalDatabase, SqlTransaction } from '../database/database.js'
import { toText } from '../database/tables.js'
import type { AttachedQueue } from './attached-queue.js'
import type { Drain } from './drain.js'
import type { StoredRawMessage } from './journalled-queue.js'
import { restoreRows, type OnBadRow } from './restore-rows.js'
import { contentOf, isOfReusedId, type Row, type Writers } from './rows.js'
import { tooLarge } from './too-large.js'

const IDS = 500

/**
 * `'kept'`: the row now shows the message that Redis had; `'added'`: Redis now has the row's message; `'journalled'`: the row stays
 * accepted, and its message is added later.
 */
export type TakenOver = 'kept' | 'added' | 'journalled'

interface TakeOverParts {
  readonly database: JournalDatabase
  readonly writers: Writers
  readonly drain: Drain
  readonly onBadRow: OnBadRow
}

interface HowToTakeOver {
  readonly signal?: AbortSignal | undefined
  /** Rows of messages that Redis had and has lost: the messages that it has under their ids are older. */
  readonly lost?: ReadonlySet<Row>
}

/**
 * Settles rows that are only accepted while Redis has messages under their ids. A row gets the content of the message in Redis, unless that
 * is an older one that came back when Redis went back in time: then the row's message replaces it.
 */
export async function takeOver(
  parts: TakeOverParts,
  attached: AttachedQueue,
  rows: readonly Row[],
  how: HowToTakeOver = {},
): Promise<TakenOver[]> {
  const outcomes: TakenOver[] = []
  for (let from = 0; from < rows.length; from += IDS)
    outcomes.push(...(await takeOverSome(parts, attached, rows.slice(from, from + IDS), how)))
  return outcomes
}

async function takeOverSome(
  { database, writers, drain, onBadRow }: TakeOverParts,
  attached: AttachedQueue,
  rows: readonly Row[],
  { signal, lost }: HowToTakeOver,
): Promise<TakenOver[]> {
  const { queue } = attached
  const messages = await queue.getAllRaw(rows.map(({ id }) => toText(id)))
  const found = new Map(messages.flatMap((message) => (message === null ? [] : [[message.id, message]])))
  // After these changes, Redis has recorded no message of a row that is still only accepted, at least since it went back.
  if ((await drain.run(attached, { signal })).hasForgotten) return rows.map(() => 'journalled')
  const outcomes = new Map<string, TakenOver>()
  const { mine, large } = await database.transaction(async (sql) => {
    outcomes.clear() // from an attempt that was not committed
    const { theirs, ours } = await divide(sql, database, attached, rows, { found, lost, outcomes })
    const isLarge = ({ payload }: Row): boolean => payload.length > database.mostBytes
    await writers.accepted.write(
      sql,
      theirs.filter((row) => !isLarge(row)),
    )
    await claim(sql, attached, ours)
    const tooMuch = theirs.filter(isLarge)
    await forget(sql, attached, tooMuch)
    return { mine: ours, large: tooMuch }
  })
  for (const { id, payload } of large) {
    const message = { id: toText(id), bytes: payload.length, most: database.mostBytes }
    onBadRow(tooLarge(message, 'Redis has it, and SQL does not'), queue.name, message.id)
  }
  const restored = await restoreRows(queue, mine, onBadRow, { replaces: (id) => found.get(id)?.dueAt })
  for (const [at, { id }] of mine.entries())
    if (restored[at] === 'restored' || restored[at] === 'replaced') outcomes.set(toText(id), 'added')
  // no outcome: the row got the content of Redis, or another instance has changed it meanwhile
  return rows.map(({ id }) => outcomes.get(toText(id)) ?? 'kept')
}

/** `theirs`: rows that get the content of the messages in Redis; `ours`: rows whose messages go to Redis. */
async function divide(
  sql: SqlTransaction,
  { kind }: JournalDatabase,
  { key }: AttachedQueue,
  rows: readonly Row[],
  {
    found,
    lost,
    outcomes,
  }: {
    readonly found: ReadonlyMap<string, StoredRawMessage>
    readonly lost: ReadonlySet<Row> | undefined
    readonly outcomes: Map<string, TakenOver>
  },
): Promise<{ theirs: Row[]; ours: Row[] }> {
  const { generation } = await sql
    .selectFrom('redelayed_positions')
    .select('generation')
    .where('queue', '=', key)
    .executeTakeFirstOrThrow()
  const query = sql
    .selectFrom('redelayed_messages')
    .select(['id', 'accepted_at', 'updated_at', 'generation'])
    .where('queue', '=', key)
    .where(
      'id',
      'in',
      rows.map(({ id }) => id),
    )
    .where('state', '=', 'accepted')
  const locked = await (kind === 'sqlite' ? query : query.forUpdate()).execute()
  const still = new Map(locked.map((row) => [toText(row.id), row]))
  const [theirs, ours]: [Row[], Row[]] = [[], []]
  for (const row of rows) {
    const id = toText(row.id)
    const now = still.get(id)
    if (now === undefined || now.accepted_at !== row.accepted_at) continue
    const message = found.get(id)
    if (isOfReusedId(now, generation) || lost?.has(row)) {
      outcomes.set(id, 'journalled')
      // otherwise another instance works on it
      if (now.updated_at === row.updated_at) ours.push(row)
    } else if (message === undefined) outcomes.set(id, 'journalled')
    else theirs.push({ ...row, ...contentOf(message), state: 'open' })
  }
  return { theirs, ours }
}

/** Deletes accepted rows whose ids Redis uses for messages that are too large for SQL: the rows describe other messages. */
async function forget(sql: SqlTransaction, { key }: AttachedQueue, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return
  const ids = rows.map(({ id }) => id)
  await sql.deleteFrom('redelayed_messages').where('queue', '=', key).where('id', 'in', ids).execute()
}

/** Renews `updated_at`, so that no other instance adopts these rows meanwhile. */
async function claim(sql: SqlTransaction, { key, clock }: AttachedQueue, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return
  await sql
    .updateTable('redelayed_messages')
    .set({ updated_at: clock.now() })
    .where('queue', '=', key)
    .where(
      'id',
      'in',
      rows.map(({ id }) => id),
    )
    .execute()
}
