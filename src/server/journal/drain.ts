import { sql as raw } from 'kysely'
import type { JournalDatabase, SqlTransaction } from '../database/database.js'
import { toBytes, toText, EMPTY, type Bytes } from '../database/tables.js'
import { applyChange, isNewer, type ChangeTime, type Draft } from './apply-change.js'
import { JOURNAL_GROUP, type AttachedQueue } from './attached-queue.js'
import type { ChangeReading, JournalBatch, JournalChange } from './journalled-queue.js'
import { idParts, type Position, type Positions } from './positions.js'
import { QueueConfigs } from './queue-configs.js'
import { isInFlow, MOST_CLIENT, Reread } from './reread.js'
import type { LargeMessage } from './too-large.js'
import { contentOf, groupColumn, headerColumns, STATE_COLUMNS, type FlowRow, type Row, type Writers } from './rows.js'
import { StateWriter } from './state-writer.js'
import { takeIn, unrecorded } from './unrecorded.js'

/** The most entries read and written together. */
const PAGE = 200
/** The most ids in one SQL condition. */
const IDS = 500
/** The most messages whose contents are read from Redis together, because the stream lacks them: each can have 16 MiB. */
const ASKED = 25
/** A payload up to this size is read and compared, which is faster than writing it again. */
const SMALL = 4_096
/** The clock of a Redis that takes over can be ahead of its predecessor's, but by less than this. */
const AHEAD_MS = 86_400_000
/** The most rows cleared by one statement. */
const CLEARED = 1_000

const isSmall = raw<boolean>`state = 'accepted' and length(payload) <= ${raw.lit(SMALL)}`
const SMALL_PAYLOAD = raw<Bytes | null>`case when ${isSmall} then payload end`.as('small_payload')
const SMALL_HEADERS = raw<Bytes | null>`case when ${isSmall} then headers end`.as('small_headers')

/** The columns that the drain does not read. */
const NO_CONTENT: Pick<Row, 'headers' | 'biz_key' | 'payload'> = { headers: null, biz_key: null, payload: EMPTY }

/** An entry of a stream. */
type End = Pick<Position, 'epoch' | 'id' | 'digest'>

type Content = Pick<Row, 'payload' | 'headers' | 'expires_at' | 'delivery_limit' | 'message_group'>

/** How a drain ended: at the end of the stream, or because Redis has forgotten something. */
export type Drained = { readonly changes: number; readonly hasForgotten: boolean }

/** Events of any drain: a watch, an addition or a cancel can be the first to see them. */
export interface DrainEvents {
  readonly forgotten: (queue: string) => void
  /** SQL does not have the message, or its new payload. */
  readonly tooLarge: (queue: string, message: LargeMessage) => void
  /** About `count` messages of a queue that began anew were not read: SQL may lack them. */
  readonly leftOut: (queue: string, count: number) => void
}

/** `until`: the time of the first entry that waits for another queue; all older entries are written. */
type RunResult = Drained & { readonly until: number }

/**
 * Writes the changes of a queue's stream into SQL, in order. One transaction writes the rows and moves the position from its known value:
 * of two instances that drain at once only one succeeds, so each change is written once. The stream is released after the commit.
 */
export class Drain {
  readonly #database: JournalDatabase
  readonly #positions: Positions
  readonly #writers: Writers
  readonly #reread: Reread
  readonly #states: StateWriter
  readonly #queues = new Map<string, AttachedQueue>()
  readonly #configs: QueueConfigs
  readonly #events: DrainEvents
  /**
   * The newest position in SQL that this process knows of each stream: an older one would hide that Redis went back to a time between the
   * two.
   */
  readonly #ends = new Map<string, End>()

  constructor(
    database: JournalDatabase,
    positions: Positions,
    writers: Writers,
    configs = new QueueConfigs(database),
    events: Partial<DrainEvents> = {},
  ) {
    this.#configs = configs
    this.#events = { forgotten: () => undefined, tooLarge: () => undefined, leftOut: () => undefined, ...events }
    this.#reread = new Reread()
    this.#database = database
    this.#positions = positions
    this.#writers = writers
    this.#states = new StateWriter(writers.states)
  }

  /** From now on, a move from another queue to this one is written only after this queue was drained. */
  add(attached: AttachedQueue): void {
    this.#queues.set(attached.queue.name, attached)
  }

  remove({ queue }: AttachedQueue): void {
    this.#queues.delete(queue.name)
    this.#ends.delete(queue.name)
  }

  /** Whether the stream has entries after the end that this process knows, or was reset; asks only Redis. */
  async hasNews({ queue }: AttachedQueue): Promise<boolean> {
    const end = this.#ends.get(queue.name)
    if (end === undefined) return true
    const { status, epoch, batches } = await queue.readChanges(end, 1)
    return status !== 'ok' || epoch !== end.epoch || batches.length > 0
  }

  /**
   * Drains up to the end that the stream has at the call, as others may keep writing, or at most `pages` pages. @throws the reason of
   * `signal`
   */
  async run(
    attached: AttachedQueue,
    { pages = Infinity, signal }: { readonly pages?: number; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<Drained> {
    const { changes, hasForgotten } = await this.#run(attached, pages, new Map(), signal)
    return { changes, hasForgotten }
  }

  /** `waiting`: the queues that wait for this drain, each with the time of its first entry that SQL lacks. */
  async #run(
    attached: AttachedQueue,
    pages: number,
    waiting: ReadonlyMap<AttachedQueue, number>,
    signal: AbortSignal | undefined,
  ): Promise<RunResult> {
    let changes = 0
    let last: string | null = null
    for (let page = 0; page < pages; page++) {
      signal?.throwIfAborted()
      const position = await this.#positions.load(attached.key)
      this.#know(attached, position)
      if (last !== null && !isAfter(last, position.id)) break
      const { status, epoch, batches: read, last: newest } = await attached.queue.readChanges(position, PAGE)
      last = status === 'ok' ? (last ?? newest) : null
      if (status !== 'ok') {
        if (!(await this.#begin(attached, position, status))) continue
        this.#events.forgotten(attached.queue.name)
        return { changes, hasForgotten: true, until: -Infinity }
      }
      const cut = await this.#followMoves(attached, { epoch, batches: read }, waiting, signal)
      if (cut === 'again') continue
      const batches = upToClear(read.slice(0, cut))
      if (read.length > 0 && batches.length === 0) return { changes, hasForgotten: false, until: timeOf(read[0]) }
      const { id, digest = null } = batches.at(-1)?.position ?? {}
      // This is the queue's epoch when the page was read: later entries belong to it, or another epoch has begun.
      if (id === undefined && position.epoch === epoch) break
      await this.#clear(attached, position.generation, batches[0], signal)
      const end = id === undefined ? { ...position, epoch } : { epoch, id, digest }
      if (await this.#write(attached, position, end, batches)) {
        this.#know(attached, end)
        changes += batches.reduce((sum, batch) => sum + batch.changes.length, 0)
        if (id !== undefined) await attached.queue.releaseChanges(JOURNAL_GROUP, id)
      }
    }
    return { changes, hasForgotten: false, until: Infinity }
  }

  #know({ queue, isDetached }: AttachedQueue, end: End): void {
    // after a new beginning only the drain can find out whether there are entries
    if (end.epoch === null || isDetached) this.#ends.delete(queue.name)
    else this.#ends.set(queue.name, end)
  }

  /**
   * A message that goes to another queue becomes final here. Before that is written, SQL has to know the message there: otherwise, if Redis
   * loses it in between, neither queue would put it back. Resolves with the number of entries of the page that may be written.
   *
   * Redis can lose data between the read of the page and the drain of the other queue, and another drain may already have handled that: the
   * other queue then looks intact, without the message. So Redis must still have the page after that drain.
   */
  async #followMoves(
    attached: AttachedQueue,
    { epoch, batches }: Pick<ChangeReading, 'epoch' | 'batches'>,
    waiting: ReadonlyMap<AttachedQueue, number>,
    signal: AbortSignal | undefined,
  ): Promise<number | 'again'> {
    const targets = batches.map(({ changes }) => new Set(changes.flatMap((change) => this.#targetOf(attached, change))))
    const others = new Set(targets.flatMap((some) => [...some]))
    const last = batches.at(-1)
    if (last === undefined || others.size === 0) return batches.length
    const until = new Map(waiting)
    const nested = new Map(waiting).set(attached, timeOf(batches[0]))
    for (const target of others) {
      if (nested.has(target)) continue
      const drained = await this.#run(target, Infinity, nested, signal)
      // the other queue has begun anew: this page can be from before
      if (drained.hasForgotten) return 'again'
      until.set(target, drained.until)
    }
    const { status } = await attached.queue.readChanges({ ...last.position, epoch }, 1)
    if (status !== 'ok') return 'again'
    const isWritten = (batch: JournalBatch, target: AttachedQueue): boolean =>
      timeOf(batch) < (until.get(target) ?? Infinity)
    const end = batches.findIndex((batch, at) => [...(targets[at] ?? [])].some((target) => !isWritten(batch, target)))
    // When queues wait for each other's entry of the same millisecond, the outermost queue writes one entry and so breaks the cycle.
    if (end === 0 && waiting.size === 0) return 1
    return end < 0 ? batches.length : end
  }

  #targetOf({ queue }: AttachedQueue, { change, to }: JournalChange): AttachedQueue[] {
    const name = change === 'dead' ? queue.deadLettersName : to
    const target = name === undefined ? undefined : this.#queues.get(name)
    return target === undefined ? [] : [target]
  }

  /** Begins a new generation if Redis has forgotten something; resolves with whether it did. */
  async #begin(attached: AttachedQueue, position: Position, status: ChangeReading['status']): Promise<boolean> {
    // first the dead letters: no message may die before its dead letter is recorded
    const { deadLetters } = attached
    if (deadLetters) await deadLetters.queue.keepChanges(JOURNAL_GROUP, await this.#configs.load(deadLetters.key))
    await attached.queue.keepChanges(JOURNAL_GROUP, await this.#configs.load(attached.key))
    const isNew = status === 'off' && position.epoch === null && position.id === '0-0'
    if (isNew && !(await this.#knowsAny(attached))) return false
    const beganAnew = status === 'off' || status === 'epoch'
    const { messages, leftOut } = beganAnew ? await unrecorded(attached) : { messages: [], leftOut: 0 }
    const { fitting, large } = bySize(messages, this.#database.mostBytes)
    const hasBegun = await this.#database.transaction(async (sql) => {
      if (!(await this.#positions.begin(sql, attached.key, position))) return false
      await takeIn(sql, this.#database, this.#writers, attached, position.generation + 1, fitting)
      return true
    })
    if (!hasBegun) return false
    for (const { id, payload } of large)
      this.#events.tooLarge(attached.queue.name, { id, bytes: payload.length, most: this.#database.mostBytes })
    if (leftOut > 0) this.#events.leftOut(attached.queue.name, leftOut)
    return true
  }

  async #knowsAny({ key }: AttachedQueue): Promise<boolean> {
    const row = await this.#database.run((sql) =>
      sql.selectFrom('redelayed_messages').select('state').where('queue', '=', key).limit(1).executeTakeFirst(),
    )
    return row !== undefined
  }

  async #write(attached: AttachedQueue, position: Position, end: End, page: readonly JournalBatch[]): Promise<boolean> {
    let large: readonly Row[] = []
    const isWritten = await this.#database.transaction(async (sql) => {
      // first, so that another instance waits here and then finds the position moved
      if (!(await this.#positions.advance(sql, attached.key, position, end))) return false
      const batches = await this.#reread.news(sql, attached.key, position.rereadUntil, page.flatMap(withoutRestored))
      const { rows: known, accepted } = await this.#rowsOf(sql, attached, [...idsOf(batches)])
      const drafts = new Map<string, Draft>()
      for (const [id, row] of known) drafts.set(id, { row, write: 'state-only' })
      for (const batch of batches) this.#apply(attached, position.generation, withoutKnown(batch, accepted), drafts)
      const touched = [...drafts].filter(([id, { row }]) => row !== known.get(id))
      large = await this.#writeDrafts(sql, attached, known, touched)
      await this.#writers.flow.write(sql, flowOf(attached, batches))
      return true
    })
    if (isWritten)
      for (const { id, payload } of large)
        this.#events.tooLarge(attached.queue.name, {
          id: toText(id),
          bytes: payload.length,
          most: this.#database.mostBytes,
        })
    return isWritten
  }

  #apply(
    attached: AttachedQueue,
    generation: number,
    { position, at, changes }: JournalBatch,
    drafts: Map<string, Draft>,
  ): void {
    // a foreign entry can have any time, and a row changed in the future would never be pruned
    const latest = attached.clock.now() + AHEAD_MS
    const time: ChangeTime = { ...idParts(position.id), generation, at: Math.min(at, latest) }
    for (const change of changes) {
      if (change.change === 'cleared') {
        clearDrafts(drafts, time)
        continue
      }
      const draft = applyChange(attached, drafts.get(change.id), change, time)
      if (draft !== undefined) drafts.set(change.id, draft)
    }
  }

  /**
   * Redis cleared all messages of the queue. There can be millions: their rows are written before the entry, in batches. After an
   * interruption it is repeated with the entry, as it touches no row with a later change.
   */
  async #clear(
    { key }: AttachedQueue,
    generation: number,
    batch: JournalBatch | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (batch === undefined || !hasClear(batch)) return
    const time = { ...idParts(batch.position.id), generation, at: batch.at }
    for (let after: Bytes | null = null; ;) {
      signal?.throwIfAborted()
      const rows: readonly { id: Bytes }[] = await this.#database.run((sql) => {
        const query = sql
          .selectFrom('redelayed_messages')
          .select('id')
          .where('queue', '=', key)
          .where('state', '=', 'open')
          .orderBy('id')
          .limit(CLEARED)
        return (after === null ? query : query.where('id', '>', after)).execute()
      })
      const ids = rows.map(({ id }) => id)
      if (ids.length > 0)
        await this.#database.run((sql) =>
          sql
            .updateTable('redelayed_messages')
            .set(removedAt(time))
            .where('queue', '=', key)
            .where('id', 'in', ids)
            .where('state', '=', 'open')
            .where((is) =>
              is.or([
                is('generation', '<', generation),
                is.and([is('generation', '=', generation), is('change_ms', '<', time.ms)]),
                is.and([
                  is('generation', '=', generation),
                  is('change_ms', '=', time.ms),
                  is('change_seq', '<', time.seq),
                ]),
              ]),
            )
            .execute(),
        )
      after = ids.at(-1) ?? null
      if (ids.length < CLEARED) return
    }
  }

  /** `accepted`: the contents of small messages that SQL had before Redis. */
  async #rowsOf(
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
  async #writeDrafts(
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
      await this.#writers.whole.write(sql, sized.fitting)
    }
    await addFailures(attached, whole, cameWith)
    await this.#writers.whole.write(sql, whole)
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

/**
 * The entries without restored messages: a restore put back the message exactly as SQL has it, so SQL needs no write. A row that changed
 * meanwhile is newer, and the restore removes final messages later.
 */
function withoutRestored(batch: JournalBatch): JournalBatch[] {
  const isOther = ({ change }: JournalChange): boolean => change !== 'restored'
  if (batch.changes.every(isOther)) return [batch]
  const changes = batch.changes.filter(isOther)
  return changes.length === 0 ? [] : [{ ...batch, changes }]
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

function bySize<M extends { readonly payload: Uint8Array }>(
  messages: readonly M[],
  most: number,
): { fitting: M[]; large: M[] } {
  const fits = ({ payload }: M): boolean => payload.length <= most
  return { fitting: messages.filter(fits), large: messages.filter((message) => !fits(message)) }
}

/**
 * SQL already has the content of accepted messages: if the first change of a message adds it to Redis with the same content, the content is
 * not written again. Removes each id of the batch from `accepted`, since only the first change of a message can match.
 */
function withoutKnown(batch: JournalBatch, accepted: Map<string, Content>): JournalBatch {
  if (accepted.size === 0) return batch
  const changes = batch.changes.map((change): JournalChange => {
    const known = accepted.get(change.id)
    accepted.delete(change.id)
    if (known === undefined || change.change !== 'added' || !isOf(change, known)) return change
    return { ...change, payload: undefined }
  })
  return { ...batch, changes }
}

function isOf({ payload, headers, expiresAt, deliveryLimit, group }: JournalChange, known: Content): boolean {
  return (
    payload !== undefined &&
    (expiresAt ?? null) === known.expires_at &&
    (deliveryLimit ?? null) === known.delivery_limit &&
    Buffer.compare(groupColumn(group) ?? EMPTY, known.message_group ?? EMPTY) === 0 &&
    Buffer.compare(payload, known.payload) === 0 &&
    Buffer.compare(headerColumns(headers).headers ?? EMPTY, known.headers ?? EMPTY) === 0
  )
}

function idsOf(batches: readonly JournalBatch[]): ReadonlySet<string> {
  return new Set(batches.flatMap(({ changes }) => changes.map(({ id }) => id)))
}

function hasClear({ changes }: JournalBatch): boolean {
  return changes.some(({ change }) => change === 'cleared')
}

/** An entry that clears the queue is written alone: the entries before it are written first. */
function upToClear(batches: readonly JournalBatch[]): readonly JournalBatch[] {
  const at = batches.findIndex(hasClear)
  return at < 0 ? batches : batches.slice(0, Math.max(1, at))
}

function removedAt({ at, generation, ms, seq }: ChangeTime): Partial<Row> {
  return { state: 'removed', updated_at: at, generation, change_ms: ms, change_seq: seq }
}

function clearDrafts(drafts: Map<string, Draft>, time: ChangeTime): void {
  for (const [id, draft] of drafts) {
    if (draft.row.state === 'open' && !isNewer(draft.row, time))
      drafts.set(id, { ...draft, row: { ...draft.row, ...removedAt(time) } })
  }
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

/** The time of an entry, from its id in the stream. */
function timeOf(batch: JournalBatch | undefined): number {
  return batch === undefined ? Infinity : idParts(batch.position.id).ms
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

const MOST_ERROR_BYTES = 2_000

function flowOf({ key }: AttachedQueue, batches: readonly JournalBatch[]): FlowRow[] {
  return batches.flatMap(({ at, client, changes }) =>
    changes
      .filter(({ change }) => isInFlow(change))
      .map(({ id, change, attempt, error }) => ({
        queue: key,
        id: toBytes(id),
        change,
        at,
        attempt: attempt ?? null,
        client: client.slice(0, MOST_CLIENT),
        error: error === undefined ? null : toBytes(error).subarray(0, MOST_ERROR_BYTES),
      })),
  )
}

function isAfter(id: string, other: string): boolean {
  const [a, b] = [idParts(id), idParts(other)]
  return a.ms === b.ms ? a.seq > b.seq : a.ms > b.ms
}
