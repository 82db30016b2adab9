import { InvalidArgumentError } from 'redelayed'
import { JournalError } from '../errors.js'
import type { JournalledQueue, RestoreItem, RestoreOutcome } from './journalled-queue.js'

/** Where what is wrong with one row is said, while the others go on. */
export type OnBadRow = (error: JournalError, queue: string, id: string) => void

/** As the queue's `restoreMany`, where a row that makes no message is passed over and keeps none of the others from their queue. */
export async function restoreRows(
  queue: JournalledQueue,
  items: readonly RestoreItem[],
  onBadRow: OnBadRow,
): Promise<(RestoreOutcome | 'bad')[]> {
  if (items.length === 0) return []
  try {
    return await queue.restoreMany(items)
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error
  }
  const outcomes: (RestoreOutcome | 'bad')[] = []
  for (const item of items) {
    try {
      outcomes.push(...(await queue.restoreMany([item])))
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error
      outcomes.push('bad')
      const message = `the row of "${item.id}" makes no message: ${error.message}; it is passed over`
      onBadRow(new JournalError('ERR_JOURNAL_ROW', message, { cause: error }), queue.name, item.id)
    }
  }
  return outcomes
}
