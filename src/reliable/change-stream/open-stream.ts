import { ChangesLostError, UnsupportedOperationError } from '../../errors.js'
import type { ReliableChangeStore } from '../../store/reliable-change-store.js'
import type { ChangePosition } from './change.js'

/** Where a reader begins: with the first entry, after the last one, or after the one at a position. */
export type Start = ChangePosition | 'start' | 'end'

/**
 * The id after which a reader begins, and the epoch of the queue. A new group begins there, an existing one continues where it is.
 *
 * @throws UnsupportedOperationError the queue keeps no changes
 * @throws ChangesLostError the stream does not have the entry of that position
 */
export async function openStream(store: ReliableChangeStore, start: Start, group: string): Promise<ChangePosition> {
  const { id, epoch } = typeof start === 'string' ? { id: start, epoch: '' } : start
  const opened = await store.open(group, id, epoch)
  if (opened.outcome === 'ok') return { id: opened.after, epoch: opened.epoch }
  if (opened.outcome === 'off')
    throw new UnsupportedOperationError('the queue keeps no changes: see the setting `changes` of setConfig')
  throw new ChangesLostError(opened.outcome)
}
