import type { ReliableQueue, ShardedReliableQueue } from '../index.js'
import { findFamilies, namesOf } from '../doctor/families.js'
import { quoted } from '../text.js'
import { NegativeResult, UsageError } from './failure.js'
import { parseWhole, textOption, type RawOptions } from './input.js'
import type { Session } from './session.js'

const MOST_SHARDS = 256

/** The number that `--shards` gives; `null` without it. */
export function parseShards(options: RawOptions): number | null {
  const given = textOption(options, 'shards')
  return given === undefined ? null : parseWhole('--shards', given, MOST_SHARDS)
}

/**
 * The queue to change: all shards of a sharded queue, also those without keys yet, because only the queue's processes know how many there
 * are. `otherwise` is advice for the name of another queue.
 */
export async function wholeQueue(
  { reliable, sharded, access }: Session,
  queue: string,
  shards: number | null,
  otherwise = '',
): Promise<ReliableQueue | ShardedReliableQueue> {
  const found = (await findFamilies(await access(), [queue])).reliable
  if (found.length === 0) throw new NegativeResult(`there is no reliable queue ${quoted(queue)}${otherwise}`)
  const known = found.find((family) => family.shards !== null)?.shards ?? []
  if (shards !== null && known.length === 0) {
    throw new UsageError(`--shards: ${quoted(queue)} is a reliable queue without shards; leave --shards out`)
  }
  const target = shards === null ? reliable(queue) : sharded(queue, shards)
  const names = partsOf(target).map(({ name }) => name)
  const [unknown] = known.filter((name) => !names.includes(name))
  if (unknown !== undefined) {
    const what = shards === null ? `${quoted(queue)} is sharded` : `--shards: ${shards} are too few`
    throw new UsageError(
      `${what}: ${quoted(unknown)} is one of its shards; give --shards with the number that its processes give`,
    )
  }
  return target
}

/** The queue itself, or its shards. */
export function partsOf(queue: ReliableQueue | ShardedReliableQueue): readonly ReliableQueue[] {
  return 'shards' in queue ? queue.shards : [queue]
}

/** The names of a reliable queue's shards that have keys, or of the queue. */
export async function namesOfReliable({ access }: Session, queue: string): Promise<readonly string[]> {
  const names = namesOf((await findFamilies(await access(), [queue])).reliable)
  if (names.length === 0) throw new NegativeResult(`there is no reliable queue ${quoted(queue)}`)
  return names
}
