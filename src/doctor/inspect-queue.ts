import { asInteger, asNumber } from '../store/replies.js'
import { DelayedStore, type EntryName, type InspectScheduleReply } from '../store/delayed-store.js'
import type { Sender } from '../store/sender.js'
import { queueKeys, type QueueKeys } from '../keys.js'
import { ConnectionError, CrossSlotError } from '../errors.js'
import type { Access } from './access.js'
import { deniedKeys } from './inspect-acl.js'
import type { FoundBuckets } from './found-buckets.js'
import { inspectBuckets, type BucketsState } from './inspect-buckets.js'
import { expiringOf, isWrong, typesOf, type ExpiringKey, type WrongType } from './key-types.js'
import { Refusals } from './refusals.js'
import { RECHECK_MS, recheckSuspects } from './recheck.js'
import { UNLIMITED, type TimeLimit } from './time-limit.js'

/** The state of one queue; `contents` is `undefined` when a key is of another type. */
export interface QueueState {
  readonly name: string
  /** The queue with the same schedule, to which these messages may belong instead: neither the keys nor the user say which. */
  readonly rival: string | null
  /** The buckets of a wheel that the search has found; `'unknown'` if there was no search. */
  readonly found?: FoundBuckets | 'unknown' | undefined
  readonly keys: QueueKeys
  readonly wrongTypes: readonly WrongType[]
  /** Keys that Redis will delete; missing if they were not examined. */
  readonly expiring?: readonly ExpiringKey[] | undefined
  readonly contents: QueueContents | undefined
  /** `undefined` if this user may not count them. */
  readonly subscribers: number | undefined
  /** Whether its keys are in different slots of a cluster. */
  readonly hasSpreadKeys: boolean
  /** Keys and channels that the user may not access. */
  readonly denied: readonly string[]
  readonly refusals: Refusals
}

export interface QueueContents {
  readonly pending: number
  /** The number of entries due for longer than the grace time. */
  readonly overdue: number
  readonly mostOverdueMs: number
  /** The number of buckets that should have been moved to the schedule. */
  readonly unpromoted: number
  /** Missing if they were not looked for. */
  readonly buckets?: BucketsState | undefined
  readonly nextDue: number | null
  readonly delivered: number
  readonly quarantined: number
  readonly negative: number
  readonly malformed: number
  readonly malformedDue: number
  readonly old: number
  readonly orphans: number
  /** Entries that the recheck found missing in the order list. */
  readonly missing: readonly EntryName[]
  /** The number of entries that the first pass did not find and the recheck could not decide. */
  readonly suspected: number
  /** How many elements of the order list and entries of the schedule were read before the time was over; `undefined`: all. */
  readonly readInTime?: number | undefined
}

/** The grace time: a transfer may be running. */
export const GRACE_MS = 1_000

/** The grace time of a bucket, which is moved in steps, and long before its messages are due. */
const PROMOTION_GRACE_MS = 15_000

/** Entries that one script reads. */
export const PAGE = 250
/** The most ids of an order list in memory at once, some 50 MB; with a longer list both keys are walked several times. */
const IDS_AT_ONCE = 1_000_000
/** The most suspects in memory. */
const MOST_SUSPECTS = 10_000
/**
 * The recheck of suspects has at least this time, even if the time of the examination is over: without it each suspect would be reported as
 * "perhaps".
 */
const LEAST_RECHECK_MS = 1_000

export type OnProgress = (entries: number) => void

/** Reads the types of the keys first: with a wrong type no script can run. */
export async function inspectQueue(
  access: Access,
  { name, rival, found }: Pick<QueueState, 'name' | 'rival' | 'found'>,
  user: string | undefined,
  onProgress: OnProgress,
  limit = UNLIMITED,
): Promise<QueueState> {
  const keys = queueKeys(name)
  const refusals = new Refusals()
  const subscribers = await refusals.unlessRefused(
    'the subscribers (PUBSUB NUMSUB)',
    countSubscribers(access, keys, refusals),
  )
  const types = await refusals.unlessRefused(
    'the types of the keys (TYPE)',
    typesOf(access.sender, expectedTypes(keys)),
  )
  const wrongTypes = types?.filter(isWrong) ?? []
  const existing = types?.map(({ key }) => key) ?? []
  const expiring = await refusals.unlessRefused('the expiry of the keys (PTTL)', expiringOf(access.sender, existing))
  const [server] = access.masters
  const denied = (server && user !== undefined ? await deniedKeys(server, user, name) : undefined) ?? []
  const state = {
    name,
    rival,
    found,
    keys,
    wrongTypes,
    expiring,
    contents: undefined,
    subscribers,
    hasSpreadKeys: false,
    denied,
    refusals,
  }
  if (wrongTypes.length > 0) return state
  try {
    const buckets = async (now: number): Promise<BucketsState | undefined> =>
      found === undefined
        ? undefined
        : refusals.unlessRefused(
            'the buckets',
            inspectBuckets(access.sender, keys, { now, limit: limit.part(0.25), found: knownOf(found) }),
          )
    const contents = inspectContents(access.sender, keys, buckets, onProgress, limit)
    return { ...state, contents: await refusals.unlessRefused('what is in the queue', contents) }
  } catch (error) {
    if (!(error instanceof CrossSlotError)) throw error
    return { ...state, hasSpreadKeys: true }
  }
}

export function knownOf(found: QueueState['found']): FoundBuckets | undefined {
  return found === 'unknown' ? undefined : found
}

/** Sums over all servers, because in a cluster a server counts only its own subscribers. */
async function countSubscribers({ all }: Access, { channel }: QueueKeys, refusals: Refusals): Promise<number> {
  const counts = await Promise.all(
    all.map(async (server) => {
      try {
        return ((await server.ask('PUBSUB', 'NUMSUB', channel)) as [string, number])[1]
      } catch (error) {
        // a replica that is down must not end the examination
        if (!(error instanceof ConnectionError)) throw error
        refusals.note(`the subscribers at ${server.address}`, error.message)
        return 0
      }
    }),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

function expectedTypes({ timeouts, wheel, order, destination, quarantine }: QueueKeys): [key: string, type: string][] {
  return [
    ...[timeouts, wheel].map((key): [string, string] => [key, 'zset']),
    ...[order, destination, quarantine].map((key): [string, string] => [key, 'list']),
  ]
}

async function inspectContents(
  sender: Sender,
  keys: QueueKeys,
  bucketsAt: (now: number) => Promise<BucketsState | undefined>,
  onProgress: OnProgress,
  limit: TimeLimit,
): Promise<QueueContents> {
  const { timeouts, wheel } = keys
  const counts = await new DelayedStore(sender, keys).stats()
  const { now, nextDue, pending, delivered, quarantined } = counts
  const latest = String(now - GRACE_MS)
  const overdue = asInteger(await sender.call('ZCOUNT', [timeouts, '0', latest], { resend: 'reads' }))
  const [, most] = (await sender.call('ZRANGEBYSCORE', [timeouts, '0', latest, 'WITHSCORES', 'LIMIT', '0', '1'], {
    resend: 'reads',
  })) as [unknown?, unknown?]
  const mostOverdueMs = most === undefined ? 0 : Math.max(0, now - asNumber(most))
  const promotable = String(now - PROMOTION_GRACE_MS)
  const unpromoted = asInteger(await sender.call('ZCOUNT', [wheel, '-inf', promotable], { resend: 'reads' }))
  const buckets = await bucketsAt(now)
  const comparison = await inspectBoth(sender, keys, onProgress, { limit })
  return { pending, overdue, mostOverdueMs, unpromoted, buckets, nextDue, delivered, quarantined, ...comparison }
}

type Comparison = Pick<
  QueueContents,
  'negative' | 'malformed' | 'malformedDue' | 'old' | 'orphans' | 'missing' | 'suspected' | 'readInTime'
>

/**
 * Compares the order list with the schedule. The ids of a long list do not fit into memory, so the list is walked once for each share of
 * them. Both change meanwhile, so missing entries are only suspects. With a limit the list gets half of the time, so that some of the
 * schedule is read in any case; with a part of the list no entry is a suspect.
 */
export async function inspectBoth(
  sender: Sender,
  keys: QueueKeys,
  onProgress: OnProgress,
  {
    idsAtOnce = IDS_AT_ONCE,
    recheckMs = RECHECK_MS,
    limit = UNLIMITED,
  }: { idsAtOnce?: number; recheckMs?: number; limit?: TimeLimit } = {},
): Promise<Comparison> {
  const store = new DelayedStore(sender, keys)
  const length = asInteger(await sender.call('LLEN', [keys.order], { resend: 'reads' }))
  const shares = Math.max(1, Math.ceil(length / idsAtOnce))
  const sums = { negative: 0, malformed: 0, malformedDue: 0, old: 0, orphans: 0 }
  const suspects: EntryName[] = []
  let [suspected, read] = [0, 0]
  const ofList = limit.part(0.5)
  const note = (entries: number): void => {
    read += entries
    onProgress(entries)
  }
  /** False if the time was over before its end. */
  const walk = async (share: number): Promise<boolean> => {
    const isMine = (id: number) => id % shares === share
    const listed = new Set<number>()
    let isListWhole = true
    for await (const { orphans, prefixes } of orderPages(store)) {
      if (share === 0) sums.orphans += orphans
      for (const id of prefixes.map(shortId)) if (isMine(id)) listed.add(id)
      note(prefixes.length)
      isListWhole = !ofList.isOver
      if (!isListWhole) break
    }
    if (!isListWhole && share > 0) return false
    for await (const page of schedulePages(store)) {
      if (share === 0)
        for (const sum of ['negative', 'malformed', 'malformedDue', 'old'] as const) sums[sum] += page[sum]
      for (const entry of isListWhole ? page.ordered : []) {
        const id = shortId(entry.prefix)
        if (!isMine(id) || listed.has(id)) continue
        if (suspects.length < MOST_SUSPECTS) suspects.push(entry)
        else suspected++
      }
      note(page.ordered.length)
      if (limit.isOver) return false
    }
    return isListWhole
  }
  let done = 0
  while (done < shares && (await walk(done))) done++
  const leftMs = Math.max(LEAST_RECHECK_MS, limit.leftMs)
  const { missing, unsure } = await recheckSuspects(sender, keys, suspects, Math.min(recheckMs, leftMs))
  // if the recheck found that no suspect is missing, the unchecked suspects were probably offered during the examination, too
  const isHealthy = missing.length + unsure === 0
  return {
    ...{ ...sums, missing, suspected: isHealthy ? 0 : suspected + unsure },
    ...(done < shares && { readInTime: read }),
  }
}

async function* orderPages(store: DelayedStore) {
  for (let from = 0; ; from += PAGE) {
    const page = await store.inspectOrder(from, PAGE)
    yield page
    if (page.examined < PAGE) return
  }
}

async function* schedulePages(store: DelayedStore) {
  for (let next: InspectScheduleReply['next'] | undefined; next !== null;) {
    const page: InspectScheduleReply = await store.inspectSchedule(next, PAGE)
    yield page
    next = page.next
  }
}

/**
 * An id as a number, which takes less memory than its bytes: its last six bytes, most of which are random in all formats. If two
 * are equal, one can hide that the other is missing: among a million ids with a probability of 1 in 280 million.
 */
function shortId(prefix: Buffer): number {
  return prefix.readUIntBE(prefix.length - 6, 6)
}
