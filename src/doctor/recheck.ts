import type { QueueKeys } from '../keys.js'
import { DelayedStore, type EntryName } from '../store/delayed-store.js'
import type { Sender } from '../store/sender.js'
import { Pace } from './pace.js'

/** The limit for one queue, pauses included. */
export const RECHECK_MS = 30_000
const PAGE = 500
/** The elements by which a page overlaps the previous one, because as many may leave the list between two scripts. */
const OVERLAP = 250

export interface Recheck {
  /** Pending entries that the order list lacks. */
  readonly missing: readonly EntryName[]
  /** The number of suspects that were not checked. */
  readonly unsure: number
}

/**
 * Searches the order list for the suspects once more, for all of them in one walk. The walk starts at the right end, where
 * the entries offered during the first pass are: in a healthy queue it ends after a page or two.
 */
export async function recheckSuspects(
  sender: Sender,
  keys: QueueKeys,
  suspects: readonly EntryName[],
  mostMs = RECHECK_MS,
): Promise<Recheck> {
  const store = new DelayedStore(sender, keys)
  const until = performance.now() + mostMs
  const pace = new Pace()
  const left = new Map(suspects.map((suspect) => [idOf(suspect.prefix), suspect]))
  for (let isComplete: boolean | null = false; !isComplete;) {
    isComplete = await removeListed(store, left, pace, until)
    if (isComplete === null) return { missing: [], unsure: left.size }
  }
  const missing: EntryName[] = []
  for (const [id, suspect] of left) {
    if (performance.now() > until) break
    if (await pace.run(() => store.isMissing(suspect))) missing.push(suspect)
    left.delete(id)
  }
  return { missing, unsure: left.size }
}

/**
 * Removes the suspects that the list contains from `left`. Elements keep their order, so the walk misses none as long as each page
 * overlaps the one before. Returns `false` if a page did not overlap, because the list changed too fast: a retry may succeed.
 * Returns `null` if a retry would fail too.
 */
async function removeListed(
  store: DelayedStore,
  left: Map<string, EntryName>,
  pace: Pace,
  until: number,
): Promise<boolean | null> {
  let before: Set<string> | undefined
  for (let skip = 0; left.size > 0; skip += PAGE) {
    if (performance.now() > until) return null
    const page = PAGE + (before === undefined ? 0 : OVERLAP)
    const from = -skip - PAGE
    const { examined, prefixes } = await pace.run(() => store.inspectOrder(from, page))
    const ids = prefixes.map(idOf)
    if (before !== undefined && !ids.some((id) => before?.has(id))) return false
    for (const id of ids) left.delete(id)
    if (examined < page) return true
    if (ids.length === 0) return null // a page of orphans, to which the next page cannot be joined
    before = new Set(ids)
  }
  return true
}

function idOf(prefix: Buffer): string {
  return prefix.toString('latin1')
}
