import type { JournalDatabase } from '../database/database.js'
import { OPEN_STATES, toText, type Bytes, type RowState } from '../database/tables.js'
import type { AttachedQueue } from './attached-queue.js'
import { readRows, rowsWithIds, type RowFilter } from './row-pages.js'
import { messageOf, type Row } from './rows.js'

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

/** By hand: adds what SQL knows and Redis lacks. It can be repeated; what Redis has stays as it is. */
export async function restoreByHand(
  database: JournalDatabase,
  attached: AttachedQueue,
  { ids, expired = false, dryRun = false, signal, onProgress }: RestoreOptions,
): Promise<RestoreResult> {
  const states: RowState[] = expired ? [...OPEN_STATES, 'expired'] : [...OPEN_STATES]
  let [checked, restored] = [0, 0]
  for await (const rows of pagesOf(database, { queue: attached.key, states }, ids)) {
    signal?.throwIfAborted()
    checked += rows.length
    restored += await restorePage(attached, rows, dryRun)
    onProgress?.({ checked, restored })
  }
  return { checked, restored }
}

async function restorePage({ queue }: AttachedQueue, rows: readonly Row[], dryRun: boolean): Promise<number> {
  if (dryRun) {
    const found = await queue.getAllRaw(rows.map(({ id }) => toText(id)))
    return found.filter((message) => message === null).length
  }
  const messages = rows.map((row) => messageOf(row.state === 'expired' ? { ...row, expires_at: null } : row))
  return (await queue.restoreMany(messages)).filter((outcome) => outcome === 'restored').length
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
