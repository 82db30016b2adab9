import type { ReliableQueueCounts } from 'redelayed'
import { runScript, type ScriptRunner } from '../run-script.js'
import type { Paused } from './pauses.js'
import { countKeysOf } from './reliable-keys.js'
import { queueCounts } from './scripts/generated.js'

export interface QueueCounts extends ReliableQueueCounts {
  readonly paused: readonly Paused[]
  /** Some messages are set aside because their task is paused: `oldestMs` does not count them. */
  readonly hasAside: boolean
}

/** Counts the messages of a queue and reads its pauses, with one small script. `now`: by the clock of Redis. */
export async function countQueue(redis: ScriptRunner, queue: string, now: number): Promise<QueueCounts> {
  const reply = (await runScript(redis, queueCounts, countKeysOf(queue), Math.floor(now))) as unknown[]
  const [total = 0, visible = 0, delayed = 0, inFlight = 0, dead = 0] = reply.slice(0, 5).map(Number)
  const [first, poll, add, aside] = reply.slice(5)
  const paused = [...(poll === 1 ? ['receive' as const] : []), ...(add === 1 ? ['push' as const] : [])]
  const firstAt = first === '' ? NaN : Number(first)
  // another program can have written an infinite due time
  const oldestMs = Number.isFinite(firstAt) ? Math.max(0, now - Math.max(0, firstAt)) : 0
  return { total, visible, delayed, inFlight, dead, oldestMs, paused, hasAside: aside === 1 }
}

/** The counts of a topic's shards together. A topic is paused as a whole, so its first shard shows it. */
export function sumOfShards(shards: readonly QueueCounts[]): QueueCounts {
  const sum = (of: 'total' | 'visible' | 'delayed' | 'inFlight' | 'dead'): number =>
    shards.reduce((all, each) => all + each[of], 0)
  return {
    ...{ total: sum('total'), visible: sum('visible'), delayed: sum('delayed') },
    ...{ inFlight: sum('inFlight'), dead: sum('dead') },
    oldestMs: Math.max(0, ...shards.map(({ oldestMs }) => oldestMs)),
    paused: shards[0]?.paused ?? [],
    hasAside: shards.some(({ hasAside }) => hasAside),
  }
}
