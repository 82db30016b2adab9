import type { QueueKeys } from '../keys.js'
import { DelayedStore } from '../store/delayed-store.js'
import type { Sender } from '../store/sender.js'
import type { ExpiringKey } from './key-types.js'
import type { TimeLimit } from './time-limit.js'

/** What the keys of the buckets of a wheel show. */
export interface BucketsState {
  /** The number of buckets that the wheel lacked. */
  readonly lacking: number
  /** Keys of buckets that Redis will delete, at most `MOST_EXPIRING`. */
  readonly expiring: readonly ExpiringKey[]
  /** The time was over before all minutes were examined. */
  readonly isCut: boolean
}

const MINUTE_MS = 60_000
/** The minutes that one script examines. */
const PAGE = 500
/** Buckets are named by their minutes, so those of a time can be found without the wheel. */
const BACK = 24 * 60
const AHEAD = 30 * 24 * 60
const MOST_EXPIRING = 1_000

/** Examines the buckets of the last day and of the next 30 days, or puts those into the wheel that it lacks, until the time is over. */
export async function inspectBuckets(
  sender: Sender,
  keys: QueueKeys,
  now: number,
  limit: TimeLimit,
  restore = false,
): Promise<BucketsState> {
  const store = new DelayedStore(sender, keys)
  const current = Math.floor(now / MINUTE_MS)
  const expiring: ExpiringKey[] = []
  let lacking = 0
  let minute = current - BACK
  for (; minute < current + AHEAD && !limit.isOver; minute += PAGE) {
    const page = await store.inspectBuckets(minute, PAGE, restore)
    lacking += page.lacking
    expiring.push(...page.expiring.slice(0, MOST_EXPIRING - expiring.length))
  }
  return { lacking, expiring, isCut: minute < current + AHEAD }
}
