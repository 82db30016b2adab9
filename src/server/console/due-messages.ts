import type { Topic } from '../topics/topic.js'
import type { CountCommands } from './agenda-counts.js'
import { dueKeysOf } from './reliable-keys.js'

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
const PIPELINE = 10
const MOST_MS = 3_000
/** So many topics are opened at once. */
const AT_ONCE = 20
/** Of messages that are due in one millisecond so many are shown. */
const MOST_ALIKE = 5_000

/** Messages by the time at which they are visible, the earliest first, over priorities, shards and topics. Reads no payload. */
export class DueMessages {
  readonly #redis: CountCommands
  readonly #topics: OpenTopics

  constructor(redis: CountCommands, topics: OpenTopics) {
    this.#redis = redis
    this.#topics = topics
  }

  /** Those of some topics that are due from `place` on and before `to`. */
  async list(names: readonly string[], place: DuePlace, to: number, limit: number): Promise<DuePage> {
    const [begun, now] = [performance.now(), this.#topics.now()]
    const isCrowd = place.skip > MOST_ALIKE
    const { from, skip } = isCrowd ? { from: place.from + 1, skip: 0 } : place
    // one more says whether there is a next page
    const wanted = skip + limit + 1
    let best: DueMessage[] = []
    let [sent, complete] = [0, !isCrowd]
    for (let at = 0; at < names.length && complete; at += AT_ONCE) {
      const opened = await Promise.all(names.slice(at, at + AT_ONCE).map((name) => this.#topics.openIfThere(name)))
      const schedules = opened.flatMap((topic) => (topic === undefined ? [] : schedulesOf(topic)))
      for (let first = 0; first < schedules.length; first += PIPELINE) {
        if (sent >= MOST_COMMANDS || performance.now() - begun > MOST_MS) {
          complete = false
          break
        }
        const some = schedules.slice(first, first + PIPELINE)
        sent += some.length
        // of what is later than the last one that is wanted nothing is read
        const latest = best.length < wanted ? `(${to}` : String(best[wanted - 1]?.dueAt)
        const range = [String(from), latest, 'WITHSCORES', 'LIMIT', '0', String(wanted)]
        // a cluster has the keys of one queue in one place, and others elsewhere
        const parts = this.#redis.isCluster === true ? byQueue(some) : [some]
        const replies = await Promise.all(
          parts.map((part) => this.#redis.pipeline(part.map(({ key }) => ['zrangebyscore', key, ...range])).exec()),
        )
        const found = replies.flat().flatMap((each, n) => {
          const [error, reply] = each ?? [null, []]
          if (error !== null) throw error
          return messagesIn(reply as string[], some[n] as Schedule, now)
        })
        best = [...best, ...found].sort(inOrder).slice(0, wanted)
      }
    }
    const messages = best.slice(skip, skip + limit)
    const last = messages.at(-1)
    if (last === undefined || best.length < wanted) return { messages, complete }
    const alike = best.slice(0, skip + limit).filter(({ dueAt }) => dueAt === last.dueAt).length
    return { messages, next: { from: last.dueAt, skip: alike }, complete }
  }
}

interface Schedule {
  readonly key: string
  readonly queue: string
  readonly topic: string
  readonly priority: number
}

/** In the same order, those of one queue together. */
function byQueue(schedules: readonly Schedule[]): Schedule[][] {
  const parts = new Map<string, Schedule[]>()
  for (const each of schedules) parts.set(each.queue, [...(parts.get(each.queue) ?? []), each])
  return [...parts.values()]
}

function schedulesOf(topic: Topic): Schedule[] {
  return topic.shards.flatMap(
    ({ name }) => dueKeysOf(name).map((key, at) => ({ key, queue: name, topic: topic.name, priority: at % 10 })), // a message with a group has none
  )
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
