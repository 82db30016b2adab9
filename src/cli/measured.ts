import { RedelayedError, type DelayedQueueStats } from '../index.js'
import type { Access } from '../doctor/access.js'
import type { Family } from '../doctor/families.js'
import { measureReliable, sumOfReliable, type ReliableFigures } from '../doctor/measure-reliable.js'

/** The figures of one queue, or the error of reading them. */
export interface Measured<F> {
  readonly queue: string
  readonly figures: F | RedelayedError
}

/** A queue, with its shards and their sum if it is sharded. */
export interface MeasuredFamily<F> extends Measured<F> {
  readonly shards: readonly Measured<F>[] | null
}

/** The most queues measured at once, which is little work for the server at a time. */
const AT_ONCE = 16

export async function measured<F>(
  families: readonly Family[],
  measure: (queue: string) => Promise<F>,
  sumOf: (all: readonly F[]) => F,
): Promise<MeasuredFamily<F>[]> {
  const one = async (queue: string): Promise<Measured<F>> => {
    try {
      return { queue, figures: await measure(queue) }
    } catch (error) {
      if (!(error instanceof RedelayedError)) throw error
      return { queue, figures: error }
    }
  }
  const found = await inTurns(
    families.flatMap(({ queue, shards }) => shards ?? [queue]),
    one,
  )
  let next = 0
  return families.map(({ queue, shards }) => {
    const own = found.slice(next, (next += shards?.length ?? 1))
    if (shards === null) return { queue, shards, figures: (own[0] as Measured<F>).figures }
    const readable = own.flatMap(({ figures }) => (figures instanceof RedelayedError ? [] : [figures]))
    const [failed] = own.flatMap(({ figures }) => (figures instanceof RedelayedError ? [figures] : []))
    return { queue, shards: own, figures: readable.length === 0 && failed ? failed : sumOf(readable) }
  })
}

export function measuredReliable(
  { sender }: Access,
  families: readonly Family[],
): Promise<MeasuredFamily<ReliableFigures>[]> {
  const sum = (all: readonly ReliableFigures[]): ReliableFigures => ({ ...sumOfReliable(all), changes: null })
  return measured(families, (queue) => measureReliable(sender, queue), sum)
}

/** The sum of the statistics of shards; the subscribers are those of the shard with the fewest. */
export function sumOfDelayed(all: readonly DelayedQueueStats[]): DelayedQueueStats {
  const sum = (of: (stats: DelayedQueueStats) => number): number => all.reduce((total, one) => total + of(one), 0)
  const next = all.flatMap(({ nextDue }) => nextDue ?? [])
  return {
    now: Math.max(0, ...all.map(({ now }) => now)),
    pending: sum(({ pending }) => pending),
    overdue: sum(({ overdue }) => overdue),
    oldestOverdueMs: Math.max(0, ...all.map(({ oldestOverdueMs }) => oldestOverdueMs)),
    nextDue: next.length === 0 ? null : Math.min(...next),
    delivered: sum(({ delivered }) => delivered),
    quarantined: sum(({ quarantined }) => quarantined),
    subscribers: Math.min(...all.map(({ subscribers }) => subscribers)),
  }
}

async function inTurns<T, R>(items: readonly T[], action: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const left = items.entries()
  const work = async (): Promise<void> => {
    for (const [at, item] of left) results[at] = await action(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return results
}
