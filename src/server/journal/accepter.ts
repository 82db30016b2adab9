import { isDeepStrictEqual } from 'node:util'
import { ConnectionError, InvalidArgumentError, RedelayedError, type AddItem, type Added } from 'redelayed'
import type { JournalDatabase, SqlTransaction } from '../database/database.js'
import { FINAL_STATES, toBytes, toText } from '../database/tables.js'
import { JournalError } from '../errors.js'
import { pause, within } from '../pause.js'
import { addEach, markedOnce } from './add-each.js'
import { checkItem, type AcceptItem } from './accept-item.js'
import type { AttachedQueue } from './attached-queue.js'
import type { Drain } from './drain.js'
import { GroupCommit } from './group-commit.js'
import { drawId } from './message-id.js'
import { groupColumn, headerColumns, newRow, type Row, type Writers } from './rows.js'
import { tooLarge } from './too-large.js'
import { takeOver, type TakenOver } from './take-over.js'

/**
 * What became of an accepted message. `'kept'`: Redis already has a message with this id, which stays; `'journalled'`: SQL has it, but
 * Redis could not be reached: it is added as soon as Redis can be.
 */
export interface Accepted {
  readonly id: string
  readonly outcome: 'added' | 'kept' | 'journalled'
  /** Epoch milliseconds by the Redis clock. */
  readonly dueAt: number
}

/** A message on its way through SQL. */
interface Pending<T> {
  readonly item: AddItem<T>
  readonly row: Row
  readonly isDrawn: boolean
  /** The id belongs to an idempotency key: an existing row under it is this message, accepted by another call. */
  readonly isOnce: boolean
  /** After the commit: SQL has the row of this call. Otherwise a row with this id existed, whose message is not final. */
  isNew: boolean
  /** The row that existed before, if this one is not new; with `isOnce` also the row of another call in the same commit. */
  before: KnownRow | undefined
}

const KNOWN = ['state', 'accepted_at', 'updated_at', 'generation', 'change_ms', 'change_seq'] as const

type KnownRow = Pick<Row, (typeof KNOWN)[number]>

type Job = readonly Pending<unknown>[]

/** Where a fault can be planted. */
export interface AcceptPoints {
  readonly afterCommit?: () => Promise<void> | void
  readonly afterAdd?: () => Promise<void> | void
}

const MOST_JOBS = 500
/** The call stops waiting for Redis after this share of the time until another instance may add the message. */
const ADD_SHARE = 0.9
/** The longest that a call waits for the outcome of a message that another call has accepted. */
const OTHER_CALL_MS = 5_000
const IDS = 500
const NO_STAMP = { generation: 0, ms: 0, seq: 0 }

/** The mode `sync`: commits the row of a message, then sends the message to Redis, and only then answers the caller. */
export class Accepter {
  readonly #database: JournalDatabase
  readonly #writers: Writers
  readonly #commits: GroupCommit<Job>
  readonly #adoptAfterMs: number
  readonly #points: AcceptPoints
  readonly #drain: Drain
  /** Rows that Redis refused and that SQL does not yet show as refused. */
  readonly #refused = new Set<Row>()
  readonly #calls = new Set<Promise<unknown>>()
  #isClosed = false

  constructor(
    database: JournalDatabase,
    writers: Writers,
    drain: Drain,
    how: { readonly lingerMs: number; readonly adoptAfterMs: number; readonly points?: AcceptPoints },
  ) {
    this.#database = database
    this.#writers = writers
    this.#drain = drain
    this.#adoptAfterMs = how.adoptAfterMs
    this.#points = how.points ?? {}
    this.#commits = new GroupCommit((jobs) => this.#commit(jobs), { lingerMs: how.lingerMs, most: MOST_JOBS })
  }

  /** One result or error per message, in order. */
  async accept<T>(attached: AttachedQueue<T>, items: readonly AcceptItem<T>[]): Promise<(Accepted | RedelayedError)[]> {
    if (this.#isClosed) throw new JournalError('ERR_JOURNAL_CLOSED', 'the journal was closed')
    const call = this.#accept(attached, items)
    this.#calls.add(call)
    try {
      return await call
    } finally {
      this.#calls.delete(call)
      attached.wake()
    }
  }

  /** From now on every call rejects. */
  close(): void {
    this.#isClosed = true
  }

  /** Resolves when no call is under way. */
  async idle(): Promise<void> {
    while (this.#calls.size > 0) await Promise.allSettled(this.#calls)
    await this.retryRefusals().catch(() => undefined)
  }

  /** Writes the refusals that SQL could not take: otherwise another instance would add these messages later. */
  async retryRefusals(): Promise<void> {
    if (this.#refused.size > 0) await this.#writeRefusals([...this.#refused])
  }

  async #accept<T>(
    attached: AttachedQueue<T>,
    items: readonly AcceptItem<T>[],
  ): Promise<(Accepted | RedelayedError)[]> {
    const startedAt = performance.now()
    const pending = items.map((item, at) => prepare(attached, item, at))
    for (const { row } of pending) this.#checkSize(row)
    await this.#commits.submit(pending)
    await this.#points.afterCommit?.()
    // half of `adoptAfterMs` has passed: another instance may be about to add the messages, and a consumer may handle them before this call
    // would
    if (performance.now() - startedAt > this.#adoptAfterMs / 2) return this.#leaveToAdoption(attached, pending)
    const results = await this.#add(attached, pending, startedAt + this.#adoptAfterMs * ADD_SHARE - performance.now())
    await this.#points.afterAdd?.()
    return results
  }

  /**
   * This call does not send new messages: the instance that adopts accepted rows adds them. It sends the others, for which it wrote no row:
   * the row in SQL can be of an older message with that id.
   */
  async #leaveToAdoption<T>(
    attached: AttachedQueue<T>,
    pending: readonly Pending<T>[],
  ): Promise<(Accepted | RedelayedError)[]> {
    const known = pending.filter(({ isNew }) => !isNew)
    const results = known.length === 0 ? [] : await this.#add(attached, known, this.#adoptAfterMs * ADD_SHARE)
    let at = 0
    return pending.map((each) => (each.isNew ? accepted(each, 'journalled') : (results[at++] as Accepted)))
  }

  #checkSize({ id, payload }: Row): void {
    const { mostBytes: most } = this.#database
    if (payload.length > most) throw tooLarge({ id: toText(id), bytes: payload.length, most }, 'nothing was written')
  }

  #commit(jobs: readonly Job[]): Promise<void> {
    const all = jobs.flat()
    return this.#database.transaction(async (sql) => {
      const known = await this.#known(sql, all)
      const rows = new Map<string, Row>()
      const [fresh, drawn]: [Row[], Row[]] = [[], []]
      for (const each of all) {
        if (each.isDrawn && !each.isOnce) {
          // its id is new: there can be no row
          drawn.push(each.row)
          continue
        }
        const key = `${toText(each.row.queue)}\0${toText(each.row.id)}`
        const shared = rows.get(key)
        each.before = known.get(key)
        each.isNew = shared === undefined && isFree(each)
        // the age that counts is that of the other call's row
        if (shared !== undefined && each.isOnce) each.before = knownOf(shared)
        if (!each.isNew) continue
        rows.set(key, each.row)
        if (each.isOnce && each.before === undefined) fresh.push(each.row)
      }
      // if another instance inserts the same row now, this transaction fails and is repeated, and then finds that row
      await this.#writers.fresh.write(sql, fresh)
      const isFresh = new Set(fresh)
      const others = [...rows.values()].filter((row) => !isFresh.has(row))
      await this.#writers.accepted.write(sql, drawn.concat(others))
    })
  }

  /** The rows that exist under the ids that callers gave. */
  async #known(sql: SqlTransaction, all: Job): Promise<Map<string, KnownRow>> {
    const byQueue = new Map<string, Buffer[]>()
    for (const { row, isDrawn } of all) {
      if (isDrawn) continue
      const queue = toText(row.queue)
      const ids = byQueue.get(queue)
      if (ids === undefined) byQueue.set(queue, [Buffer.from(row.id)])
      else ids.push(Buffer.from(row.id))
    }
    const known = new Map<string, KnownRow>()
    for (const [queue, ids] of byQueue) {
      for (let from = 0; from < ids.length; from += IDS) {
        const query = sql
          .selectFrom('redelayed_messages')
          .select(['id', ...KNOWN])
          .where('queue', '=', toBytes(queue))
          .where('id', 'in', ids.slice(from, from + IDS))
        const rows = await (this.#database.kind === 'sqlite' ? query : query.forUpdate()).execute()
        for (const { id, ...row } of rows) known.set(`${queue}\0${toText(id)}`, row)
      }
    }
    return known
  }

  /**
   * Sends also messages that another call has accepted, as long as no other instance adopts them: Redis takes each once, whichever call
   * brings it, and so each call gets the answer of Redis, even if the other instance has died.
   */
  async #add<T>(
    attached: AttachedQueue<T>,
    pending: readonly Pending<T>[],
    withinMs: number,
  ): Promise<(Accepted | RedelayedError)[]> {
    if (!pending.some(({ isOnce }) => isOnce)) return this.#send(attached, pending, withinMs)
    const left = pending.map((each) => this.#leftMs(attached, each))
    const sent = pending.filter((_, at) => (left[at] ?? 0) > 0)
    const limit = Math.min(withinMs, ...left.filter((ms) => ms > 0))
    const results = sent.length === 0 ? [] : await this.#send(attached, sent, limit)
    let at = 0
    return Promise.all(
      pending.map(async (each, place) => {
        const result = (left[place] ?? 0) > 0 ? results[at++] : undefined
        if (result !== undefined && (each.isNew || !each.isOnce || !isRefusal(result))) return result
        return this.#outcomeOfOtherCall(attached, each, result as RedelayedError | undefined)
      }),
    )
  }

  /** The time in which a message may be sent: 0 if SQL knows that Redis has had it, or if another instance may be about to add it. */
  #leftMs<T>({ clock }: AttachedQueue<T>, { isNew, isOnce, before }: Pending<unknown>): number {
    if (isNew || !isOnce || before === undefined) return Infinity
    const age = clock.now() - before.accepted_at
    return before.state !== 'accepted' || age > this.#adoptAfterMs / 2 ? 0 : this.#adoptAfterMs * ADD_SHARE - age
  }

  /**
   * The outcome of a message that another call has accepted. `refusal`: the answer of Redis to this call; the other call may have got
   * another one.
   */
  async #outcomeOfOtherCall<T>(
    attached: AttachedQueue<T>,
    each: Pending<T>,
    refusal: RedelayedError | undefined,
  ): Promise<Accepted | RedelayedError> {
    if (refusal === undefined && each.before?.state !== 'accepted') return accepted(each, 'kept')
    const end = performance.now() + Math.min(OTHER_CALL_MS, 2 * this.#adoptAfterMs)
    for (let wait = 25; ; wait = Math.min(500, 2 * wait)) {
      await this.#drain.run(attached as AttachedQueue).catch(() => undefined) // without Redis, the row in SQL decides
      const state = await this.#stateOf(each.row)
      if (state !== undefined && state !== 'accepted' && state !== 'refused') return accepted(each, 'kept')
      if (state !== 'accepted' && refusal !== undefined) return refusal
      if (state !== 'accepted' || performance.now() > end) return inProgress(each.row)
      await pause(wait)
    }
  }

  async #stateOf({ queue, id }: Row): Promise<Row['state'] | undefined> {
    const row = await this.#database.run((sql) =>
      sql
        .selectFrom('redelayed_messages')
        .select('state')
        .where('queue', '=', queue)
        .where('id', '=', id)
        .executeTakeFirst(),
    )
    return row?.state
  }

  async #send<T>(
    attached: AttachedQueue<T>,
    pending: readonly Pending<T>[],
    withinMs: number,
  ): Promise<(Accepted | RedelayedError)[]> {
    const outcomes = await within(withinMs, addAll(attached, pending), () =>
      pending.map(() => new ConnectionError('Redis has not answered in time', 'unknown')),
    )
    const results: (Accepted | RedelayedError)[] = []
    const refused: Row[] = []
    const mismatched = new Map<Pending<T>, number>()
    for (const [at, each] of pending.entries()) {
      const outcome = outcomes[at]
      if (outcome === 'duplicate') {
        // another call has brought it to Redis, and a consumer has handled it
        results.push(accepted(each, 'kept'))
      } else if (outcome === 'added' || outcome === 'kept') {
        results.push(accepted(each, outcome))
        // the message in Redis is not the one of the row
        if (each.isNew ? outcome === 'kept' : outcome === 'added') mismatched.set(each, at)
      } else if (each.isNew && outcome instanceof ConnectionError) {
        results.push(accepted(each, 'journalled'))
      } else {
        if (each.isNew) refused.push(each.row)
        results.push(outcome as RedelayedError)
      }
    }
    if (refused.length > 0) await this.#refuse(refused)
    if (mismatched.size > 0) {
      const taken = await this.#reconcileRows(attached, [...mismatched.keys()])
      for (const [each, at] of mismatched) {
        const outcome = taken.get(each)
        if (outcome !== undefined) results[at] = accepted(each, outcome)
      }
    }
    return results
  }

  /** Marks rows whose messages Redis refused, so that no instance adds them later. */
  async #refuse(rows: readonly Row[]): Promise<void> {
    for (const row of rows) this.#refused.add(row)
    await this.#writeRefusals(rows).catch(() => undefined) // the caller gets the queue's error, which says more; the sweep retries the write
  }

  async #writeRefusals(rows: readonly Row[]): Promise<void> {
    await this.#database.transaction(async (sql) => {
      for (const { queue, id, accepted_at } of rows) {
        await sql
          .updateTable('redelayed_messages')
          .set({ state: 'refused' })
          .where('queue', '=', queue)
          .where('id', '=', id)
          .where('state', '=', 'accepted')
          .where('accepted_at', '=', accepted_at)
          .execute()
      }
    })
    for (const row of rows) this.#refused.delete(row)
  }

  /**
   * Makes the rows show the messages that Redis has under their ids: from the change stream, or, for what the stream no longer has, from
   * Redis itself. Resolves with the outcomes. After an error the outcomes of Redis stand; the stream keeps the changes until they are read.
   */
  async #reconcileRows<T>(
    attached: AttachedQueue<T>,
    pending: readonly Pending<T>[],
  ): Promise<ReadonlyMap<Pending<T>, TakenOver>> {
    const queue = attached as AttachedQueue
    try {
      const unseen = await notThere(queue, pending)
      await this.#drain.run(queue)
      const lost = new Set(await this.#acceptAgain(queue, unseen))
      const some = pending.filter(({ isNew, row }) => isNew || lost.has(row))
      const parts = { database: this.#database, writers: this.#writers, drain: this.#drain, onBadRow: () => undefined }
      const rows = some.map(({ row }) => row)
      const taken = await takeOver(parts, queue, rows, { lost })
      return new Map(some.map((each, at) => [each, outcomeOf(each, taken[at] ?? 'kept')]))
    } catch {
      return new Map()
    }
  }

  /**
   * If Redis took a message under an id that is open in SQL, the change stream has it. If the stream does not, Redis has lost the message
   * since, for example by a failover: writes the rows of these messages again and resolves with them.
   */
  #acceptAgain({ key }: AttachedQueue, pending: readonly Pending<unknown>[]): Promise<Row[]> {
    if (pending.length === 0) return Promise.resolve([])
    return this.#database.transaction(async (sql) => {
      const lost: Row[] = []
      for (const { row, before } of pending) {
        const query = sql
          .selectFrom('redelayed_messages')
          .select(KNOWN)
          .where('queue', '=', key)
          .where('id', '=', row.id)
        const known = await (this.#database.kind === 'sqlite' ? query : query.forUpdate()).executeTakeFirst()
        const isAsBefore = known?.state === 'refused' || isDeepStrictEqual({ ...known }, { ...before })
        if (known === undefined || isAsBefore) lost.push(row)
      }
      await this.#writers.accepted.write(sql, lost)
      return lost
    })
  }
}

/**
 * The messages whose ids are open in SQL and that Redis does not have. Ask before the changes are read: a message that is handled after
 * that changes its row. If Redis has the same content it lost nothing: a repeated call is answered with `added` although the message
 * existed.
 */
async function notThere({ queue }: AttachedQueue, pending: readonly Pending<unknown>[]): Promise<Pending<unknown>[]> {
  const known = pending.filter(({ isNew, before }) => !isNew && before !== undefined)
  if (known.length === 0) return []
  const messages = await queue.getAllRaw(known.map(({ row }) => toText(row.id)))
  return known.filter(({ row }, at) => {
    const message = messages[at]
    return !message || Buffer.compare(message.payload, row.payload) !== 0
  })
}

/** Whether its row may be written: no row exists, or that of a final message; with `isOnce` only that of a refused one. */
function isFree({ isOnce, before }: Pending<unknown>): boolean {
  if (before === undefined) return true
  return isOnce ? before.state === 'refused' : FINAL_STATES.includes(before.state)
}

function knownOf({ state, accepted_at, updated_at, generation, change_ms, change_seq }: Row): KnownRow {
  return { state, accepted_at, updated_at, generation, change_ms, change_seq }
}

/** Whether Redis refused the message; without an answer of Redis the outcome is unknown. */
function isRefusal(result: Accepted | RedelayedError): boolean {
  return result instanceof RedelayedError && !(result instanceof ConnectionError)
}

function inProgress({ id }: Row): JournalError {
  const what = `another call has accepted the message "${toText(id)}"; whether Redis takes it is not known yet`
  return new JournalError('ERR_JOURNAL_IN_PROGRESS', `${what}: repeat the call to learn it`, {
    outcome: 'unknown',
  })
}

/** For an existing row 'kept' means that this call's message went to Redis: report 'added'. */
function outcomeOf({ isNew }: Pending<unknown>, taken: TakenOver): TakenOver {
  return !isNew && taken === 'kept' ? 'added' : taken
}

function prepare<T>(attached: AttachedQueue<T>, item: AcceptItem<T>, at: number): Pending<T> {
  const { queue, key, clock, defaults } = attached
  checkItem(item, at)
  const now = clock.now()
  const { id = drawId(), delay, date, priority = 0, group, headers, deliveryLimit } = item
  const needsDefaults = item.timeToLive === undefined || (date === undefined && delay === undefined)
  if ((defaults === undefined && needsDefaults) || (date === undefined && !clock.isKnown)) throw unknownYet()
  const timeToLive = item.timeToLive ?? defaults?.timeToLive
  const dueAt =
    date === undefined ? now + (delay ?? defaults?.delay ?? 0) : Math.max(clock.isKnown ? now : 0, date.getTime())
  if (!Number.isSafeInteger(dueAt + (timeToLive ?? 0)))
    throw new InvalidArgumentError(`items[${at}].delay and timeToLive`, 'a time of at most 2^53-1 ms', delay)
  const row: Row = {
    ...newRow(key, id, NO_STAMP, now),
    due_at: dueAt,
    priority,
    ...headerColumns(headers),
    payload: queue.codec.encode(item.payload),
    expires_at: timeToLive === undefined ? null : dueAt + timeToLive,
    delivery_limit: deliveryLimit ?? null,
    message_group: groupColumn(group),
  }
  const exact = markedOnce(item, { id, date: new Date(dueAt), delay: undefined, timeToLive })
  const [isDrawn, isOnce] = [item.id === undefined || item.isDrawn === true, item.onceForMs !== undefined]
  return { item: exact, row, isDrawn, isOnce, isNew: true, before: undefined }
}

/** A guessed time could make a message due too early, or expire it too early. */
function unknownYet(): ConnectionError {
  const what = 'until it has, only messages with a date are accepted'
  const how = 'and with a timeToLive if the journal does not know the settings of the queue'
  return new ConnectionError(`Redis has not answered since the queue was attached: ${what}, ${how}`, 'not-applied')
}

async function addAll<T>(
  { queue }: AttachedQueue<T>,
  pending: readonly Pending<T>[],
): Promise<(Added['outcome'] | RedelayedError)[]> {
  try {
    const added = await addEach(
      queue,
      pending.map(({ item }) => item),
      'keep',
    )
    return added.map((result) => (result instanceof RedelayedError ? result : result.outcome))
  } catch (error) {
    return pending.map(() => error as RedelayedError)
  }
}

function accepted<T>({ row }: Pending<T>, outcome: Accepted['outcome']): Accepted {
  return { id: toText(row.id), outcome, dueAt: row.due_at }
}
