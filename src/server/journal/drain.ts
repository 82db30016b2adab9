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

/** So many entries are read and written together. */
const PAGE = 200
/** So many ids stand in one condition. */
const IDS = 500
/** So many messages whose contents the stream does not say are asked for together: each can have 16 MiB. */
const ASKED = 25
/** A payload of so many bytes is read to be compared, which takes less than to write it again. */
const SMALL = 4_096
/** The clock of a Redis that takes over can be ahead of that of the Redis before, but by less. */
const AHEAD_MS = 86_400_000
/** So many rows are cleared by one statement. */
const CLEARED = 1_000

const isSmall = raw<boolean>`state = 'accepted' and length(payload) <= ${raw.lit(SMALL)}`
const SMALL_PAYLOAD = raw<Bytes | null>`case when ${isSmall} then payload end`.as('small_payload')
const SMALL_HEADERS = raw<Bytes | null>`case when ${isSmall} then headers end`.as('small_headers')

type Content = Pick<Row, 'payload' | 'headers' | 'expires_at' | 'delivery_limit' | 'message_group'>

/** How a drain ended: at the end of the stream, or since Redis was found to have forgotten something. */
export type Drained = { readonly changes: number; readonly hasForgotten: boolean }

/** Whoever drains can be the first to see it: a watch, an addition, a cancel. */
export interface DrainEvents {
  readonly forgotten: (queue: string) => void
  /** SQL does not have the message, or its new payload. */
  readonly tooLarge: (queue: string, message: LargeMessage) => void
  /** About so many messages of a queue that began anew were not read: SQL may not have them. */
  readonly leftOut: (queue: string, count: number) => void
}

/** `until`: the time of the first entry that waits for another queue; what is older is written. */
type RunResult = Drained & { readonly until: number }

/**
 * Brings the changes of a queue's stream into SQL, in their order. The rows and the position are one transaction, and the position names what it
 * was before: of two instances that drain at once one succeeds, and each change is written once. The stream is released after the commit.
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
  /** Where each stream was last read to its end. */
  readonly #ends = new Map<string, Position>()

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

  /** From now on, what leaves another queue for this one is written after it. */
  add(attached: AttachedQueue): void {
    this.#queues.set(attached.queue.name, attached)
  }

  remove({ queue }: AttachedQueue): void {
    this.#queues.delete(queue.name)
    this.#ends.delete(queue.name)
  }

  /** Whether there is anything behind the end that this process knows, or something has happened to the stream; by Redis alone. */
  async hasNews({ queue }: AttachedQueue): Promise<boolean> {
    const end = this.#ends.get(queue.name)
    if (end === undefined) return true
    const { status, epoch, batches } = await queue.readChanges(end, 1)
    return status !== 'ok' || epoch !== end.epoch || batches.length > 0
  }

  /** Until the end that the stream has at the call, as others may write without end, or for so many pages. @throws the reason of `signal` */
  async run(
    attached: AttachedQueue,
    { pages = Infinity, signal }: { readonly pages?: number; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<Drained> {
    const { changes, hasForgotten } = await this.#run(attached, pages, new Map(), signal)
    return { changes, hasForgotten }
  }

  /** `waiting`: the queues that this one is drained for, and the time of the first entry that SQL does not have of each. */
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
      // The epoch is that of the queue when the page was read: what comes after the page belongs to it, or another one has begun.
      if (id === undefined && position.epoch === epoch) {
        this.#ends.set(attached.queue.name, position)
        break
      }
      await this.#clear(attached, position.generation, batches[0], signal)
      const end = id === undefined ? { ...position, epoch } : { epoch, id, digest }
      if (await this.#write(attached, position, end, batches)) {
        changes += batches.reduce((sum, batch) => sum + batch.changes.length, 0)
        if (id !== undefined) await attached.queue.releaseChanges(JOURNAL_GROUP, id)
      }
    }
    return { changes, hasForgotten: false, until: Infinity }
  }

  /**
   * A message that goes to another queue is final here. Before that is written, SQL has to know the message there: lost between the two, it would
   * be put back in neither. Resolves with how many entries of a page may be written then.
   *
   * Redis can lose something between the page and the drain of the other queue, which another drain may have noticed by then: the other queue looks
   * whole, without the message. So the page has to be in Redis still after that drain.
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
      // it has begun anew: what was read here can be of the time before
      if (drained.hasForgotten) return 'again'
      until.set(target, drained.until)
    }
    const { status } = await attached.queue.readChanges({ ...last.position, epoch }, 1)
    if (status !== 'ok') return 'again'
    const isWritten = (batch: JournalBatch, target: AttachedQueue): boolean =>
      timeOf(batch) < (until.get(target) ?? Infinity)
    const end = batches.findIndex((batch, at) => [...(targets[at] ?? [])].some((target) => !isWritten(batch, target)))
    // Of queues that wait for each other, with entries of the same millisecond, the first one goes on.
    if (end === 0 && waiting.size === 0) return 1
    return end < 0 ? batches.length : end
  }

  #targetOf({ queue }: AttachedQueue, { change, to }: JournalChange): AttachedQueue[] {
    const name = change === 'dead' ? queue.deadLettersName : to
    const target = name === undefined ? undefined : this.#queues.get(name)
    return target === undefined ? [] : [target]
  }

  /** Resolves with whether Redis has forgotten something. */
  async #begin(attached: AttachedQueue, position: Position, status: ChangeReading['status']): Promise<boolean> {
    // no message dies before its dead letter is recorded
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

  async #write(
    attached: AttachedQueue,
    position: Position,
    end: Pick<Position, 'epoch' | 'id' | 'digest'>,
    page: readonly JournalBatch[],
  ): Promise<boolean> {
    let large: readonly Row[] = []
    const isWritten = await this.#database.transaction(async (sql) => {
      // first, so that another instance waits here and then finds the position moved
      if (!(await this.#positions.advance(sql, attached.key, position, end))) return false
      const batches = await this.#reread.news(sql, attached.key, position.rereadUntil, page.flatMap(withoutRestored))
      const { rows: known, accepted } = await this.#rowsOf(sql, attached, [...idsOf(batches)])
      const drafts = new Map<string, Draft>()
      for (const [id, row] of known) drafts.set(id, { row, content: 'kept' })
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
    // an entry of a stranger can be of any time: a row that changed in the future would be kept for good
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
   * All messages that Redis had went. There can be millions: their rows are written before the entry is, some at a time. What is interrupted is
   * done again with the entry, as nothing that came after it is touched.
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

  /** `accepted`: of small messages that SQL had before Redis, what SQL has of them. */
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
      for (const { small_payload: payload, small_headers: headers, ...row } of found) {
        const id = toText(row.id)
        rows.set(id, { ...row, headers: null, biz_key: null, payload: EMPTY })
        if (payload !== null) accepted.set(id, { ...row, payload, headers })
      }
    }
    return { rows, accepted }
  }

  /**
   * Resolves with the rows whose payloads the database does not take: they must not keep what follows them from SQL. Where only the payload is
   * new, the row has that of before; otherwise there is no row, as one of an earlier message of this id says nothing of this one.
   */
  async #writeDrafts(
    sql: SqlTransaction,
    attached: AttachedQueue,
    known: ReadonlyMap<string, Row>,
    drafts: readonly (readonly [id: string, draft: Draft])[],
  ): Promise<readonly Row[]> {
    const { mostBytes } = this.#database
    const rowsWith = (...contents: Draft['content'][]): Row[] =>
      drafts.filter(([, { content }]) => contents.includes(content)).map(([, { row }]) => row)
    const { fitting: whole, large } = bySize(rowsWith('own', 'updated'), mostBytes)
    const earlier = withEarlierPayloads(drafts, large, mostBytes)
    whole.push(...earlier.values())
    const updated = new Set(rowsWith('updated'))
    const cameWith = new Map(drafts.map(([id, draft]) => [id, draft.cameWith ?? 0]))
    const states = [...rowsWith('kept'), ...large.filter((row) => updated.has(row))]
    const missing = drafts.filter(([, { content }]) => content === 'missing' || content === 'older')
    for (let from = 0; from < missing.length; from += ASKED) {
      const some = missing.slice(from, from + ASKED)
      const found: Row[] = []
      const messages = await attached.queue.getAllRaw(some.map(([id]) => id))
      some.forEach(([id, { row, content }], at) => {
        const message = messages[at]
        // without a payload there is nothing to make the message of; that it is gone from Redis says that it needs none
        if (message !== null && message !== undefined) {
          const there = contentOf(message)
          // what is newer in Redis than these changes, later changes make of the row once more
          found.push({ ...row, ...(content === 'older' ? there : pick(there)) })
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
 * A restore put back what SQL has, as SQL has it: nothing of it is written. Where the row has changed meanwhile, that is newer, and what is final a
 * restore removes later.
 */
function withoutRestored(batch: JournalBatch): JournalBatch[] {
  const isOther = ({ change }: JournalChange): boolean => change !== 'restored'
  if (batch.changes.every(isOther)) return [batch]
  const changes = batch.changes.filter(isOther)
  return changes.length === 0 ? [] : [{ ...batch, changes }]
}

/** Of rows that are too large: those whose messages had a payload before in the same changes that is not. */
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
 * What was accepted is in SQL with its content: where the first that happened is that Redis got the same message, its content is not written once
 * more. Removes each id of the batch from `accepted`, since only the first change of a message can be that.
 */
function withoutKnown(batch: JournalBatch, accepted: Map<string, Content>): JournalBatch {
  if (accepted.size === 0) return batch
  const changes = batch.changes.map((change): JournalChange => {
    const known = accepted.get(change.id)
    accepted.delete(change.id)
    if (known === undefined || change.change !== 'added' || !isOf(change, known)) return change
    const { payload: _, ...rest } = change
    return rest
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

/** An entry by which all messages went stands alone: what is before it is written first. */
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
 * The stream does not say the failures with which a message comes: a dead letter has those of its queue, what was put back those of before. Of what Redis has
 * now only these are taken, as the stream says those of later attempts.
 */
async function addFailures(
  { queue, isForDeadLetters }: AttachedQueue,
  rows: Row[],
  cameWith: ReadonlyMap<string, number>,
): Promise<void> {
  const cameWithOf = (row: Row | undefined): number => cameWith.get(toText(row?.id ?? EMPTY)) ?? 0
  const lastOf = (row: Row | undefined): number => (isForDeadLetters ? Infinity : cameWithOf(row))
  // a dead letter that came with some can have failed since
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

/** When an entry was written, by its place in the stream. */
function timeOf(batch: JournalBatch | undefined): number {
  return batch === undefined ? Infinity : idParts(batch.position.id).ms
}

/** Of a message's content what the changes do not say. */
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
