import type { Topic } from '../topics/topic.js'
import { runScript, type ScriptRunner } from '../run-script.js'
import type { CountCommands } from './agenda-counts.js'
import { dueKeysOf } from './reliable-keys.js'
import { firstDue } from './scripts/generated.js'

/** A message that no consumer has. */
export interface DueMessage {
  readonly topic: string
  readonly id: string
  /** When it was or will be visible. */
  readonly dueAt: number
  readonly state: 'visible' | 'delayed'
  readonly priority: number
}

/** Behind the `skip` first ones of those that are due at `from`. */
export interface DuePlace {
  readonly from: number
  readonly skip: number
}

export interface DuePage {
  readonly messages: DueMessage[]
  readonly next?: DuePlace
  /** False: there was more to read than one request reads, and some are missing. */
  readonly complete: boolean
}

interface OpenTopics {
  openIfThere(name: string): Promise<Topic | undefined>
  now(): number
}

/** So many commands one request sends; each reads a page at most. A pipeline has the schedules of one shard, which are in one slot. */
const MOST_COMMANDS = 20_000
/** Half of it is for the question when the first message of each topic is due, and half for the reading. */
const MOST_MS = 3_000
/** So many topics are asked at once when their first message is due. */
const AT_ONCE = 64
/** Of messages that are due in one millisecond so many are shown. */
const MOST_ALIKE = 5_000

/** Messages by the time at which they are visible, the earliest first, over priorities, shards and topics. Reads no payload. */
export class DueMessages {
  readonly #redis: CountCommands & ScriptRunner
  readonly #topics: OpenTopics
  readonly #mostMs: number

  constructor(redis: CountCommands & ScriptRunner, topics: OpenTopics, mostMs = MOST_MS) {
    this.#redis = redis
    this.#topics = topics
    this.#mostMs = mostMs
  }

  /** Those of some topics that are due from `place` on and before `to`. */
  async list(names: readonly string[], place: DuePlace, to: number, limit: number): Promise<DuePage> {
    const now = this.#topics.now()
    const isCrowd = place.skip > MOST_ALIKE
    const { from, skip } = isCrowd ? { from: place.from + 1, skip: 0 } : place
    // one more says whether there is a next page
    const wanted = skip + limit + 1
    let best: DueMessage[] = []
    const { shards, isAll } = await this.#shards(names, from, to, performance.now() + this.#mostMs / 2)
    // time of its own: however long the question took, a page has what is first of the topics that were asked
    const until = performance.now() + this.#mostMs / 2
    let [sent, complete] = [0, !isCrowd && isAll]
    for (const shard of shards) {
      // what the others have is later than the last one that is wanted
      const last = best[wanted - 1]?.dueAt
      if (last !== undefined && shard.first > last) break
      if (sent >= MOST_COMMANDS || (sent > 0 && performance.now() > until)) {
        complete = false
        break
      }
      const schedules = schedulesOf(shard)
      sent += schedules.length
      const latest = last === undefined ? `(${to}` : String(last)
      const range = [String(from), latest, 'WITHSCORES', 'LIMIT', '0', String(wanted)]
      const replies = await this.#redis.pipeline(schedules.map(({ key }) => ['zrangebyscore', key, ...range])).exec()
      const found = (replies ?? []).flatMap(([error, reply], n) => {
        if (error !== null) throw error
        return messagesIn(reply as string[], schedules[n] as Schedule, now)
      })
      best = [...best, ...found].sort(inOrder).slice(0, wanted)
    }
    const messages = best.slice(skip, skip + limit)
    const last = messages.at(-1)
    if (last === undefined || best.length < wanted) return { messages, complete }
    const alike = best.slice(0, skip + limit).filter(({ dueAt }) => dueAt === last.dueAt).length
    return { messages, next: { from: last.dueAt, skip: alike }, complete }
  }

  /** The shards with something that is due in this time, the earliest first; and whether all were asked. */
  async #shards(
    names: readonly string[],
    from: number,
    to: number,
    until: number,
  ): Promise<{ readonly shards: readonly Shard[]; readonly isAll: boolean }> {
    const shards: Shard[] = []
    const left = names.values()
    let asked = 0
    const ask = async (): Promise<void> => {
      for (const name of left) {
        if (performance.now() > until) return
        const topic = await this.#topics.openIfThere(name)
        for (const { name: queue } of topic?.shards ?? []) {
          const first = String(await runScript(this.#redis, firstDue, dueKeysOf(queue), from, to))
          if (first !== '') shards.push({ topic: name, queue, first: Number(first) })
        }
        asked++
      }
    }
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, names.length) }, ask))
    return { shards: shards.sort((a, b) => a.first - b.first), isAll: asked === names.length }
  }
}

interface Shard {
  readonly topic: string
  readonly queue: string
  /** When its first message is due. */
  readonly first: number
}

interface Schedule {
  readonly key: string
  readonly topic: string
  readonly priority: number
}

function schedulesOf({ topic, queue }: Shard): Schedule[] {
  return dueKeysOf(queue).map((key, at) => ({ key, topic, priority: at % 10 })) // a message with a group has none
}

function messagesIn(reply: readonly string[], { topic, priority }: Schedule, now: number): DueMessage[] {
  const messages: DueMessage[] = []
  for (let at = 0; at + 1 < reply.length; at += 2) {
    const dueAt = Number(reply[at + 1])
    if (!Number.isFinite(dueAt)) continue
    messages.push({ topic, id: reply[at] ?? '', dueAt, state: dueAt <= now ? 'visible' : 'delayed', priority })
  }
  return messages
}

/** The same each time, so that a next page begins where the last one has ended. */
function inOrder(a: DueMessage, b: DueMessage): number {
  return a.dueAt - b.dueAt || order(a.topic, b.topic) || b.priority - a.priority || order(a.id, b.id)
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
