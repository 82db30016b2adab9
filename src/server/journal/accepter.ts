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
 * What became of an accepted message. `'kept'`: one of this id is there and stays; `'journalled'`: SQL has it, and Redis could not be reached:
 * it is added as soon as Redis can be.
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
  /** A row of its id is its own: another call has accepted the same message. */
  readonly isOnce: boolean
  /** After the commit: its row is there for it. Otherwise there was a row of a message that is not final. */
  isNew: boolean
  /** The row that was there, where it is not new; of a message that is added once also the row of another call in the same commit. */
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
/** After this share of the time until another instance may add a message, the answer of Redis is not waited for. */
const ADD_SHARE = 0.9
/** So long a call waits for what becomes of a message that another call has accepted. */
const FATE_MS = 5_000
const IDS = 500
const NO_STAMP = { generation: 0, ms: 0, seq: 0 }

/** `sync`: a message's row is committed before the message goes to Redis, and only then the caller gets its answer. */
export class Accepter {
  readonly #database: JournalDatabase
  readonly #writers: Writers
  readonly #commits: GroupCommit<Job>
  readonly #adoptAfterMs: number
  readonly #points: AcceptPoints
  readonly #drain: Drain
  /** Rows that Redis refused, which SQL does not know yet. */
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

  /** From now on nothing is accepted. */
  close(): void {
    this.#isClosed = true
  }

  /** Resolves when no call is under way. */
  async idle(): Promise<void> {
    while (this.#calls.size > 0) await Promise.allSettled(this.#calls)
    await this.retryRefusals().catch(() => undefined)
  }

  /** Writes what Redis refused while SQL did not answer: else it would be added later. */
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
    // So late another instance may have added the messages by now, and a consumer may have handled them.
    if (performance.now() - startedAt > this.#adoptAfterMs / 2) return this.#leave(attached, pending)
    const results = await this.#add(attached, pending, startedAt + this.#adoptAfterMs * ADD_SHARE - performance.now())
    await this.#points.afterAdd?.()
    return results
  }

  /** New messages are left to whoever adds what never came to Redis. Of the others no row was written: SQL can know an older message by that id. */
  async #leave<T>(attached: AttachedQueue<T>, pending: readonly Pending<T>[]): Promise<(Accepted | RedelayedError)[]> {
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
      const fresh: Row[] = []
      for (const each of all) {
        const key = `${toText(each.row.queue)}\0${toText(each.row.id)}`
        const shared = rows.get(key)
        each.before = known.get(key)
        each.isNew = shared === undefined && isFree(each)
        // another call's row, which is as old as that call and not as this one
        if (shared !== undefined && each.isOnce) each.before = knownOf(shared)
        if (!each.isNew) continue
        rows.set(key, each.row)
        if (each.isOnce && each.before === undefined) fresh.push(each.row)
      }
      // where another instance inserts the same row now, the transaction fails, and is repeated with what it finds then
      await this.#writers.fresh.write(sql, fresh)
      const isFresh = new Set(fresh)
      const others = [...rows.values()].filter((row) => !isFresh.has(row))
      await this.#writers.accepted.write(sql, others)
    })
  }

  /** The rows of given ids. */
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
   * What another call has accepted is sent too, while no other instance adds it: Redis takes it once, whichever call brings it, and each call has the
   * answer of Redis, also where the other instance has died.
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
        return this.#fate(attached, each, result as RedelayedError | undefined)
      }),
    )
  }

  /** For so long a message may be sent; not at all where SQL knows that Redis has had it, or where another instance may be about to add it. */
  #leftMs<T>({ clock }: AttachedQueue<T>, { isNew, isOnce, before }: Pending<unknown>): number {
    if (isNew || !isOnce || before === undefined) return Infinity
    const age = clock.now() - before.accepted_at
    return before.state !== 'accepted' || age > this.#adoptAfterMs / 2 ? 0 : this.#adoptAfterMs * ADD_SHARE - age
  }

  /** What becomes of a message that another call has accepted. `refusal`: what Redis said to this call, which the other one may not have heard. */
  async #fate<T>(
    attached: AttachedQueue<T>,
    each: Pending<T>,
    refusal: RedelayedError | undefined,
  ): Promise<Accepted | RedelayedError> {
    if (refusal === undefined && each.before?.state !== 'accepted') return accepted(each, 'kept')
    const end = performance.now() + Math.min(FATE_MS, 2 * this.#adoptAfterMs)
    for (let wait = 25; ; wait = Math.min(500, 2 * wait)) {
      await this.#drain.run(attached as AttachedQueue).catch(() => undefined) // without Redis, SQL says what it knows
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
    const other = new Map<Pending<T>, number>()
    for (const [at, each] of pending.entries()) {
      const outcome = outcomes[at]
      if (outcome === 'duplicate') {
        // another call has brought it to Redis, and it is handled
        results.push(accepted(each, 'kept'))
      } else if (outcome === 'added' || outcome === 'kept') {
        results.push(accepted(each, outcome))
        // Redis and the row are not of the same message
        if (each.isNew ? outcome === 'kept' : outcome === 'added') other.set(each, at)
      } else if (each.isNew && outcome instanceof ConnectionError) {
        results.push(accepted(each, 'journalled'))
      } else {
        if (each.isNew) refused.push(each.row)
        results.push(outcome as RedelayedError)
      }
    }
    if (refused.length > 0) await this.#refuse(refused)
    if (other.size > 0) {
      const taken = await this.#follow(attached, [...other.keys()])
      for (const [each, at] of other) {
        const outcome = taken.get(each)
        if (outcome !== undefined) results[at] = accepted(each, outcome)
      }
    }
    return results
  }

  /** Redis will not take them: they are not to be added later. */
  async #refuse(rows: readonly Row[]): Promise<void> {
    for (const row of rows) this.#refused.add(row)
    await this.#writeRefusals(rows).catch(() => undefined) // the queue's own error says more; it is tried again
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
   * Rows become those of the messages that Redis has under their ids, by the change stream; what it does not say any more, Redis is asked. Resolves
   * with what became of the messages. An error changes nothing of it, and the stream keeps the changes until they are read.
   */
  async #follow<T>(
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
   * Where Redis has taken a message under the id of one that is open in SQL, the change stream says so. If it does not, Redis has lost the message
   * since, as by a failover: its row is written again, and resolved with.
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
 * Messages under the id of one that is open in SQL, which Redis does not have. To be asked before the changes are read: what is handled after that
 * changes its row. Where Redis has the same content it lost nothing: a repeated call is answered with `added` though the message was there.
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

/** Whether its row can be written: there is none, or one of a message that is final. */
function isFree({ isOnce, before }: Pending<unknown>): boolean {
  if (before === undefined) return true
  return isOnce ? before.state === 'refused' : FINAL_STATES.includes(before.state)
}

function knownOf({ state, accepted_at, updated_at, generation, change_ms, change_seq }: Row): KnownRow {
  return { state, accepted_at, updated_at, generation, change_ms, change_seq }
}

/** Whether Redis has said no; where it did not answer, nothing is known. */
function isRefusal(result: Accepted | RedelayedError): boolean {
  return result instanceof RedelayedError && !(result instanceof ConnectionError)
}

function inProgress({ id }: Row): JournalError {
  const what = `another call has accepted the message "${toText(id)}", and it is not known yet whether Redis takes it`
  return new JournalError('ERR_JOURNAL_IN_PROGRESS', `${what}: the same call again answers that`, {
    outcome: 'unknown',
  })
}

/** One that Redis had taken is known by the change stream after all. */
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
  const exact = { ...markedOnce(item), id, date: new Date(dueAt), delay: undefined, timeToLive }
  const [isDrawn, isOnce] = [item.id === undefined || item.isDrawn === true, item.onceForMs !== undefined]
  return { item: exact, row, isDrawn, isOnce, isNew: true, before: undefined }
}

/** A guess could be too early, or drop a message that is to stay. */
function unknownYet(): ConnectionError {
  const what = 'until it has, only messages with a date are accepted'
  const how = 'and with a timeToLive where the journal does not know the settings of the queue'
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
