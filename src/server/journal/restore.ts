import { randomUUID } from 'node:crypto'
import { ConnectionError } from 'redelayed'
import type { JournalDatabase } from '../database/database.js'
import { OPEN_STATES, toBytes, toText, type Bytes, type RowState } from '../database/tables.js'
import { pause } from '../pause.js'
import type { AttachedQueue } from './attached-queue.js'
import { claimed } from './claim.js'
import type { Drain } from './drain.js'
import type { Positions } from './positions.js'
import { NOTHING_RESTORED, sumOf, type RestoreResult } from './restore-result.js'
import { restoreRows, type OnBadRow } from './restore-rows.js'
import { readRows, rowsWithIds, type RowFilter } from './row-pages.js'
import type { Row } from './rows.js'

/** The options of a restore by hand. */
export interface RestoreOptions {
  /** Only these messages; otherwise all that are open. */
  readonly ids?: readonly string[] | undefined
  /** Also messages that expired. They expire no more. Default false. */
  readonly expired?: boolean | undefined
  /** Only counts what would be restored. Default false. */
  readonly dryRun?: boolean | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: RestoreResult) => void) | undefined
}

const PAGE = 1_000
const MOST_ATTEMPTS = 3
/** The pause between two attempts to take the lease of another restore. */
const ASK_MS = 100

export interface RestoreParts {
  readonly database: JournalDatabase
  readonly positions: Positions
  readonly drain: Drain
  readonly adoptAfterMs: number
  readonly onBadRow: OnBadRow
}

/**
 * A restore by hand: adds the messages that SQL knows and Redis lacks. It can be repeated; messages in Redis stay as they are. It waits for
 * any other restore of the queue: otherwise a message that one has put back could be handled, and then put back again by the other.
 */
export async function restoreByHand(
  parts: RestoreParts,
  attached: AttachedQueue,
  { ids, expired = false, dryRun = false, signal, onProgress }: RestoreOptions,
): Promise<RestoreResult> {
  const states: RowState[] = expired ? [...OPEN_STATES, 'expired'] : [...OPEN_STATES]
  const pages = (): AsyncGenerator<readonly Row[], void> =>
    pagesOf(parts.database, { queue: attached.key, states }, ids)
  let total = NOTHING_RESTORED
  const add = (rows: readonly Row[], counts: Omit<RestoreResult, 'checked'>): void => {
    total = sumOf(total, { ...counts, checked: rows.length })
    onProgress?.(total)
  }
  if (dryRun) {
    for await (const rows of pages()) {
      signal?.throwIfAborted()
      add(rows, { restored: await countMissing(attached, rows), refused: 0 })
    }
    return total
  }
  const owner = randomUUID()
  await parts.drain.run(attached, { signal })
  await hold(parts.positions, attached, owner, signal)
  try {
    for await (const rows of pages()) {
      add(rows, await repeated(() => restorePage(parts, attached, rows, states, signal)))
      await hold(parts.positions, attached, owner, signal)
    }
  } finally {
    await parts.positions.releaseRepair(attached.key, owner).catch(() => undefined)
  }
  return total
}

/**
 * Repeats a page if Redis did not answer. Each attempt asks Redis again what it lacks: it may have taken messages, and consumers may have
 * handled them.
 */
async function repeated<R>(action: () => Promise<R>): Promise<R> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await action()
    } catch (error) {
      if (attempt === MOST_ATTEMPTS || !(error instanceof ConnectionError)) throw error
    }
  }
}

async function hold(
  positions: Positions,
  { key }: AttachedQueue,
  owner: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  signal?.throwIfAborted()
  const claim = () => positions.claimRepair(key, owner, { pending: false })
  while ((await claim()) === undefined) {
    await pause(ASK_MS, signal)
    signal?.throwIfAborted()
  }
}

async function countMissing({ queue }: AttachedQueue, rows: readonly Row[]): Promise<number> {
  const found = await queue.getAllRaw(rows.map(({ id }) => toText(id)))
  return found.filter((message) => message === null).length
}

/**
 * Asks Redis which messages it lacks, reads the changes until now, and restores the rows that are still as they were: a message that a
 * consumer handles meanwhile is either found in Redis or known as handled. A row that has changed was in Redis since, and a consumer may be
 * about to handle it.
 */
async function restorePage(
  { database, drain, adoptAfterMs, onBadRow }: RestoreParts,
  attached: AttachedQueue,
  rows: readonly Row[],
  states: readonly RowState[],
  signal: AbortSignal | undefined,
): Promise<Omit<RestoreResult, 'checked'>> {
  const found = await attached.queue.getAllRaw(rows.map(({ id }) => toText(id)))
  const missing = rows.filter((_, at) => found[at] === null)
  if (missing.length === 0) return NOTHING_RESTORED
  await drain.run(attached, { signal })
  const ids = missing.map(({ id }) => id)
  const still: Row[] = []
  const before = new Map(missing.map((row) => [nameOf(row), row]))
  for await (const some of rowsWithIds(database, { queue: attached.key, states }, ids))
    still.push(...some.filter((row) => isUnchanged(row, before.get(nameOf(row)))))
  const mine = await claimed(database, attached, still, adoptAfterMs)
  const kept = mine.map((row) => (row.state === 'expired' ? { ...row, expires_at: null } : row))
  const outcomes = await restoreRows(attached.queue, kept, onBadRow)
  const count = (which: (typeof outcomes)[number]): number => outcomes.filter((outcome) => outcome === which).length
  return { restored: count('restored'), refused: count('bad') }
}

const STAMP = ['state', 'accepted_at', 'generation', 'change_ms', 'change_seq'] as const

/** Works also for an id that is not valid UTF-8. */
function nameOf({ id }: Row): string {
  return Buffer.from(id).toString('latin1')
}

function isUnchanged(row: Row, before: Row | undefined): boolean {
  return STAMP.every((name) => row[name] === before?.[name])
}

async function* pagesOf(
  database: JournalDatabase,
  filter: RowFilter,
  ids: readonly string[] | undefined,
): AsyncGenerator<readonly Row[], void> {
  if (ids !== undefined) {
    yield* rowsWithIds(database, filter, ids.map(toBytes))
    return
  }
  let after: Bytes | null = null
  do {
    const page = await readRows(database, filter, after, PAGE)
    if (page.rows.length > 0) yield page.rows
    after = page.after
  } while (after !== null)
}
