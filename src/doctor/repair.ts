import { randomBytes } from 'node:crypto'
import { RedelayedError } from '../errors.js'
import type { QueueKeys } from '../keys.js'
import { DelayedStore } from '../store/delayed-store.js'
import type { Sender } from '../store/sender.js'
import { TransferStore } from '../store/transfer-store.js'
import { meaningOf, type Code, type Finding } from './finding.js'
import { inspectBuckets } from './inspect-buckets.js'
import { knownOf, PAGE, type QueueState } from './inspect-queue.js'
import { Pace } from './pace.js'
import { recheckSuspects } from './recheck.js'
import { TimeLimit } from './time-limit.js'

/** What `--fix` will do: one line per queue and kind of finding. */
export interface Step {
  readonly queue: string
  readonly code: Code
  readonly does: string
}

/** The result of a step: how many entries it repaired, or why it failed. */
export interface Repaired extends Step {
  readonly count: number
  readonly error?: string
}

/** The time limit of one run; the next run continues. */
const MOST_MS = 60_000
const ENTRIES_PER_SCRIPT = 100

/** The kinds of findings that the transfer script repairs. */
const TRANSFERRED: readonly Code[] = ['overdue', 'malformed', 'negative-due']

export function planOf(findings: readonly Finding[]): Step[] {
  const plan = new Map<string, Step>()
  const add = (queue: string, code: Code): void => {
    const does = meaningOf(code).fix
    if (does !== undefined) plan.set(`${code} ${queue}`, { queue, code, does })
  }
  for (const { fixable, queue, code } of findings) {
    if (!fixable || queue === null) continue
    // the transfer delivers due entries in any case, and the plan announces every step
    if (TRANSFERRED.includes(code)) add(queue, 'overdue')
    add(queue, code)
  }
  return [...plan.values()]
}

/** Carries out the steps of one queue. Every script is complete in itself, so the run may end after any of them. */
export async function repair(sender: Sender, state: QueueState, steps: readonly Step[]): Promise<Repaired[]> {
  const until = performance.now() + MOST_MS
  const done: Repaired[] = []
  const attempt = async (codes: readonly Code[], action: () => Promise<Partial<Record<Code, number>>>) => {
    const mine = steps.filter(({ code }) => codes.includes(code))
    if (mine.length === 0) return
    try {
      const counts = await action()
      for (const step of mine) done.push({ ...step, count: counts[step.code] ?? 0 })
    } catch (error) {
      // the report must contain the earlier steps, also when the connection breaks
      if (!(error instanceof RedelayedError)) throw error
      for (const step of mine) done.push({ ...step, count: 0, error: error.message })
    }
  }
  await attempt(TRANSFERRED, () => transferDue(sender, state.keys, until))
  await attempt(['minutes-lost'], async () => ({ 'minutes-lost': await restoreMinutes(sender, state, until) }))
  await attempt(['order-orphan'], async () => ({ 'order-orphan': await setOrphansAside(sender, state.keys, until) }))
  await attempt(['order-missing'], async () => ({ 'order-missing': await restore(sender, state, until) }))
  return done
}

/** Runs the library's transfer until no entry is due. */
async function transferDue(sender: Sender, keys: QueueKeys, until: number): Promise<Partial<Record<Code, number>>> {
  const sums = { overdue: 0, malformed: 0, 'negative-due': 0 }
  const store = new TransferStore(sender, keys)
  const request = { limit: ENTRIES_PER_SCRIPT, client: 'doctor', announce: false, renew: false, buckets: false }
  for (;;) {
    const { moved, malformed, negative, next, now } = await store.transfer(request)
    sums.overdue += moved
    sums.malformed += malformed
    sums['negative-due'] += negative
    const isDone = (next === null || next > now) && moved + malformed + negative === 0
    if (isDone || performance.now() > until) return sums
  }
}

/** Adds minutes with a bucket to the set of buckets. */
async function restoreMinutes(sender: Sender, { keys, found }: QueueState, until: number): Promise<number> {
  const { now } = await new DelayedStore(sender, keys).stats()
  const limit = new TimeLimit(until - performance.now())
  const { lacking } = await inspectBuckets(sender, keys, { now, limit, found: knownOf(found), restore: true })
  return lacking
}

/** Moves elements that only the order list has to the quarantine: each may be the only copy of a message. */
async function setOrphansAside(sender: Sender, keys: QueueKeys, until: number): Promise<number> {
  const store = new DelayedStore(sender, keys)
  const mark = randomBytes(24) // practically no element equals it
  let total = 0
  for (let from = 0; ;) {
    const { examined, orphans } = await store.setOrphansAside(from, PAGE, mark)
    total += orphans
    from += examined - orphans
    if (examined < PAGE || performance.now() > until) return total
  }
}

async function restore(sender: Sender, { keys, contents }: QueueState, until: number): Promise<number> {
  // another doctor may have restored them, while this one examined other queues
  const { missing } = await recheckSuspects(sender, keys, contents?.missing ?? [], until - performance.now())
  const store = new DelayedStore(sender, keys)
  const pace = new Pace()
  let total = 0
  for (const entry of missing) {
    if (performance.now() > until) break
    if (await pace.run(() => store.restore(entry))) total++
  }
  return total
}
