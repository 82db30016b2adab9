import { isDeepStrictEqual } from 'node:util'
import type { FailedAttempt } from 'redelayed'
import type { JournalDatabase } from '../database/database.js'
import { OPEN_STATES, toBytes, toText, type Bytes } from '../database/tables.js'
import { pause } from '../pause.js'
import type { AttachedQueue } from './attached-queue.js'
import type { Drain } from './drain.js'
import type { RawMessage, StoredRawMessage } from './journalled-queue.js'
import { readIds } from './row-pages.js'
import { messageOf, MOST_FAILURES, type Row } from './rows.js'

/** A difference between SQL and Redis. */
export interface Difference {
  readonly queue: string
  readonly id: string
  readonly what:
    | 'missing in Redis'
    | 'missing in SQL'
    | 'too large for SQL'
    | 'unreadable in SQL'
    | 'final in SQL'
    | 'not known as added in SQL'
    | 'due time'
    | 'priority'
    | 'group'
    | 'attempts'
    | 'failures'
    | 'headers'
    | 'expiry'
    | 'delivery limit'
    | 'payload'
  readonly sql: string
  readonly redis: string
}

export interface VerifyOptions {
  /** Gets the id of a message that differed and then kept changing, so that it could not be compared. */
  readonly onNotSettled?: ((id: string) => void) | undefined
}

const PAGE = 500
/** How often a difference is checked again at most, and how often it has to persist before it is reported: the system keeps running. */
const LOOKS = 8
const SAME_LOOKS = 2
const PAUSE_MS = 300

/**
 * Compares SQL and Redis in pages and checks each difference again: it asks Redis, drains the changes until then, asks SQL, and then Redis
 * once more. A message that changed in Redis meanwhile is checked later: it differs only if it does so while it stays the same. A message
 * that changes until the last check is not settled.
 */
export async function* verify(
  database: JournalDatabase,
  drain: Drain,
  attached: AttachedQueue,
  { adoptAfterMs, onNotSettled }: VerifyOptions & { readonly adoptAfterMs: number },
): AsyncGenerator<Difference, void> {
  await drain.run(attached)
  const comparison = new Comparison(database, drain, attached, adoptAfterMs, onNotSettled)
  const filter = { queue: attached.key, states: OPEN_STATES }
  let after: Bytes | null = null
  do {
    const page = await readIds(database, filter, after, PAGE)
    yield* comparison.differing(page.rows.map(({ id }) => toText(id)))
    after = page.after
  } while (after !== null)
  for await (const page of attached.queue.listAllRaw({ pageSize: PAGE })) {
    const ids = page.map(({ id }) => id)
    const open = await openOf(database, attached.key, ids) // compared above
    yield* comparison.differing(ids.filter((id) => !open.has(id)))
  }
}

/** The differences of a message, and how often they have persisted. */
interface Suspect {
  readonly whats: ReadonlySet<Difference['what']>
  readonly looks: number
}

class Comparison {
  readonly #database: JournalDatabase
  readonly #drain: Drain
  readonly #attached: AttachedQueue
  readonly #adoptAfterMs: number
  readonly #onNotSettled: VerifyOptions['onNotSettled']

  constructor(
    database: JournalDatabase,
    drain: Drain,
    attached: AttachedQueue,
    adoptAfterMs: number,
    onNotSettled: VerifyOptions['onNotSettled'],
  ) {
    this.#database = database
    this.#drain = drain
    this.#attached = attached
    this.#adoptAfterMs = adoptAfterMs
    this.#onNotSettled = onNotSettled
  }

  async *differing(ids: readonly string[]): AsyncGenerator<Difference, void> {
    if (ids.length === 0) return
    const [rows, messages] = await Promise.all([this.#rows(ids), this.#messages(ids)])
    const suspects = new Map<string, Suspect>()
    for (const id of ids) {
      const found = this.#compare(id, rows.get(id), messages.get(id))
      if (found.length > 0) suspects.set(id, { whats: whatsOf(found), looks: 0 })
    }
    for (let look = 0; look < LOOKS && suspects.size > 0; look++) {
      await pause(PAUSE_MS)
      yield* this.#recheckSuspects(suspects)
    }
    for (const id of suspects.keys()) this.#onNotSettled?.(id)
  }

  /** Yields the differences that persisted. Removes suspects whose differences were reported or are gone. */
  async *#recheckSuspects(suspects: Map<string, Suspect>): AsyncGenerator<Difference, void> {
    const ids = [...suspects.keys()]
    const before = await this.#messages(ids)
    await this.#drain.run(this.#attached)
    const rows = await this.#rows(ids)
    const messages = await this.#messages(ids)
    for (const [id, { whats, looks }] of suspects) {
      const message = messages.get(id)
      if (!isDeepStrictEqual(message, before.get(id))) continue
      const found = this.#compare(id, rows.get(id), message).filter(({ what }) => whats.has(what))
      const isSaid = found.length > 0 && looks + 1 === SAME_LOOKS
      if (isSaid) yield* found
      if (isSaid || found.length === 0) suspects.delete(id)
      else suspects.set(id, { whats: whatsOf(found), looks: looks + 1 })
    }
  }

  #compare(id: string, row: Row | undefined, message: StoredRawMessage | undefined): Difference[] {
    const queue = this.#attached.queue.name
    const say = (what: Difference['what'], sql: unknown, redis: unknown): Difference[] => [
      { queue, id, what, sql: String(sql), redis: String(redis) },
    ]
    const isOpen = row !== undefined && OPEN_STATES.includes(row.state)
    if (message === undefined) return isOpen ? say('missing in Redis', row.state, 'nothing') : []
    const { mostBytes } = this.#database
    const size = message.payload.length
    if (size > mostBytes) return say('too large for SQL', `at most ${mostBytes} bytes`, `${size} bytes`)
    if (row === undefined) return say('missing in SQL', 'nothing', 'a message')
    if (!isOpen) return say('final in SQL', row.state, 'a message')
    if (row.state === 'accepted') {
      // its change has not been read yet; if that takes longer than adoption, it never will be
      const isLate = this.#attached.clock.now() - row.accepted_at > 2 * this.#adoptAfterMs
      return isLate ? say('not known as added in SQL', row.state, 'a message') : []
    }
    let known: RawMessage
    try {
      known = messageOf(row)
    } catch (error) {
      return say('unreadable in SQL', (error as Error).message, 'a message')
    }
    return differencesOf(known, message).flatMap(([what, sql, redis]) => say(what, sql, redis))
  }

  async #messages(ids: readonly string[]): Promise<ReadonlyMap<string, StoredRawMessage>> {
    const messages = await this.#attached.queue.getAllRaw(ids)
    return new Map(
      ids.flatMap((id, at) => {
        const message = messages[at]
        return message ? [[id, message] as const] : []
      }),
    )
  }

  async #rows(ids: readonly string[]): Promise<ReadonlyMap<string, Row>> {
    const rows = await this.#database.run((sql) =>
      sql
        .selectFrom('redelayed_messages')
        .selectAll()
        .where('queue', '=', this.#attached.key)
        .where('id', 'in', ids.map(toBytes))
        .execute(),
    )
    return new Map(rows.map((row) => [toText(row.id), row]))
  }
}

function whatsOf(differences: readonly Difference[]): ReadonlySet<Difference['what']> {
  return new Set(differences.map(({ what }) => what))
}

type Named = readonly [what: Difference['what'], sql: unknown, redis: unknown]

function differencesOf(sql: RawMessage, redis: StoredRawMessage): Named[] {
  const same: readonly (readonly [isSame: boolean, ...Named])[] = [
    // a consumer can extend its visibility, which does not count as a change of the message
    [redis.inFlight || sql.dueAt === redis.dueAt, 'due time', sql.dueAt, redis.dueAt],
    [sql.priority === redis.priority, 'priority', sql.priority, redis.priority],
    [sql.group === redis.group, 'group', inJson(sql.group ?? null), inJson(redis.group ?? null)],
    [sql.attempts === redis.attempts, 'attempts', sql.attempts, redis.attempts],
    [areSame(sql.failures, redis.failures), 'failures', ofAll(sql.failures), ofAll(redis.failures)],
    // one of the two has no prototype
    [
      isDeepStrictEqual({ ...sql.headers }, { ...redis.headers }),
      'headers',
      inJson(sql.headers),
      inJson(redis.headers),
    ],
    [sql.expiresAt === redis.expiresAt, 'expiry', sql.expiresAt, redis.expiresAt],
    [sql.deliveryLimit === redis.deliveryLimit, 'delivery limit', sql.deliveryLimit, redis.deliveryLimit],
    [
      Buffer.compare(sql.payload, redis.payload) === 0,
      'payload',
      `${sql.payload.length} bytes`,
      `${redis.payload.length} bytes`,
    ],
  ]
  return same.flatMap(([isSame, ...difference]) => (isSame ? [] : [difference]))
}

/**
 * Compares the last failures, as both keep a limited number: SQL limits their count, Redis their bytes. Their times are not compared: SQL
 * has the time of the entry in the change stream, which never goes back, and Redis that of its clock.
 */
function areSame(sql: readonly FailedAttempt[], redis: readonly FailedAttempt[]): boolean {
  const count = Math.min(sql.length, redis.length)
  if (sql.length > count && (count === 0 || bytesOf(redis) < FEW_BYTES)) return false
  if (redis.length > count && count < MOST_FAILURES) return false
  const last = redis.slice(redis.length - count)
  return sql
    .slice(sql.length - count)
    .every(({ attempt, reason }, at) => attempt === last[at]?.attempt && reason === last[at].reason)
}

/** Redis drops the oldest failures of a message only if they have more bytes together. */
const FEW_BYTES = 2_000

function bytesOf(failures: readonly FailedAttempt[]): number {
  return failures.reduce((sum, { reason }) => sum + Buffer.byteLength(reason), 0)
}

function ofAll(failures: readonly FailedAttempt[]): string {
  const last = failures.at(-1)
  return last === undefined ? 'none' : `${failures.length}, the last of attempt ${last.attempt}: ${inJson(last.reason)}`
}

const MOST_SHOWN = 200

function inJson(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length <= MOST_SHOWN ? text : `${text.slice(0, MOST_SHOWN)}…`
}

/** The ids that have open rows. */
async function openOf(database: JournalDatabase, queue: Bytes, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await database.run((sql) =>
    sql
      .selectFrom('redelayed_messages')
      .select('id')
      .where('queue', '=', queue)
      .where('id', 'in', ids.map(toBytes))
      .where('state', 'in', OPEN_STATES)
      .execute(),
  )
  return new Set(rows.map(({ id }) => toText(id)))
}
