import { isUtf8 } from 'node:buffer'
import type { QueueKeys } from '../keys.js'
import { DelayedStore } from '../store/delayed-store.js'
import type { Sender } from '../store/sender.js'
import { PAGE, type FoundBuckets } from './found-buckets.js'
import { isWrong, typeOf, typesOf, type ExpiringKey, type WrongType } from './key-types.js'
import { cut, MAX_TEXT } from '../text.js'
import type { TimeLimit } from './time-limit.js'

/** What the keys of the buckets of a wheel show. */
export interface BucketsState {
  /** The number of buckets that the wheel lacked, or had with too late a time. */
  readonly lacking: number
  /** Keys of buckets that Redis will delete, at most `MOST_EXPIRING`. */
  readonly expiring: readonly ExpiringKey[]
  /** Keys of buckets, or of their cancelled ids, of another type, at most `MOST_WRONG`. */
  readonly wrongTypes: readonly WrongType[]
  /** Keys that no client reads: their names are no minutes. Only a search for all queues finds them, at most `MOST_MISNAMED`. */
  readonly misnamed: readonly string[]
  /** The time was over before all minutes were examined, or the search found more than it remembers. */
  readonly isCut: boolean
}

const MINUTE_MS = 60_000
/**
 * Without a search for keys only these minutes are examined: buckets are named by their minutes, so those of a time can be found without
 * the wheel.
 */
const BACK = 24 * 60
const AHEAD = 30 * 24 * 60
const MOST_EXPIRING = 1_000
export const MOST_WRONG = 1_000

/**
 * Examines the buckets that a search has found, or those of the last day and of the next 30 days, until the time is over. With `restore` it
 * puts into the wheel what it lacks.
 */
export async function inspectBuckets(
  sender: Sender,
  keys: QueueKeys,
  params: { now: number; limit: TimeLimit; found: FoundBuckets | undefined; restore?: boolean },
): Promise<BucketsState> {
  const { now, limit, found, restore = false } = params
  const store = new DelayedStore(sender, keys)
  const expiring: ExpiringKey[] = []
  const suspects: [key: string, type: string][] = []
  let lacking = 0
  let isCut = false
  for (const minute of found?.pages ?? nearPages(now)) {
    isCut = limit.isOver
    if (isCut) break
    const page = await store.inspectBuckets(minute, PAGE, restore)
    lacking += page.lacking
    expiring.push(...page.expiring.slice(0, MOST_EXPIRING - expiring.length))
    if (suspects.length < MOST_WRONG) suspects.push(...as(page.noLists, 'list'), ...as(page.noSets, 'set'))
  }
  return {
    lacking,
    expiring,
    wrongTypes: (await typesOf(sender, suspects.slice(0, MOST_WRONG))).filter(isWrong),
    misnamed: await listsOf(sender, found?.misnamed ?? []),
    isCut: isCut || found?.isCut === true,
  }
}

function as(keys: readonly string[], type: string): [key: string, type: string][] {
  return keys.map((key) => [key, type])
}

/** Keys of another type hold no messages. */
async function listsOf(sender: Sender, keys: readonly Buffer[]): Promise<string[]> {
  const types = await Promise.all(keys.map((key) => typeOf(sender, key)))
  return keys.filter((_, at) => types[at] === 'list').map(textOf)
}

/** A name for people: as redis-cli writes it where it is not UTF-8, so that they can name the key there. */
function textOf(key: Buffer): string {
  if (isUtf8(key)) return cut(key.toString(), MAX_TEXT)
  const bytes = key.toString('latin1', 0, MAX_TEXT)
  return bytes.replace(/[^ -~]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

function nearPages(now: number): number[] {
  const first = Math.floor(now / MINUTE_MS) - BACK
  return Array.from({ length: Math.ceil((BACK + AHEAD) / PAGE) }, (_, n) => first + n * PAGE)
}
