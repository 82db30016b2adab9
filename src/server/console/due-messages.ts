import type { TopicQueues } from '../topics/known-topics.js'
import type { Topics } from '../topics/topics.js'
import { runScript, type ScriptRunner } from '../run-script.js'
import type { CountCommands } from './agenda-counts.js'
import { dueKeysOf } from './reliable-keys.js'
import { firstDue } from './scripts/generated.js'

/** A message that no consumer has. */
export interface DueMessage {
  readonly topic: string
  readonly id: string
  /** When the message became or becomes visible. */
  readonly dueAt: number
  readonly state: 'visible' | 'delayed'
  readonly priority: number
}

/** The place after the first `skip` messages that are due at `from`. */
export interface DuePlace {
  readonly from: number
  readonly skip: number
}

export interface DuePage {
  readonly messages: DueMessage[]
  readonly next?: DuePlace
  /** False: one request could not read everything, and some messages are missing. */
  readonly complete: boolean
}

type SomeTopics = Pick<Topics, 'now' | 'queuesOf'>

/** The most commands of one request; each reads at most a page. A pipeline has the schedules of one shard, which are in one slot. */
const MOST_COMMANDS = 20_000
/** The longest that a request takes: half is for finding each topic's first due time, half for reading. */
const MOST_MS = 3_000
/** The most topics asked at once for their first due time. */
const AT_ONCE = 64
/** The most messages shown that are due in one millisecond. */
const MOST_ALIKE = 5_000

/** Lists messages by due time, earliest first, over all priorities, shards and topics. Reads no payloads. */
export class DueMessages {
  readonly #redis: CountCommands & ScriptRunner
  readonly #topics: SomeTopics
  readonly #mostMs: number

  constructor(redis: CountCommands & ScriptRunner, topics: SomeTopics, mostMs = MOST_MS) {
    this.#redis = redis
    this.#topics = topics
    this.#mostMs = mostMs
  }

  /** The messages of some topics that are due from `place` on and before `to`. */
  async list(names: readonly string[], place: DuePlace, to: number, limit: number): Promise<DuePage> {
    const now = this.#topics.now()
    const isCrowd = place.skip > MOST_ALIKE
    const { from, skip } = isCrowd ? { from: place.from + 1, skip: 0 } : place
    // one more shows whether there is a next page
    const wanted = skip + limit + 1
    let best: DueMessage[] = []
    const topics = await this.#topics.queuesOf(names)
    const { shards, isAll } = await this.#shards(topics, from, to, performance.now() + this.#mostMs / 2)
    // its own time limit: however long finding the shards took, the page gets the first messages of those found
    const until = performance.now() + this.#mostMs / 2
    let [sent, complete] = [0, !isCrowd && isAll]
    for (const shard of shards) {
      // the remaining shards have only later messages
      const last = best[wanted - 1]?.dueAt
      if (last !== undefined && shard.first > last) break
      if (sent >= MOST_COMMANDS || (sent > 0 && performance.now() > until)) {
        complete = false
        break
      }
      const latest = last ?? to - 1
      const schedules = schedulesOf(shard).flatMap((schedule) => placesOf(shard, schedule, from, latest))
      sent += schedules.length
      const commands = schedules.map(({ key, least, most }) => {
        return ['zrangebyscore', key, least, most, 'WITHSCORES', 'LIMIT', '0', String(wanted)]
      })
      const replies = await this.#redis.pipeline(commands).exec()
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

  /** The shards with messages due in this time, the earliest first; and whether all shards were asked. */
  async #shards(
    topics: readonly TopicQueues[],
    from: number,
    to: number,
    until: number,
  ): Promise<{ readonly shards: readonly Shard[]; readonly isAll: boolean }> {
    const shards: Shard[] = []
    const left = topics.values()
    let [asked, isAll] = [0, true]
    const ask = async (): Promise<void> => {
      for (const { topic, queues } of left) {
        // asks at least one, however slow the first answers are
        if (asked > 0 && performance.now() > until) return
        for (const queue of queues) {
          const reply = (await runScript(this.#redis, firstDue, dueKeysOf(queue), from, to)) as [string, ...number[]]
          const [first, areAllTasks, ...tasks] = reply
          if (areAllTasks !== 1) isAll = false
          if (first !== '') shards.push({ topic, queue, first: Number(first), tasks })
        }
        asked++
      }
    }
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, topics.length) }, ask))
    return { shards: shards.sort((a, b) => a.first - b.first), isAll: isAll && asked === topics.length }
  }
}

interface Shard {
  readonly topic: string
  readonly queue: string
  /** The due time of its first message. */
  readonly first: number
  /** The numbers of tasks whose messages are set aside, because they are or were paused. */
  readonly tasks: readonly number[]
}

interface Schedule {
  readonly key: string
  readonly topic: string
  readonly priority: number
}

function schedulesOf({ topic, queue }: Shard): Schedule[] {
  return dueKeysOf(queue).map((key, at) => ({ key, topic, priority: at % 10 })) // a message with a group has none
}

/** The first score of messages that are set aside, ordered by task number and time: see the library's `shared/aside.lua`. */
const ASIDE = 2 ** 53
/** The time span of each task there; its range of scores is twice as large. */
const ASIDE_SPAN = 2 ** 43

/** The score ranges of a schedule's messages that are due in this time, both ends included. */
function placesOf({ tasks }: Shard, schedule: Schedule, from: number, to: number): (Schedule & Range)[] {
  const [first, last] = [Math.max(0, from), Math.min(to, ASIDE_SPAN - 1)]
  const asides = first > last ? [] : tasks
  const place = (task: number, at: number): string => String(ASIDE + 2 * (task * ASIDE_SPAN + at))
  return [
    { ...schedule, least: String(from), most: String(to) },
    ...asides.map((task) => ({ ...schedule, least: place(task, first), most: place(task, last) })),
  ]
}

interface Range {
  readonly least: string
  readonly most: string
}

function messagesIn(reply: readonly string[], { topic, priority }: Schedule, now: number): DueMessage[] {
  const messages: DueMessage[] = []
  for (let at = 0; at + 1 < reply.length; at += 2) {
    const score = Number(reply[at + 1])
    if (!Number.isFinite(score)) continue
    const dueAt = score < ASIDE ? score : ((score - ASIDE) / 2) % ASIDE_SPAN
    messages.push({ topic, id: reply[at] ?? '', dueAt, state: dueAt <= now ? 'visible' : 'delayed', priority })
  }
  return messages
}

/** A total order, so that a page begins exactly where the previous one ended. */
function inOrder(a: DueMessage, b: DueMessage): number {
  return a.dueAt - b.dueAt || order(a.topic, b.topic) || b.priority - a.priority || order(a.id, b.id)
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
