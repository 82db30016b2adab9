import type { QueueKeys } from '../keys.js'
import { run, type Sender } from '../store/run.js'
import { checkOrdered, surveyOrder, type EntryName } from '../store/scripts.js'
import { Pace } from './pace.js'

/** For one queue, pauses included. */
const SECOND_LOOK_MS = 30_000
const PAGE = 500
/** Elements of the page before that a page shows again: so many may leave the list between two scripts. */
const OVERLAP = 250

export interface SecondLook {
  /** Pending, and in the order list nowhere. */
  readonly missing: readonly EntryName[]
  /** How many of the suspects nothing is known of. */
  readonly unsure: number
}

/**
 * Looks for the suspects in the order list once more, for all of them in one walk. It goes from the right end, where what was
 * offered during the first look stands: in a healthy queue it is over after a page or two.
 */
export async function lookAgain(
  sender: Sender,
  keys: QueueKeys,
  suspects: readonly EntryName[],
  mostMs = SECOND_LOOK_MS,
): Promise<SecondLook> {
  const until = performance.now() + mostMs
  const pace = new Pace()
  const left = new Map(suspects.map((suspect) => [idOf(suspect.prefix), suspect]))
  for (let isComplete: boolean | null = false; !isComplete;) {
    isComplete = await strikeListed(sender, keys, left, pace, until)
    if (isComplete === null) return { missing: [], unsure: left.size }
  }
  const missing: EntryName[] = []
  for (const [id, suspect] of left) {
    if (performance.now() > until) break
    const args = { ...suspect, restore: false }
    if (await pace.run(() => run(sender, checkOrdered, keys, args, { idempotent: true }))) missing.push(suspect)
    left.delete(id)
  }
  return { missing, unsure: left.size }
}

/**
 * Strikes out what stands in the list. Elements keep their order, so nothing is overlooked as long as each page shows some
 * of the page before. `false`: it does not, as the list changed too fast, and another try may succeed; `null`: none will.
 */
async function strikeListed(
  sender: Sender,
  keys: QueueKeys,
  left: Map<string, EntryName>,
  pace: Pace,
  until: number,
): Promise<boolean | null> {
  let before: Set<string> | undefined
  for (let skip = 0; left.size > 0; skip += PAGE) {
    if (performance.now() > until) return null
    const page = PAGE + (before === undefined ? 0 : OVERLAP)
    const args = { from: -skip - PAGE, page, setAside: false, mark: Buffer.alloc(0) }
    const { looked, prefixes } = await pace.run(() => run(sender, surveyOrder, keys, args, { idempotent: true }))
    const ids = prefixes.map(idOf)
    if (before !== undefined && !ids.some((id) => before?.has(id))) return false
    for (const id of ids) left.delete(id)
    if (looked < page) return true
    if (ids.length === 0) return null // a page of orphans: the next one could not be joined to it
    before = new Set(ids)
  }
  return true
}

function idOf(prefix: Buffer): string {
  return prefix.toString('latin1')
}
