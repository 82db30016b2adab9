import { deadLettersOf, reliableKeys } from '../keys.js'
import { RedelayedError } from '../errors.js'
import { resolveSettings } from '../options.js'
import { CONFIG_NAMES, readConfig, type StoredRateLimit } from '../reliable/config.js'
import { asArray, asBytes, asInteger } from '../store/replies.js'
import { ReliableChangeStore } from '../store/reliable-change-store.js'
import type { StatusReply } from '../store/reliable-change-scripts.js'
import type { CountReply } from '../store/reliable-scripts.js'
import { MOST_PAUSED_TASKS, ReliableGroupStore, type GroupTotals } from '../store/reliable-group-store.js'
import { ReliableStore } from '../store/reliable-store.js'
import type { Sender } from '../store/sender.js'
import { firstWithin } from './within-bytes.js'

/** The counts of a reliable queue. */
export interface ReliableFigures extends Omit<CountReply, 'firstVisibleAt' | 'asides'> {
  /** How long the first visible message has been waiting, in milliseconds. */
  readonly oldestMs: number
  /** When the next message becomes visible, epoch milliseconds; `null` if any is visible, or none is delayed. */
  readonly nextAt: number | null
  readonly repeats: RepeatFigures
  readonly groups: Omit<GroupTotals, 'pausedTasks'>
  readonly tasks: PausedTasks
  /** The change stream; `null` if the queue keeps no changes and there are none. */
  readonly changes: StatusReply | null
}

/** The paused tasks of a queue: how many, and the names of the first `MOST_NAMES`. */
export interface PausedTasks {
  readonly paused: number
  readonly names: readonly string[]
}

export interface RepeatFigures {
  readonly stored: number
  /** The number of repeats whose tick came some time ago without a prepared message. */
  readonly stuck: number
}

/** The age of a tick without a message that counts as stuck: a polling consumer prepares messages in milliseconds. */
const STUCK_MS = 10_000
/** The most names of paused tasks to read. */
const MOST_NAMES = 100

/** Measures a queue with nine short commands, whatever its size, and with a few more if tasks are paused. */
export async function measureReliable(sender: Sender, name: string): Promise<ReliableFigures> {
  const [keys, dead] = [reliableKeys(name), reliableKeys(deadLettersOf(name))]
  const store = new ReliableStore(sender, resolveSettings({}), { keys, dead }, '')
  const [{ firstVisibleAt, asides: _, ...counts }, status, stored, { pausedTasks, ...groups }] = await Promise.all([
    store.count(),
    new ReliableChangeStore(sender, keys).status(),
    sender.call('HLEN', [keys.repeats], { resend: 'reads' }),
    new ReliableGroupStore(sender, resolveSettings({}), keys).totals(),
  ])
  const { now } = counts
  const latest = String(now - STUCK_MS)
  const stuck = await sender.call('ZCOUNT', [keys.ticks, '-inf', latest], { resend: 'reads' })
  return {
    ...counts,
    oldestMs: firstVisibleAt === null ? 0 : Math.max(0, now - Math.max(0, firstVisibleAt)),
    nextAt: firstVisibleAt !== null && firstVisibleAt > now ? firstVisibleAt : null,
    repeats: { stored: asInteger(stored), stuck: asInteger(stuck) },
    groups,
    tasks: { paused: pausedTasks, names: pausedTasks === 0 ? [] : await pausedTaskNames(sender, keys.taskPauses) },
    changes: status.epoch === null && status.length === 0 ? null : status,
  }
}

/** The names of the first paused tasks, in pages, because another program can have written names of any size. */
async function pausedTaskNames(sender: Sender, key: string): Promise<string[]> {
  const read = async (from: number, count: number): Promise<Buffer[]> => {
    const args = [key, '1', String(MOST_PAUSED_TASKS), 'LIMIT', String(from), String(count)]
    return asArray(await sender.call('ZRANGEBYSCORE', args, { resend: 'reads' })).map(asBytes)
  }
  return (await firstWithin(read, ({ length }) => length, MOST_NAMES)).map(String)
}

/** The limits of a queue and of its groups, the messages held back, and the batches. */
export interface LimitFigures {
  readonly limits: {
    readonly concurrency: number | null
    readonly rateLimit: StoredRateLimit | null
    readonly groupConcurrency: number | null
    readonly groupRateLimit: StoredRateLimit | null
  }
  readonly heldBack: { readonly byPause: number; readonly byLimit: number }
  readonly batches: { readonly unfinished: number; readonly finished: number }
}

/** Measures the limits; `null` if the server refuses it, such as for a user without the rights. */
export async function measureLimits(sender: Sender, name: string): Promise<LimitFigures | null> {
  const [keys, dead] = [reliableKeys(name), reliableKeys(deadLettersOf(name))]
  const settings = resolveSettings({})
  try {
    const [{ paused, limited, batches }, stored] = await Promise.all([
      new ReliableGroupStore(sender, settings, keys).queueTotals(),
      new ReliableStore(sender, settings, { keys, dead }, '').settings(CONFIG_NAMES),
    ])
    const { concurrency, rateLimit, groupConcurrency, groupRateLimit } = readConfig(stored)
    return {
      limits: {
        concurrency: concurrency ?? null,
        rateLimit: rateLimit ?? null,
        groupConcurrency: groupConcurrency ?? null,
        groupRateLimit: groupRateLimit ?? null,
      },
      heldBack: { byPause: paused, byLimit: limited },
      batches,
    }
  } catch (error) {
    if (error instanceof RedelayedError) return null
    throw error
  }
}

/** The sums over shards; the limits are those of each shard. */
export function sumOfLimits(all: readonly (LimitFigures | null)[]): LimitFigures | null {
  const known = all.filter((one) => one !== null)
  const [first] = known
  if (first === undefined || known.length < all.length) return null
  const sum = (of: (one: LimitFigures) => number): number => known.reduce((total, one) => total + of(one), 0)
  return {
    limits: first.limits,
    heldBack: { byPause: sum(({ heldBack }) => heldBack.byPause), byLimit: sum(({ heldBack }) => heldBack.byLimit) },
    batches: { unfinished: sum(({ batches }) => batches.unfinished), finished: sum(({ batches }) => batches.finished) },
  }
}

/** The sums over shards, without their change streams. */
export function sumOfReliable(all: readonly ReliableFigures[]): Omit<ReliableFigures, 'changes'> {
  const sum = (of: (figures: ReliableFigures) => number): number => all.reduce((total, one) => total + of(one), 0)
  const next = all.flatMap(({ nextAt }) => nextAt ?? [])
  const visible = sum((one) => one.visible)
  return {
    now: Math.max(0, ...all.map(({ now }) => now)),
    total: sum(({ total }) => total),
    visible,
    delayed: sum(({ delayed }) => delayed),
    inFlight: sum(({ inFlight }) => inFlight),
    dead: sum(({ dead }) => dead),
    oldestMs: Math.max(0, ...all.map(({ oldestMs }) => oldestMs)),
    nextAt: visible > 0 || next.length === 0 ? null : Math.min(...next),
    addPaused: all.some(({ addPaused }) => addPaused),
    pollPaused: all.some(({ pollPaused }) => pollPaused),
    repeats: { stored: sum(({ repeats }) => repeats.stored), stuck: sum(({ repeats }) => repeats.stuck) },
    groups: {
      ready: sum(({ groups }) => groups.ready),
      later: sum(({ groups }) => groups.later),
      paused: sum(({ groups }) => groups.paused),
    },
    // a paused task is paused in all shards
    tasks: {
      paused: Math.max(0, ...all.map(({ tasks }) => tasks.paused)),
      names: [...new Set(all.flatMap(({ tasks }) => tasks.names))].slice(0, MOST_NAMES),
    },
  }
}
