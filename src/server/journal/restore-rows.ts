import { InvalidArgumentError } from 'redelayed'
import { toText } from '../database/tables.js'
import { JournalError } from '../errors.js'
import type { JournalledQueue, RestoreItem, RestoreOutcome } from './journalled-queue.js'
import { messageOf, type Row } from './rows.js'

/** Reports what is wrong with one row; the other rows go on. */
export type OnBadRow = (error: JournalError, queue: string, id: string) => void

/**
 * Like the queue's `restoreMany`, but skips a row that makes no valid message and restores the others. `replaces`: the due time of the
 * message that the row's message may replace; `known`: see `restoreMany`.
 */
export async function restoreRows(
  queue: JournalledQueue,
  rows: readonly Row[],
  onBadRow: OnBadRow,
  {
    replaces = () => undefined,
    known = false,
  }: { readonly replaces?: (id: string) => number | undefined; readonly known?: boolean } = {},
): Promise<(RestoreOutcome | 'bad')[]> {
  const bad = (row: Row, error: Error): 'bad' => {
    const id = toText(row.id)
    const message = `the row of "${id}" makes no message: ${error.message}; it is passed over`
    onBadRow(new JournalError('ERR_JOURNAL_ROW', message, { cause: error }), queue.name, id)
    return 'bad'
  }
  const outcomes: (RestoreOutcome | 'bad')[] = []
  const items: RestoreItem[] = []
  const places: number[] = []
  for (const [at, row] of rows.entries()) {
    try {
      const message = messageOf(row)
      items.push(Object.assign(message, { replaces: replaces(message.id) }))
      places.push(at)
    } catch (error) {
      outcomes[at] = bad(row, error as Error)
    }
  }
  /** Halves the list until the message that the queue refuses is alone: one bad message in a thousand takes twenty calls. */
  const restore = async (from: number, to: number): Promise<void> => {
    if (from === to) return
    try {
      const restored = await queue.restoreMany(items.slice(from, to), { known })
      restored.forEach((outcome, at) => (outcomes[places[from + at] ?? 0] = outcome))
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error
      const place = places[from] ?? 0
      if (to - from === 1) {
        outcomes[place] = bad(rows[place] as Row, error)
        return
      }
      const middle = (from + to) >> 1
      await restore(from, middle)
      await restore(middle, to)
    }
  }
  await restore(0, items.length)
  return outcomes
}
