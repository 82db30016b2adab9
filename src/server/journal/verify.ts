import type { JournalDatabase } from '../database/database.js'
import { OPEN_STATES, toBytes, toText, type Bytes } from '../database/tables.js'
import type { AttachedQueue } from './attached-queue.js'
import type { Drain } from './drain.js'
import type { StoredRawMessage } from './journalled-queue.js'
import { readIds } from './row-pages.js'
import type { Row } from './rows.js'

/** What SQL and Redis do not agree on. */
export interface Difference {
  readonly queue: string
  readonly id: string
  readonly what:
    | 'missing in Redis'
    | 'missing in SQL'
    | 'too large for SQL'
    | 'final in SQL'
    | 'due time'
    | 'priority'
    | 'attempts'
    | 'payload'
  readonly sql: string
  readonly redis: string
}

const PAGE = 500
/** How often what differs is looked at again, before it is said: the system lives. */
const LOOKS = 3
const PAUSE_MS = 300

/** Compares SQL and Redis in pages. A message differs only if it still does, in the same way, after the changes of the meantime were drained. */
export async function* verify(
  database: JournalDatabase,
  drain: Drain,
  attached: AttachedQueue,
): AsyncGenerator<Difference, void> {
  await drain.run(attached)
  const filter = { queue: attached.key, states: OPEN_STATES }
  let after: Bytes | null = null
  do {
    const page = await readIds(database, filter, after, PAGE)
    yield* differing(
      database,
      drain,
      attached,
      page.rows.map(({ id }) => toText(id)),
    )
    after = page.after
  } while (after !== null)
  for await (const page of attached.queue.listAllRaw({ pageSize: PAGE })) {
    yield* differing(
      database,
      drain,
      attached,
      page.map(({ id }) => id),
    )
  }
}

async function* differing(
  database: JournalDatabase,
  drain: Drain,
  attached: AttachedQueue,
  ids: readonly string[],
): AsyncGenerator<Difference, void> {
  let found = await compare(database, attached, ids)
  for (let look = 1; look < LOOKS && found.length > 0; look++) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    await drain.run(attached)
    const again = await compare(database, attached, [...new Set(found.map(({ id }) => id))])
    found = again.filter(({ id, what }) => found.some((before) => before.id === id && before.what === what))
  }
  yield* found
}

async function compare(
  database: JournalDatabase,
  attached: AttachedQueue,
  ids: readonly string[],
): Promise<Difference[]> {
  if (ids.length === 0) return []
  const [rows, messages] = await Promise.all([rowsOf(database, attached.key, ids), attached.queue.getAllRaw(ids)])
  return ids.flatMap((id, at) =>
    compareOne(attached.queue.name, id, rows.get(id), messages[at] ?? undefined, database.mostBytes),
  )
}

function compareOne(
  queue: string,
  id: string,
  row: Row | undefined,
  message: StoredRawMessage | undefined,
  mostBytes: number,
): Difference[] {
  const isOpen = row !== undefined && OPEN_STATES.includes(row.state)
  const say = (what: Difference['what'], sql: unknown, redis: unknown): Difference[] => [
    { queue, id, what, sql: String(sql), redis: String(redis) },
  ]
  if (message === undefined) return isOpen ? say('missing in Redis', row.state, 'nothing') : []
  const size = message.payload.length
  if (size > mostBytes) return say('too large for SQL', `at most ${mostBytes} bytes`, `${size} bytes`)
  if (row === undefined) return say('missing in SQL', 'nothing', 'a message')
  if (!isOpen) return say('final in SQL', row.state, 'a message')
  if (row.state === 'accepted') return [] // its change has not been read yet
  return [
    // a consumer can extend its visibility, which is no change of the message
    ...(message.inFlight || row.due_at === message.dueAt ? [] : say('due time', row.due_at, message.dueAt)),
    ...(row.priority === message.priority ? [] : say('priority', row.priority, message.priority)),
    ...(row.attempts === message.attempts ? [] : say('attempts', row.attempts, message.attempts)),
    ...(Buffer.compare(row.payload, message.payload) === 0
      ? []
      : say('payload', `${row.payload.length} bytes`, `${message.payload.length} bytes`)),
  ]
}

async function rowsOf(database: JournalDatabase, queue: Bytes, ids: readonly string[]): Promise<Map<string, Row>> {
  const rows = await database.run((sql) =>
    sql
      .selectFrom('redelayed_messages')
      .selectAll()
      .where('queue', '=', queue)
      .where('id', 'in', ids.map(toBytes))
      .execute(),
  )
  return new Map(rows.map((row) => [toText(row.id), row]))
}
