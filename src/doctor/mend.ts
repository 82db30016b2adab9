import { randomBytes } from 'node:crypto'
import { RedelayedError } from '../errors.js'
import type { QueueKeys } from '../keys.js'
import { run, type Sender } from '../store/run.js'
import { checkOrdered, surveyOrder, transfer } from '../store/scripts.js'
import { MEANINGS, meaningOf, type Code, type Finding } from './finding.js'
import { PAGE, type QueueState } from './inspect-queue.js'
import { Pace } from './pace.js'
import { lookAgain } from './second-look.js'

/** What `--fix` will do: one line per queue and kind of finding. */
export interface Step {
  readonly queue: string
  readonly code: Code
  readonly does: string
}

/** What became of a step: how many entries it mended, or why it could not. */
export interface Mended extends Step {
  readonly count: number
  readonly error?: string
}

/** However much there is to mend, one run ends; the next goes on. */
const MOST_MS = 60_000
const SCRIPT_BUDGET_US = 2_000
const SCRIPT_BYTES = 2 * 2 ** 20
const ENTRIES_PER_SCRIPT = 100
/** What a process that holds the queue announces, see the transfer registry. */
const LEASE_MS = 25
const IDLE_MS = 3_600_000

/** What the transfer mends. */
const TRANSFERRED: readonly Code[] = ['overdue', 'malformed', 'negative-due']

export function planOf(findings: readonly Finding[]): Step[] {
  const plan = new Map<string, Step>()
  const add = (queue: string, code: Code): void => {
    const does = meaningOf(code).fix
    if (does !== undefined) plan.set(`${code} ${queue}`, { queue, code, does })
  }
  for (const { fixable, queue, code } of findings) {
    if (!fixable || queue === null) continue
    // it delivers what is due in any case, and nothing is done that was not said
    if (TRANSFERRED.includes(code)) add(queue, 'overdue')
    add(queue, code)
  }
  return [...plan.values()]
}

/** Carries out the steps of one queue. Every script is complete in itself, so it may end anywhere. */
export async function mend(sender: Sender, state: QueueState, steps: readonly Step[]): Promise<Mended[]> {
  const until = performance.now() + MOST_MS
  const done: Mended[] = []
  const attempt = async (codes: readonly Code[], action: () => Promise<Partial<Record<Code, number>>>) => {
    const mine = steps.filter(({ code }) => codes.includes(code))
    if (mine.length === 0) return
    try {
      const counts = await action()
      for (const step of mine) done.push({ ...step, count: counts[step.code] ?? 0 })
    } catch (error) {
      // what was done before must be told, also when the connection breaks
      if (!(error instanceof RedelayedError)) throw error
      for (const step of mine) done.push({ ...step, count: 0, error: error.message })
    }
  }
  await attempt(TRANSFERRED, () => transferDue(sender, state.keys, until))
  await attempt(['order-orphan'], async () => ({ 'order-orphan': await setOrphansAside(sender, state.keys, until) }))
  await attempt(['order-missing'], async () => ({ 'order-missing': await restore(sender, state, until) }))
  return done
}

/** The library's own transfer, until nothing is due. */
async function transferDue(sender: Sender, keys: QueueKeys, until: number): Promise<Partial<Record<Code, number>>> {
  const sums = { overdue: 0, malformed: 0, 'negative-due': 0 }
  const args = {
    channel: keys.channel,
    nowMs: -1,
    budgetUs: SCRIPT_BUDGET_US,
    limit: ENTRIES_PER_SCRIPT,
    leaseMs: LEASE_MS,
    soonMs: 0,
    idleMs: IDLE_MS,
    announce: false,
    toldUntil: 0,
    bytes: SCRIPT_BYTES,
  }
  for (;;) {
    const { moved, malformed, negative, next, now } = await run(sender, transfer, keys, args, { idempotent: true })
    sums.overdue += moved
    sums.malformed += malformed
    sums['negative-due'] += negative
    const isDone = (next === null || next > now) && moved + malformed + negative === 0
    if (isDone || performance.now() > until) return sums
  }
}

/** Moves what stands in the order list only to the quarantine: it may be the only copy of a message. */
async function setOrphansAside(sender: Sender, keys: QueueKeys, until: number): Promise<number> {
  const mark = randomBytes(24) // as good as certain that no element is the same
  let total = 0
  for (let from = 0; ;) {
    const { looked, orphans } = await run(sender, surveyOrder, keys, { from, page: PAGE, setAside: true, mark })
    total += orphans
    from += looked - orphans
    if (looked < PAGE || performance.now() > until) return total
  }
}

async function restore(sender: Sender, { keys, contents }: QueueState, until: number): Promise<number> {
  // they may have been restored by another doctor since, while this one looked at other queues
  const { missing } = await lookAgain(sender, keys, contents?.missing ?? [], until - performance.now())
  const pace = new Pace()
  let total = 0
  for (const entry of missing) {
    if (performance.now() > until) break
    const args = { ...entry, restore: true }
    if (await pace.run(() => run(sender, checkOrdered, keys, args, { idempotent: true }))) total++
  }
  return total
}

/** The codes that `--fix` does something about. */
export const FIXABLE: readonly Code[] = (Object.keys(MEANINGS) as Code[]).filter(
  (code) => meaningOf(code).fix !== undefined,
)
