import type { ReliableKeys } from '../keys.js'
import type { StatusReply } from '../store/reliable-change-scripts.js'
import { ReliableChangeStore } from '../store/reliable-change-store.js'
import type { Sender } from '../store/sender.js'

/** The change stream of a reliable queue. */
export interface ChangesState extends StatusReply {
  /** The number of last entries that were examined; another program wrote `foreign` of them. */
  readonly examined: number
  readonly foreign: number
}

const MOST_EXAMINED = 10

/** Inspects the change stream; `undefined` if the queue keeps no changes and there are none. */
export async function inspectChanges(sender: Sender, keys: ReliableKeys): Promise<ChangesState | undefined> {
  const store = new ReliableChangeStore(sender, keys)
  const status = await store.status()
  if (status.epoch === null && status.length === 0) return undefined
  return { ...status, ...(await store.inspect(MOST_EXAMINED)) }
}
