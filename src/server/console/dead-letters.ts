import type { MessageInfo, ReliableQueue } from 'redelayed'
import { cursorText, readCursor } from '../topics/cursor.js'
import { ownBizKey, ownEndpoint } from '../topics/body.js'
import type { Topic } from '../topics/topic.js'
import { errorFor, reasonFor } from './shown-message.js'
import { MOST_SHARDS } from '../topics/topic-settings.js'

/** Selects dead letters that match all given properties. */
export interface DeadLetterFilter {
  readonly topic?: string | undefined
  /** Only those whose webhooks go to this endpoint: their own, or that of their topic. */
  readonly endpoint?: string | undefined
  /** Only those that died at this time or later, epoch milliseconds. */
  readonly since?: number | undefined
  /** Only those that died at this time or before. */
  readonly until?: number | undefined
  /** A part of the reason of the last failure; upper and lower case are equal. */
  readonly reason?: string | undefined
  readonly bizKey?: string | undefined
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
  /** The dead letters of this part that match. */
  readonly matched: number
  /** How many of them were moved or removed. */
  readonly done: number
  readonly cursor?: string
}

/** The rights of a reader of dead letters. */
export interface DeadLetterReader {
  /** Whether the reader may see a topic of this name. */
  readonly covers: (topic: string) => boolean
  /** The reader may neither see the answers of endpoints nor search in them. */
  readonly isBlind: boolean
}

/** One part of a walk, with bounded work and at most `limit` matches. */
interface Part {
  readonly filter: DeadLetterFilter
  readonly cursor?: string | undefined
  readonly limit: number
  /** Whether the matching dead letters are taken from where they are found. */
  readonly isTaken: boolean
}

type Queue = ReliableQueue<Uint8Array>
/** A dead letter without its payload, which can be large. */
type Found = Pick<MessageInfo<Uint8Array>, 'id' | 'visibleAt' | 'attempts' | 'failures'> & {
  readonly bizKey: string | undefined
  readonly endpoint: string | null
}

/** Where a walk continues: after the first `skip` of those that died at `from`. */
interface Place {
  readonly topic: string
  readonly shard: number
  readonly from: number
  readonly skip: number
  /** The start of the walk: it leaves out later dead letters, such as those that were moved back and died again. */
  readonly until: number
}

/** The limits of one call, so that each is short: messages and milliseconds. */
const MOST_LOOKS = 5_000
const MOST_MS = 2_000
/** The most topics that are asked at once for dead letters. */
const AT_ONCE = 32
const PAGE = 200
/** The most dead letters of one millisecond that a place can skip. */
const MOST_ALIKE = 100_000
/** The most topics whose dead letters are counted. */
const MOST_COUNTED = 200

interface OpenTopics {
  list(): Promise<readonly { readonly name: string }[]>
  openIfThere(name: string): Promise<Topic | undefined>
  now(): number
}

/** Lists the dead letters of all topics, by topic and time, and moves or deletes those that match. */
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

  /** The number of dead letters that match; `null` if only a walk could count them. */
  async count(filter: DeadLetterFilter, { covers }: Pick<DeadLetterReader, 'covers'>): Promise<number | null> {
    const { topic: _, ...others } = filter
    if (Object.values(others).some((each) => each !== undefined)) return null
    const names = await this.#namesFrom('', filter, covers)
    if (names.length > MOST_COUNTED) return null
    let sum = 0
    for (let at = 0; at < names.length; at += AT_ONCE)
      for (const { dead } of await this.#withAny(names.slice(at, at + AT_ONCE))) sum += dead
    return sum
  }

  /**
   * Does one part of the work; the caller repeats the call with the cursor until there is none. Repeating it from the start finds what is
   * left.
   */
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

  /** Passes the matching dead letters to `take`, some of one queue at a time. */
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
    let [looks, matched] = [0, 0]
    for (let at = 0; at < names.length; at += AT_ONCE) {
      for (const { topic } of await this.#withAny(names.slice(at, at + AT_ONCE))) {
        const isFirst = topic.name === first.topic
        for (let shard = isFirst ? first.shard : 0; shard < topic.shards.length; shard++) {
          const queue = topic.shards[shard] as Queue
          let [from, skip] = isFirst && shard === first.shard ? [first.from, first.skip] : [0, 0]
          from = Math.max(from, filter.since ?? 0)
          for (;;) {
            const isOver = matched >= limit || looks >= MOST_LOOKS || performance.now() - begun > MOST_MS
            if (isOver) return { cursor: placeText({ topic: topic.name, shard, from, skip, until: first.until }) }
            const count = Math.min(PAGE, limit - matched)
            const page = await read(topic, queue, { from, until, skip, count })
            if (page.length === 0) break
            looks += page.length
            const found = page.filter((info) => matches(info, filter, reader))
            matched += found.length
            await take(topic, queue, found)
            const last = page.at(-1)?.visibleAt ?? from
            // the next read skips those of the last millisecond that are still there
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

  async #withAny(names: readonly string[]): Promise<{ topic: Topic; dead: number }[]> {
    const topics = await Promise.all(
      names.map(async (name) => {
        const topic = await this.#topics.openIfThere(name)
        if (topic === undefined) return undefined
        const { dead } = await topic.counts()
        return dead > 0 ? { topic, dead } : undefined
      }),
    )
    return topics.filter((each) => each !== undefined)
  }
}

type Covers = DeadLetterReader['covers']

/** The next dead letters, by the time at which they died. */
async function read(
  { settings }: Topic,
  queue: Queue,
  { from: visibleFrom, until: visibleTo, skip, count }: Pick<Place, 'from' | 'until' | 'skip'> & { count: number },
): Promise<Found[]> {
  if (visibleTo < visibleFrom) return []
  const found: Found[] = []
  const pageSize = Math.min(1_000, count)
  for await (const info of queue.deadLetters.listAll({ visibleFrom, visibleTo, skip, pageSize })) {
    const { id, visibleAt, attempts, failures, headers } = info
    const endpoint = ownEndpoint(headers) ?? settings.endpoint
    found.push({ id, visibleAt, attempts, failures, bizKey: ownBizKey(headers), endpoint })
    if (found.length === count) break
  }
  return found
}

function matches(
  { failures, bizKey, endpoint }: Found,
  { reason, bizKey: wantedKey, endpoint: wantedEndpoint }: DeadLetterFilter,
  { isBlind }: DeadLetterReader,
): boolean {
  if (wantedKey !== undefined && bizKey !== wantedKey) return false
  if (wantedEndpoint !== undefined && endpoint !== wantedEndpoint) return false
  if (reason === undefined) return true
  const last = failures.at(-1)
  return last !== undefined && reasonFor(isBlind, last.reason).toLowerCase().includes(reason.toLowerCase())
}

function shown(
  topic: Topic,
  { id, visibleAt, attempts, failures, endpoint }: Found,
  { isBlind }: DeadLetterReader,
): DeadLetter {
  const reason = errorFor(isBlind, failures.at(-1)?.reason ?? null)
  return {
    ...{ topic: topic.name, id, diedAt: visibleAt, attempts: Math.max(attempts, failures.at(-1)?.attempt ?? 0) },
    ...{ reason, endpoint },
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
