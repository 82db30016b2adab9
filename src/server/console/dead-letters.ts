import type { MessageInfo, ReliableQueue } from 'redelayed'
import { cursorText, readCursor } from '../topics/cursor.js'
import type { Topic } from '../topics/topic.js'
import { errorFor, reasonFor } from './shown-message.js'
import { MOST_SHARDS } from '../topics/topic-settings.js'

/** Which dead letters are meant. What is left out does not matter. */
export interface DeadLetterFilter {
  readonly topic?: string | undefined
  /** Of topics whose messages go to this endpoint. */
  readonly endpoint?: string | undefined
  /** They died then or later, epoch milliseconds. */
  readonly since?: number | undefined
  /** They died then or before. */
  readonly until?: number | undefined
  /** A part of the reason of the last failure; capitals do not matter. */
  readonly reason?: string | undefined
}

export interface DeadLetter {
  readonly topic: string
  readonly id: string
  readonly diedAt: number
  readonly attempts: number
  readonly reason: string | null
  readonly endpoint: string | null
}

export interface DeadLetterPage {
  readonly deadLetters: readonly DeadLetter[]
  readonly cursor?: string
}

export interface BulkPage {
  /** Dead letters of this part that match. */
  readonly matched: number
  /** Those of them that were moved or removed. */
  readonly done: number
  readonly cursor?: string
}

/** Who looks at dead letters. */
export interface DeadLetterReader {
  /** Whether the reader may see a topic of this name. */
  readonly covers: (topic: string) => boolean
  /** The reader may not see what endpoints have answered, nor find anything by it. */
  readonly isBlind: boolean
}

/** One part of a walk: at most so many that match, and so much work for that. */
interface Part {
  readonly filter: DeadLetterFilter
  readonly cursor?: string | undefined
  readonly limit: number
  /** Whether those that match will be gone from the place where they are found. */
  readonly isTaken: boolean
}

type Queue = ReliableQueue<Uint8Array>
/** A page is held without its payloads, which can be large. */
type Found = Pick<MessageInfo<Uint8Array>, 'id' | 'visibleAt' | 'attempts' | 'failures'>

/** Where a walk goes on: behind the `skip`th of those that died at `from`. */
interface Place {
  readonly topic: string
  readonly shard: number
  readonly from: number
  readonly skip: number
  /** Dead letters that came after the begin of the walk are not in it, such as those that were moved back and died again. */
  readonly until: number
}

/** What one call looks at, so that each is over soon: messages, topics, milliseconds. */
const MOST_LOOKS = 5_000
const MOST_MS = 2_000
/** So many topics are asked at once whether they have any. */
const AT_ONCE = 32
const PAGE = 200
/** So many can have died in one millisecond and stay where they are. */
const MOST_ALIKE = 100_000
/** Of so many topics the dead letters are counted. */
const MOST_COUNTED = 200

interface OpenTopics {
  list(): Promise<readonly { readonly name: string }[]>
  openIfThere(name: string): Promise<Topic | undefined>
  now(): number
}

/** The dead letters of all topics, by topic and time, and what is done with all that match. */
export class DeadLetters {
  readonly #topics: OpenTopics

  constructor(topics: OpenTopics) {
    this.#topics = topics
  }

  async list(
    filter: DeadLetterFilter,
    reader: DeadLetterReader,
    limit: number,
    cursor?: string,
  ): Promise<DeadLetterPage> {
    const deadLetters: DeadLetter[] = []
    const next = await this.#walk({ filter, cursor, limit, isTaken: false }, reader, async (topic, _queue, found) => {
      deadLetters.push(...found.map((info) => shown(topic, info, reader)))
    })
    return { deadLetters, ...next }
  }

  /** How many match, where counting them is no walk; else null. */
  async count(filter: DeadLetterFilter, { covers }: Pick<DeadLetterReader, 'covers'>): Promise<number | null> {
    const { since, until, reason } = filter
    if (since !== undefined || until !== undefined || reason !== undefined) return null
    const names = await this.#namesFrom('', filter, covers)
    if (names.length > MOST_COUNTED) return null
    let sum = 0
    for (let at = 0; at < names.length; at += AT_ONCE)
      for (const { dead } of await this.#withAny(names.slice(at, at + AT_ONCE), filter)) sum += dead
    return sum
  }

  /** One part of the work; the caller repeats the call with the cursor until there is none. A call that is repeated finds what is left. */
  async carryOut(
    what: 'redrive' | 'delete' | 'count',
    filter: DeadLetterFilter,
    reader: DeadLetterReader,
    limit: number,
    cursor?: string,
  ): Promise<BulkPage> {
    let [matched, done] = [0, 0]
    const isTaken = what !== 'count'
    const next = await this.#walk({ filter, cursor, limit, isTaken }, reader, async (_topic, queue, found) => {
      const ids = found.map(({ id }) => id)
      matched += ids.length
      if (!isTaken || ids.length === 0) return
      const { deadLetters } = queue
      done += what === 'delete' ? await deadLetters.remove(...ids) : await deadLetters.move({ to: queue.name, ids })
    })
    return { matched, done, ...next }
  }

  /** Hands out those that match, some of one queue at a time; `take` says how many of them are gone then. */
  async #walk(
    { filter, cursor, limit, isTaken }: Part,
    reader: DeadLetterReader,
    take: (topic: Topic, queue: Queue, found: readonly Found[]) => Promise<void>,
  ): Promise<{ cursor?: string }> {
    const begun = performance.now()
    const now = this.#topics.now()
    const first: Place =
      cursor === undefined ? { topic: '', shard: 0, from: 0, skip: 0, until: now } : readPlace(cursor)
    const until = Math.min(first.until, filter.until ?? Infinity)
    const names = await this.#namesFrom(first.topic, filter, reader.covers)
    let [looks, matches] = [0, 0]
    for (let at = 0; at < names.length; at += AT_ONCE) {
      for (const { topic } of await this.#withAny(names.slice(at, at + AT_ONCE), filter)) {
        const isFirst = topic.name === first.topic
        for (let shard = isFirst ? first.shard : 0; shard < topic.shards.length; shard++) {
          const queue = topic.shards[shard] as Queue
          let [from, skip] = isFirst && shard === first.shard ? [first.from, first.skip] : [0, 0]
          from = Math.max(from, filter.since ?? 0)
          for (;;) {
            const isOver = matches >= limit || looks >= MOST_LOOKS || performance.now() - begun > MOST_MS
            if (isOver) return { cursor: placeText({ topic: topic.name, shard, from, skip, until: first.until }) }
            const count = Math.min(PAGE, limit - matches)
            const page = await read(queue, from, until, skip, count)
            if (page.length === 0) break
            looks += page.length
            const found = page.filter((info) => matchesReason(info, filter.reason, reader))
            matches += found.length
            await take(topic, queue, found)
            const last = page.at(-1)?.visibleAt ?? from
            // those of the last millisecond that are still there are passed over the next time
            const alike = page.filter(({ visibleAt }) => visibleAt === last).map(({ id }) => id)
            const left = isTaken ? await queue.deadLetters.containsMany(alike) : alike.length
            skip = (last === from ? skip : 0) + left
            from = last
          }
        }
      }
      const next = names[at + AT_ONCE]
      if (next !== undefined && performance.now() - begun > MOST_MS)
        return { cursor: placeText({ topic: next, shard: 0, from: 0, skip: 0, until: first.until }) }
    }
    return {}
  }

  async #namesFrom(topic: string, filter: DeadLetterFilter, covers: Covers): Promise<string[]> {
    if (filter.topic !== undefined) return [filter.topic].filter(covers)
    const all = await this.#topics.list()
    return all.map(({ name }) => name).filter((name) => name >= topic && covers(name))
  }

  async #withAny(names: readonly string[], { endpoint }: DeadLetterFilter): Promise<{ topic: Topic; dead: number }[]> {
    const topics = await Promise.all(
      names.map(async (name) => {
        const topic = await this.#topics.openIfThere(name)
        if (topic === undefined || (endpoint !== undefined && topic.settings.endpoint !== endpoint)) return undefined
        const { dead } = await topic.counts()
        return dead > 0 ? { topic, dead } : undefined
      }),
    )
    return topics.filter((each) => each !== undefined)
  }
}

type Covers = DeadLetterReader['covers']

/** The next ones by the time at which they died. */
async function read(
  queue: Queue,
  visibleFrom: number,
  visibleTo: number,
  skip: number,
  count: number,
): Promise<Found[]> {
  if (visibleTo < visibleFrom) return []
  const found: Found[] = []
  const pageSize = Math.min(1_000, count)
  for await (const info of queue.deadLetters.listAll({ visibleFrom, visibleTo, skip, pageSize })) {
    const { id, visibleAt, attempts, failures } = info
    found.push({ id, visibleAt, attempts, failures })
    if (found.length === count) break
  }
  return found
}

function matchesReason({ failures }: Found, reason: string | undefined, { isBlind }: DeadLetterReader): boolean {
  if (reason === undefined) return true
  const last = failures.at(-1)
  return last !== undefined && reasonFor(isBlind, last.reason).toLowerCase().includes(reason.toLowerCase())
}

function shown(topic: Topic, { id, visibleAt, attempts, failures }: Found, { isBlind }: DeadLetterReader): DeadLetter {
  const reason = errorFor(isBlind, failures.at(-1)?.reason ?? null)
  return {
    ...{ topic: topic.name, id, diedAt: visibleAt, attempts: Math.max(attempts, failures.at(-1)?.attempt ?? 0) },
    ...{ reason, endpoint: topic.settings.endpoint },
  }
}

function placeText({ topic, shard, from, skip, until }: Place): string {
  return cursorText([topic, shard, from, skip, until])
}

/** @throws TopicError ERR_CURSOR */
function readPlace(text: string): Place {
  const parts = ['string', { most: MOST_SHARDS - 1 }, 'number', { most: MOST_ALIKE }, 'number'] as const
  const [topic, shard, from, skip, until] = readCursor(text, parts)
  return {
    topic: topic as string,
    shard: shard as number,
    from: from as number,
    skip: skip as number,
    until: until as number,
  }
}
