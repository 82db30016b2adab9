import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { JournalDatabase, Sql } from '../database/database.js'
import { FINAL_STATES, OPEN_STATES, toText, type Bytes, type PositionTable, type RowState } from '../database/tables.js'
import type { AttachedQueue } from './attached-queue.js'
import { claimed } from './claim.js'
import type { Drain, Drained } from './drain.js'
import type { RawMessage, StoredRawMessage } from './journalled-queue.js'
import { pause } from '../pause.js'
import { overlapped } from './overlapped.js'
import { RESTORE_CLAIM_MS, type Positions } from './positions.js'
import { restoreRows, type OnBadRow } from './restore-rows.js'
import { PAGE_BYTES, readIds, readWhole, type SizedRow } from './row-pages.js'
import { messageOf, type Row } from './rows.js'
import { SharedRun } from './shared-run.js'

/** How far a restore is. */
export interface RestoreProgress {
  readonly queue: string
  /** `open`: messages are put back; `final`: messages that SQL knows as final are removed from Redis. */
  readonly stage: 'open' | 'final'
  /** Rows that were compared with Redis. */
  readonly checked: number
  /** About how many open messages SQL has to compare; `null` until SQL has counted them, or if that takes too long. */
  readonly total: number | null
  readonly restored: number
  readonly present: number
  readonly removed: number
  /** Invalid rows, each with an `error` event. */
  readonly refused: number
  readonly perSecond: number
  /** Milliseconds until all open messages are done, at the rate so far; `null` while the total is not known. */
  readonly left: number | null
}

/** Where a fault can be planted. */
export interface RepairPoints {
  readonly afterPage?: () => Promise<void> | void
}

/** The most rows in a page. */
const PAGE = 1_000
/** The most ids in one SQL condition. */
const IDS = 500
/** The most pages under way at the same time, fewer if they are large: while Redis takes one, SQL reads another. */
const PAGES_AT_ONCE = 4
const MOST_BYTES_AT_ONCE = 2 * PAGE_BYTES

/** Rows of open messages, which are put back, or of final ones, which are removed. */
interface Page {
  readonly stage: RestoreProgress['stage']
  readonly rows: readonly SizedRow[]
  /** The id before the page; `null` at the beginning. */
  readonly from: Bytes | null
  /** The id after which the next page begins; `null` at the end of the stage. */
  readonly after: Bytes | null
}

const STATES: Readonly<Record<Page['stage'], readonly RowState[]>> = { open: OPEN_STATES, final: FINAL_STATES }

/** The bytes of a page; 0 for final messages, of which only ids are read. */
function bytesOf({ stage, rows }: Page): number {
  return stage === 'final' ? 0 : rows.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** One restore. */
interface Job {
  readonly attached: AttachedQueue
  readonly generation: number
  readonly tally: Tally
  /** Pages under way at the same time share one drain. */
  readonly drained: SharedRun<Drained>
}

/**
 * Makes Redis hold what SQL knows, after Redis has forgotten something: puts back open messages that are missing, replaces messages that
 * have an older state, and removes final ones. It saves its progress after each page, so that it resumes after an interruption, here or in
 * another instance. Rows that have changed in the new generation belong to messages that Redis has.
 */
export class Repair {
  readonly #owner = randomUUID()
  readonly #database: JournalDatabase
  readonly #positions: Positions
  readonly #drain: Drain
  readonly #rate: number
  readonly #adoptAfterMs: number
  readonly #onBadRow: OnBadRow
  readonly #points: RepairPoints

  constructor(
    database: JournalDatabase,
    positions: Positions,
    drain: Drain,
    how: {
      readonly rate: number
      readonly adoptAfterMs: number
      readonly onBadRow: OnBadRow
      readonly points?: RepairPoints
    },
  ) {
    this.#database = database
    this.#positions = positions
    this.#drain = drain
    this.#rate = how.rate
    this.#adoptAfterMs = how.adoptAfterMs
    this.#onBadRow = how.onBadRow
    this.#points = how.points ?? {}
  }

  /**
   * Resolves with true when Redis has everything; false when another instance is repairing, or Redis has forgotten something again.
   *
   * @throws the reason of `signal`; the next run resumes
   */
  async run(
    attached: AttachedQueue,
    {
      signal,
      onProgress,
    }: {
      readonly signal?: AbortSignal | undefined
      readonly onProgress?: ((progress: RestoreProgress) => void) | undefined
    },
  ): Promise<boolean> {
    const claim = await this.#positions.claimRepair(attached.key, this.#owner, { pending: true })
    if (claim === undefined) return false
    let isDone = false
    try {
      isDone = await this.#goOn(attached, claim, signal, onProgress)
      return isDone
    } finally {
      // so another instance need not wait for the end of the lease
      if (!isDone) await this.#positions.releaseRepair(attached.key, this.#owner).catch(() => undefined)
    }
  }

  async #goOn(
    attached: AttachedQueue,
    claim: PositionTable,
    signal: AbortSignal | undefined,
    onProgress: ((progress: RestoreProgress) => void) | undefined,
  ): Promise<boolean> {
    const { generation } = claim
    const tally = new Tally(attached.queue.name)
    void this.#count(attached.key, generation).then(
      (total) => (tally.total = total),
      () => undefined, // the repair works without it
    )
    const job = { attached, generation, tally, drained: new SharedRun(() => this.#drain.run(attached, { signal })) }
    let stage = claim.repair_stage === 'final' ? ('final' as const) : ('open' as const)
    let after = claim.repair_id
    for (;;) {
      const pages = this.#pages(job, stage, after)
      // with a limited rate, a page read ahead would become old
      const overlap = { most: this.#rate === Infinity ? PAGES_AT_ONCE : 1, mostBytes: MOST_BYTES_AT_ONCE, bytesOf }
      for await (const page of overlapped(pages, overlap, (one) => this.#take(job, one))) {
        signal?.throwIfAborted()
        if (page === undefined) return false
        onProgress?.(tally.progress(stage))
        await this.#points.afterPage?.()
        after = page.after
        const isEnd = after === null
        const isDone = isEnd && stage === 'final'
        const noted = { stage: isEnd ? 'final' : stage, id: after, isDone }
        if (!(await this.#positions.noteRepair(attached.key, { owner: this.#owner, generation }, noted))) return false
        if (isDone) return true
        await tally.keepRate(this.#rate, signal)
      }
      stage = 'final'
    }
  }

  async *#pages({ attached, generation }: Job, stage: Page['stage'], from: Bytes | null): AsyncGenerator<Page, void> {
    for (let after = from; ;) {
      const filter = { queue: attached.key, states: STATES[stage], before: generation }
      const page = { stage, from: after, ...(await readIds(this.#database, filter, after, PAGE)) }
      yield page
      if (page.after === null) return
      after = page.after
    }
  }

  /** Resolves with `undefined` when Redis has forgotten something again. */
  async #take(job: Job, page: Page): Promise<Page | undefined> {
    const isTaken = page.stage === 'open' ? await this.#restore(job, page) : await this.#remove(job, page)
    return isTaken ? page : undefined
  }

  /** Resolves with false when Redis has forgotten something again. */
  async #restore(job: Job, { rows, from }: Page): Promise<boolean> {
    const { attached, generation, tally } = job
    const until = rows.at(-1)?.id
    if (until === undefined) return true
    const ids = rows.map(({ id }) => toText(id))
    const found = await this.#look(job, ids)
    if (found === undefined) return false
    // read only now, after the changes; a row that Redis was not asked for, or that is another message by now, is newer
    const asked = new Map(ids.map((id, at) => [id, rows[at]?.accepted_at]))
    const filter = { queue: attached.key, states: OPEN_STATES, before: generation }
    const open = (await readWhole(this.#database, filter, { after: from, until })).filter(
      ({ id, accepted_at }) => asked.get(toText(id)) === accepted_at,
    )
    const mine = await claimed(this.#database, attached, open, this.#adoptAfterMs)
    const [known, others, older]: [Row[], Row[], Row[]] = [[], [], []]
    for (const row of mine) {
      const message = found.get(toText(row.id))
      if (message === undefined) (row.state === 'open' ? known : others).push(row)
      // if its due time differs when the script runs, it has changed since and stays as it is
      else if (!isSame(message, row)) older.push(row)
    }
    const { queue } = attached
    // these first: a message that is handled before the script runs would be put back
    const outcomes = [
      ...(await restoreRows(queue, older, this.#onBadRow, { replaces: (id) => found.get(id)?.dueAt })),
      ...(await restoreRows(queue, others, this.#onBadRow)),
      ...(await restoreRows(queue, known, this.#onBadRow, { known: true })),
    ]
    const restored = outcomes.filter((outcome) => outcome === 'restored' || outcome === 'replaced').length
    const refused = outcomes.filter((outcome) => outcome === 'bad').length
    tally.add(rows.length, { restored, refused, present: mine.length - restored - refused })
    return true
  }

  /**
   * Removes messages that SQL knows as final. It locks the rows meanwhile: a call that adds a message under such an id writes the row
   * first, and so waits until the old message is gone. Resolves with false when Redis has forgotten something again.
   */
  async #remove(job: Job, { rows }: Page): Promise<boolean> {
    const { attached, generation, tally } = job
    const found = await this.#look(
      job,
      rows.map(({ id }) => toText(id)),
    )
    if (found === undefined) return false
    const ids = rows.map(({ id }) => id).filter((id) => found.has(toText(id)))
    let removed = 0
    if (ids.length > 0) {
      removed = await this.#database.transaction(async (sql) => {
        const locks = this.#database.kind !== 'sqlite' // SQLite runs one transaction at a time
        const still = await stillFinal(sql, attached.key, generation, ids, locks)
        return still.length === 0 ? 0 : attached.queue.remove(...still)
      })
    }
    tally.add(rows.length, { removed })
    return true
  }

  /**
   * Asks Redis for the messages under the ids of a page, then reads the changes until now: a row that is unchanged after them is newer than
   * the message found. Resolves with `undefined` when Redis has forgotten something again.
   */
  async #look(
    { attached: { queue }, drained }: Job,
    ids: readonly string[],
  ): Promise<Map<string, StoredRawMessage> | undefined> {
    const messages = ids.length === 0 ? [] : await queue.getAllRaw(ids)
    if ((await drained.run()).hasForgotten) return undefined
    return new Map(messages.flatMap((message) => (message === null ? [] : [[message.id, message]])))
  }

  /** Counts only open messages: SQL can have many times more final ones. */
  async #count(queue: Bytes, generation: number): Promise<number> {
    const { count } = await this.#database.run((sql) =>
      sql
        .selectFrom('redelayed_messages')
        .select((of) => of.fn.countAll().as('count'))
        .where('queue', '=', queue)
        .where('state', 'in', OPEN_STATES)
        .where('generation', '<', generation)
        .executeTakeFirstOrThrow(),
    )
    return Number(count)
  }
}

/** The ids of rows that are still final and have not changed in this generation. */
async function stillFinal(
  sql: Sql,
  queue: Bytes,
  generation: number,
  ids: readonly Bytes[],
  locks: boolean,
): Promise<string[]> {
  const still: string[] = []
  for (let from = 0; from < ids.length; from += IDS) {
    const query = sql
      .selectFrom('redelayed_messages')
      .select('id')
      .where('queue', '=', queue)
      .where('id', 'in', ids.slice(from, from + IDS))
      .where('state', 'in', FINAL_STATES)
      .where('generation', '<', generation)
    const rows = await (locks ? query.forUpdate() : query).execute()
    still.push(...rows.map(({ id }) => toText(id)))
  }
  return still
}

/**
 * Whether the message in Redis is as the row says. With other content it is an older message with the same id, or one before an update. A
 * message that a consumer has is older if, according to SQL, it has failed, was released or delivered again since; its due time does not
 * count, because extending changes only that. A dead letter comes with failures of another queue: it has failed since if SQL has a failure
 * that Redis lacks.
 */
function isSame(message: StoredRawMessage, row: Row): boolean {
  let known: RawMessage
  try {
    known = messageOf(row)
  } catch {
    return false // `restoreRows` will report what is wrong with the row
  }
  const { dueAt, priority, group, attempts, payload, headers, expiresAt, deliveryLimit, failures } = known
  const last = failures.at(-1)
  const timesOf = (all: RawMessage['failures']): number =>
    all.filter(({ attempt, reason }) => attempt === last?.attempt && reason === last.reason).length
  const hasFailed = timesOf(failures) > timesOf(message.failures)
  return (
    (message.inFlight ? message.attempts === attempts && !hasFailed : message.dueAt === dueAt) &&
    message.priority === priority &&
    message.group === group &&
    message.attempts >= attempts &&
    message.expiresAt === expiresAt &&
    message.deliveryLimit === deliveryLimit &&
    isDeepStrictEqual({ ...message.headers }, { ...headers }) && // one of them has no prototype
    Buffer.compare(message.payload, payload) === 0
  )
}

/** The counts and the rate of a repair. */
class Tally {
  /** The number of open rows to compare. */
  total: number | null = null
  readonly #queue: string
  readonly #startedAt = performance.now()
  #checked = 0
  #restored = 0
  #present = 0
  #removed = 0
  #refused = 0

  constructor(queue: string) {
    this.#queue = queue
  }

  add(checked: number, more: { restored?: number; present?: number; removed?: number; refused?: number }): void {
    this.#checked += checked
    this.#restored += more.restored ?? 0
    this.#present += more.present ?? 0
    this.#removed += more.removed ?? 0
    this.#refused += more.refused ?? 0
  }

  progress(stage: RestoreProgress['stage']): RestoreProgress {
    const seconds = Math.max(0.001, (performance.now() - this.#startedAt) / 1000)
    const perSecond = this.#checked / seconds
    const { total } = this
    const missing = total === null ? null : Math.max(0, total - this.#checked)
    return {
      queue: this.#queue,
      stage,
      checked: this.#checked,
      total,
      restored: this.#restored,
      present: this.#present,
      removed: this.#removed,
      refused: this.#refused,
      perSecond: Math.round(perSecond),
      left: stage === 'final' || missing === null || perSecond === 0 ? null : Math.round((missing / perSecond) * 1000),
    }
  }

  /** Waits if the repair is faster than its rate. */
  async keepRate(rate: number, signal: AbortSignal | undefined): Promise<void> {
    const wait = (this.#checked / rate) * 1000 - (performance.now() - this.#startedAt)
    if (wait > 1) await pause(Math.min(wait, RESTORE_CLAIM_MS / 3), signal)
  }
}
