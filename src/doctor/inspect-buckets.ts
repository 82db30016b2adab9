import type { QueueKeys } from '../keys.js'
import { DelayedStore } from '../store/delayed-store.js'
import type { Sender } from '../store/sender.js'
import { PAGE, type FoundBuckets } from './found-buckets.js'
import { isWrong, typesOf, type ExpiringKey } from './key-types.js'
import type { TimeLimit } from './time-limit.js'

/** What the keys of the buckets of a wheel show. */
export interface BucketsState {
  /** The number of buckets that the wheel lacked, or had with too late a time. */
  readonly lacking: number
  /** Keys of buckets that Redis will delete, at most `MOST_EXPIRING`. */
  readonly expiring: readonly ExpiringKey[]
  /** Keys that no client reads: their names are no minutes. Only a search for all queues finds them, at most `MOST_MISNAMED`. */
  readonly misnamed: readonly string[]
  /** The time was over before all minutes were examined, or the search found more than it remembers. */
  readonly isCut: boolean
}

const MINUTE_MS = 60_000
/** Without a search for keys only these minutes are examined: buckets are named by their minutes, so those of a time can be found without the wheel. */
const BACK = 24 * 60
const AHEAD = 30 * 24 * 60
const MOST_EXPIRING = 1_000

/**
 * Examines the buckets that a search has found, or those of the last day and of the next 30 days, until the time is over. With `restore` it puts into the wheel
 * what it lacks.
 */
export async function inspectBuckets(
  sender: Sender,
  keys: QueueKeys,
  params: { now: number; limit: TimeLimit; found: FoundBuckets | undefined; restore?: boolean },
): Promise<BucketsState> {
  const { now, limit, found, restore = false } = params
  const store = new DelayedStore(sender, keys)
  const expiring: ExpiringKey[] = []
  let lacking = 0
  let isCut = false
  for (const minute of found?.pages ?? nearPages(now)) {
    isCut = limit.isOver
    if (isCut) break
    const page = await store.inspectBuckets(minute, PAGE, restore)
    lacking += page.lacking
    expiring.push(...page.expiring.slice(0, MOST_EXPIRING - expiring.length))
  }
  return {
    lacking,
    expiring,
    misnamed: await listsOf(sender, found?.misnamed ?? []),
    isCut: isCut || found?.isCut === true,
  }
}

/** Keys of another type hold no messages. */
async function listsOf(sender: Sender, keys: readonly string[]): Promise<string[]> {
  const types = await typesOf(
    sender,
    keys.map((key) => [key, 'list']),
  )
  return types.filter((each) => !isWrong(each)).map(({ key }) => key)
}

function nearPages(now: number): number[] {
  const first = Math.floor(now / MINUTE_MS) - BACK
  return Array.from({ length: Math.ceil((BACK + AHEAD) / PAGE) }, (_, n) => first + n * PAGE)
}
