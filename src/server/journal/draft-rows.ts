import { sql as raw } from 'kysely'
import type { JournalDatabase, SqlTransaction } from '../database/database.js'
import { EMPTY, toBytes, toText, type Bytes } from '../database/tables.js'
import type { Draft } from './apply-change.js'
import type { AttachedQueue } from './attached-queue.js'
import type { Content } from './known-content.js'
import { contentOf, STATE_COLUMNS, type Row, type Writers } from './rows.js'
import { StateWriter } from './state-writer.js'
import { bySize } from './too-large.js'

/** The most ids in one SQL condition. */
const IDS = 500
/** The most messages whose contents are read from Redis together, because the stream lacks them: each can have 16 MiB. */
const ASKED = 25
/** A payload up to this size is read and compared, which is faster than writing it again. */
const SMALL = 4_096

const isSmall = raw<boolean>`state = 'accepted' and length(payload) <= ${raw.lit(SMALL)}`
const SMALL_PAYLOAD = raw<Bytes | null>`case when ${isSmall} then payload end`.as('small_payload')
const SMALL_HEADERS = raw<Bytes | null>`case when ${isSmall} then headers end`.as('small_headers')

/** The columns that are not read. */
const NO_CONTENT: Pick<Row, 'headers' | 'biz_key' | 'payload'> = { headers: null, biz_key: null, payload: EMPTY }

/** Reads the rows of messages before changes are applied to them, and writes them afterwards. */
export class DraftRows {
  readonly #database: JournalDatabase
  readonly #whole: Writers['whole']
  readonly #states: StateWriter

  constructor(database: JournalDatabase, writers: Pick<Writers, 'whole' | 'states'>) {
    this.#database = database
    this.#whole = writers.whole
    this.#states = new StateWriter(writers.states)
  }

  /** The rows of messages, without their contents. `accepted`: the contents of small messages that SQL had before Redis. */
  async read(
    sql: SqlTransaction,
    { key }: AttachedQueue,
    ids: readonly string[],
  ): Promise<{ readonly rows: Map<string, Row>; readonly accepted: Map<string, Content> }> {
    const rows = new Map<string, Row>()
    const accepted = new Map<string, Content>()
    for (let from = 0; from < ids.length; from += IDS) {
      const some = ids.slice(from, from + IDS).map(toBytes)
      const query = sql
        .selectFrom('redelayed_messages')
        .select([...STATE_COLUMNS, SMALL_PAYLOAD, SMALL_HEADERS])
        .where('queue', '=', key)
        .where('id', 'in', some)
      const found = await (this.#database.kind === 'sqlite' ? query : query.forUpdate()).execute()
      for (const each of found) {
        const id = toText(each.id)
        const { small_payload: payload, small_headers: headers } = each
        const { expires_at, delivery_limit, message_group } = each
        if (payload !== null) accepted.set(id, { payload, headers, expires_at, delivery_limit, message_group })
        // changes the object: copying each row would take longer than all the rest
        rows.set(id, Object.assign(each, NO_CONTENT))
      }
    }
    return { rows, accepted }
  }

  /**
   * Resolves with the rows whose payloads are too large for the database: they must not keep later changes out of SQL. If only the payload
   * is new, the row keeps the earlier one; otherwise it is deleted, because it describes an earlier message with this id.
   */
  async write(
    sql: SqlTransaction,
    attached: AttachedQueue,
    known: ReadonlyMap<string, Row>,
    drafts: readonly (readonly [id: string, draft: Draft])[],
  ): Promise<readonly Row[]> {
    const { mostBytes } = this.#database
    const rowsWith = (...writes: Draft['write'][]): Row[] =>
      drafts.filter(([, { write }]) => writes.includes(write)).map(([, { row }]) => row)
    const { fitting: whole, large } = bySize(rowsWith('insert', 'replace'), mostBytes)
    const earlier = withEarlierPayloads(drafts, large, mostBytes)
    whole.push(...earlier.values())
    const updated = new Set(rowsWith('replace'))
    const cameWith = new Map(drafts.map(([id, draft]) => [id, draft.cameWith ?? 0]))
    const states = [...rowsWith('state-only'), ...large.filter((row) => updated.has(row))]
    const missing = drafts.filter(([, { write }]) => write === 'fetch-content' || write === 'fetch-all')
    for (let from = 0; from < missing.length; from += ASKED) {
      const some = missing.slice(from, from + ASKED)
      const found: Row[] = []
      const messages = await attached.queue.getAllRaw(some.map(([id]) => id))
      some.forEach(([id, { row, write }], at) => {
        const message = messages[at]
        // a row without a payload makes no message; but a message that is gone from Redis needs none
        if (message !== null && message !== undefined) {
          const there = contentOf(message)
          // Redis can be ahead of these changes; later changes then update the row again
          found.push({ ...row, ...(write === 'fetch-all' ? there : pick(there)) })
        } else if (known.has(id)) states.push(row)
      })
      const sized = bySize(found, mostBytes)
      large.push(...sized.large)
      await addFailures(attached, sized.fitting, cameWith)
      await this.#whole.write(sql, sized.fitting)
    }
    await addFailures(attached, whole, cameWith)
    await this.#whole.write(sql, whole)
    await this.#states.write(sql, attached.key, states, known)
    const old = large.filter((row) => known.has(toText(row.id)) && !updated.has(row) && !earlier.has(row))
    if (old.length > 0)
      await sql
        .deleteFrom('redelayed_messages')
        .where('queue', '=', attached.key)
        .where(
          'id',
          'in',
          old.map(({ id }) => id),
        )
        .execute()
    return large
  }
}

/** For each row that is too large: a copy with the smallest earlier payload of the same page, if that fits. */
function withEarlierPayloads(
  drafts: readonly (readonly [id: string, draft: Draft])[],
  large: readonly Row[],
  most: number,
): ReadonlyMap<Row, Row> {
  const found = new Map<Row, Row>()
  for (const [, { row, before }] of drafts)
    if (before !== undefined && before.payload.length <= most && large.includes(row))
      found.set(row, { ...row, payload: before.payload, headers: before.headers, biz_key: before.biz_key })
  return found
}

/**
 * Adds the failures that a message came with, which the stream lacks: a dead letter has those of its queue, a restored message its earlier
 * ones. Only these are taken from Redis, as the stream has those of later attempts.
 */
async function addFailures(
  { queue, isForDeadLetters }: AttachedQueue,
  rows: Row[],
  cameWith: ReadonlyMap<string, number>,
): Promise<void> {
  const cameWithOf = (row: Row | undefined): number => cameWith.get(toText(row?.id ?? EMPTY)) ?? 0
  const lastOf = (row: Row | undefined): number => (isForDeadLetters ? Infinity : cameWithOf(row))
  // a dead letter that came with failures can have failed since
  const isMissing = (row: Row | undefined): boolean =>
    row?.failures === null ? lastOf(row) > 0 : cameWithOf(row) === Infinity
  const places = [...rows.keys()].filter((at) => isMissing(rows[at]))
  if (places.length === 0) return
  const messages = await queue.getAllRaw(places.map((at) => toText(rows[at]?.id ?? EMPTY)))
  places.forEach((at, n) => {
    const message = messages[n]
    const row = rows[at]
    if (!row || !message) return
    const failures = message.failures.filter(({ attempt }) => attempt <= lastOf(row))
    rows[at] = { ...row, failures: contentOf({ ...message, failures }).failures }
  })
}

/** The columns that the changes do not have. */
function pick({
  headers,
  biz_key,
  payload,
  expires_at,
  delivery_limit,
  message_group,
}: ReturnType<typeof contentOf>): Partial<Row> {
  return { headers, biz_key, payload, expires_at, delivery_limit, message_group }
}
