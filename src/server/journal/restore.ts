import type { JournalDatabase } from '../database/database.js'
import { OPEN_STATES, toText, type Bytes, type RowState } from '../database/tables.js'
import type { AttachedQueue } from './attached-queue.js'
import { claimed } from './claim.js'
import type { Drain } from './drain.js'
import { restoreRows, type OnBadRow } from './restore-rows.js'
import { readRows, rowsWithIds, type RowFilter } from './row-pages.js'
import type { Row } from './rows.js'

/** What a restore by hand puts back. */
export interface RestoreOptions {
  /** Only these messages; otherwise all that are open. */
  readonly ids?: readonly string[] | undefined
  /** Also messages that expired. They expire no more. Default false. */
  readonly expired?: boolean | undefined
  /** Says what would be restored, and changes nothing. Default false. */
  readonly dryRun?: boolean | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: { readonly checked: number; readonly restored: number }) => void) | undefined
}

export interface RestoreResult {
  /** Messages that SQL knows as open, or expired where these were asked for. */
  readonly checked: number
  /** Of them, those that Redis lacked. */
  readonly restored: number
}

const PAGE = 1_000

export interface RestoreParts {
  readonly database: JournalDatabase
  readonly drain: Drain
  readonly adoptAfterMs: number
  readonly onBadRow: OnBadRow
}

/**
 * By hand: adds what SQL knows and Redis lacks. It can be repeated; what Redis has stays as it is. What consumers have handled meanwhile is read
 * from the change stream before each page: Redis lacks that, too.
 */
export async function restoreByHand(
  parts: RestoreParts,
  attached: AttachedQueue,
  { ids, expired = false, dryRun = false, signal, onProgress }: RestoreOptions,
): Promise<RestoreResult> {
  const states: RowState[] = expired ? [...OPEN_STATES, 'expired'] : [...OPEN_STATES]
  let [checked, restored] = [0, 0]
  if (!dryRun) await parts.drain.run(attached, { signal })
  for await (const rows of pagesOf(parts.database, { queue: attached.key, states }, ids)) {
    signal?.throwIfAborted()
    checked += rows.length
    restored += dryRun ? await countMissing(attached, rows) : await restorePage(parts, attached, rows)
    onProgress?.({ checked, restored })
  }
  return { checked, restored }
}

async function countMissing({ queue }: AttachedQueue, rows: readonly Row[]): Promise<number> {
  const found = await queue.getAllRaw(rows.map(({ id }) => toText(id)))
  return found.filter((message) => message === null).length
}

async function restorePage(
  { database, drain, adoptAfterMs, onBadRow }: RestoreParts,
  attached: AttachedQueue,
  rows: readonly Row[],
): Promise<number> {
  const mine = await claimed(database, attached, rows, adoptAfterMs)
  const kept = mine.map((row) => (row.state === 'expired' ? { ...row, expires_at: null } : row))
  const outcomes = await restoreRows(attached.queue, kept, onBadRow)
  await drain.run(attached) // before the next page is read
  return outcomes.filter((outcome) => outcome === 'restored').length
}

async function* pagesOf(
  database: JournalDatabase,
  filter: RowFilter,
  ids: readonly string[] | undefined,
): AsyncGenerator<readonly Row[], void> {
  if (ids !== undefined) {
    yield* rowsWithIds(database, filter, ids)
    return
  }
  let after: Bytes | null = null
  do {
    const page = await readRows(database, filter, after, PAGE)
    if (page.rows.length > 0) yield page.rows
    after = page.after
  } while (after !== null)
}
