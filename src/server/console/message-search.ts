import type { StoredMessage, Topic } from '../topics/topic.js'
import { MOST_SHARDS } from '../topics/topic-settings.js'
import { JournalError } from '../errors.js'
import { cursorText, readCursor } from '../topics/cursor.js'
import type { DeadLetters } from './dead-letters.js'
import type { DueMessages } from './due-messages.js'
import type { HeldTopics } from './held-topics.js'

export interface MessageFilter {
  readonly id?: string | undefined
  /** Needs a journal. */
  readonly bizKey?: string | undefined
  readonly state?: 'visible' | 'delayed' | 'inFlight' | 'dead' | undefined
  /** Epoch milliseconds; for dead letters, when they died. */
  readonly dueFrom?: number | undefined
  readonly dueTo?: number | undefined
}

export interface FoundMessage {
  readonly topic: string
  readonly id: string
  readonly state: StoredMessage['state']
  readonly dueAt: number
  readonly attempts?: number
  readonly priority?: number
}

export interface FoundPage {
  readonly messages: FoundMessage[]
  readonly cursor?: string
  readonly source: 'redis' | 'journal'
  /** False: some messages can be missing, because one request could not read everything. */
  readonly complete: boolean
}

interface OpenTopics {
  openIfThere(name: string): Promise<Topic | undefined>
  now(): number
  readonly hasJournal: boolean
}

/** The most topics searched for an id. */
const MOST_TOPICS = 1_000
const AT_ONCE = 20
/** Later than any date. */
const EVER = 8_640_000_000_000_000

/** Finds messages over topics: by id, by state, and by time. */
export class MessageSearch {
  readonly #topics: OpenTopics
  readonly #due: DueMessages
  readonly #dead: DeadLetters
  readonly #held: HeldTopics

  constructor(topics: OpenTopics, due: DueMessages, dead: DeadLetters, held: HeldTopics) {
    this.#held = held
    this.#topics = topics
    this.#due = due
    this.#dead = dead
  }

  /** @param names the topics to search, in order */
  async find(names: readonly string[], filter: MessageFilter, limit: number, cursor?: string): Promise<FoundPage> {
    if (filter.id !== undefined) return this.#byId(names, { ...filter, id: filter.id }, limit)
    if (filter.bizKey !== undefined)
      return this.#byBizKey(names, { ...filter, bizKey: filter.bizKey }, { limit, cursor })
    if (filter.state === 'dead') return this.#deadOnes(names, filter, limit, cursor)
    if (filter.state === 'inFlight') return this.#inFlight(names, filter, limit, cursor)
    return this.#byTime(names, filter, limit, cursor)
  }

  /** Finds a message by id, also a final one if a journal has it. */
  async #byId(names: readonly string[], filter: MessageFilter & { id: string }, limit: number): Promise<FoundPage> {
    const messages: FoundMessage[] = []
    const some = names.slice(0, MOST_TOPICS)
    const lacking: string[] = []
    for (let at = 0; at < some.length && messages.length < limit; at += AT_ONCE) {
      const found = await Promise.all(
        some.slice(at, at + AT_ONCE).map((name) => this.#one(name, filter.id, lacking, filter.bizKey)),
      )
      messages.push(
        ...found.filter((each) => each !== undefined && fits(each, filter)).map((each) => each as FoundMessage),
      )
    }
    const isAway = lacking.length > 0
    return {
      messages: messages.slice(0, limit),
      source: this.#topics.hasJournal && !isAway ? 'journal' : 'redis',
      complete: some.length === names.length && !isAway,
    }
  }

  /**
   * Finds messages by business key, also final ones, topic by topic and by id: SQL finds them, and Redis has their state. @throws
   * JournalError
   */
  async #byBizKey(
    names: readonly string[],
    filter: MessageFilter & { bizKey: string },
    { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined },
  ): Promise<FoundPage> {
    const [first, after] = cursor === undefined ? ['', ''] : readCursor(cursor, ['string', 'string'])
    const messages: FoundMessage[] = []
    const lacking: string[] = []
    let looked = 0
    for (const name of names.filter((each) => each >= String(first))) {
      if (messages.length >= limit || looked >= MOST_TOPICS)
        return { messages, cursor: cursorText([name, '']), source: 'journal', complete: lacking.length === 0 }
      const topic = await this.#topics.openIfThere(name)
      looked += topic?.shards.length ?? 1
      const most = limit - messages.length
      const ids = (await topic?.idsWithBizKey(filter.bizKey, name === first ? String(after) : null, most)) ?? []
      const found = await Promise.all(ids.map((id) => this.#one(name, id, lacking)))
      messages.push(...found.filter((each) => each !== undefined).filter((each) => fits(each, filter)))
      // one key can have many messages: the next page continues after the ids found here
      if (ids.length === most)
        return {
          messages,
          cursor: cursorText([name, ids.at(-1) ?? '']),
          source: 'journal',
          complete: lacking.length === 0,
        }
    }
    return { messages, source: 'journal', complete: lacking.length === 0 }
  }

  /** @param lacking gets the names of topics whose final messages are unknown, because SQL is away */
  async #one(name: string, id: string, lacking: string[], bizKey?: string): Promise<FoundMessage | undefined> {
    const topic = await this.#topics.openIfThere(name)
    const remembered = async (): Promise<StoredMessage | undefined> => {
      try {
        // after the first failure SQL is not asked again for each topic
        if (lacking.length === 0) return await topic?.remembered(id)
      } catch (thrown) {
        if (!(thrown instanceof JournalError)) throw thrown
      }
      lacking.push(name)
      return undefined
    }
    const found = (await topic?.inRedis(id)) ?? (await remembered())
    if (found === undefined || (bizKey !== undefined && found.bizKey !== bizKey)) return undefined
    const { state, dueAt, attempts, priority } = found
    return { topic: name, id, state, dueAt, attempts, priority }
  }

  async #deadOnes(
    names: readonly string[],
    { dueFrom: since, dueTo: until }: MessageFilter,
    limit: number,
    cursor?: string,
  ): Promise<FoundPage> {
    const own = new Set(names)
    const page = await this.#dead.list(
      { since, until },
      { covers: (name) => own.has(name), isBlind: true },
      limit,
      cursor,
    )
    const messages = page.deadLetters.map(({ topic, id, diedAt, attempts }) => ({
      ...{ topic, id, state: 'dead' as const, dueAt: diedAt, attempts },
    }))
    return { messages, ...(page.cursor !== undefined && { cursor: page.cursor }), source: 'redis', complete: true }
  }

  /** Lists messages in flight, topic by topic; a request reads a limited number of topics. */
  async #inFlight(names: readonly string[], filter: MessageFilter, limit: number, cursor?: string): Promise<FoundPage> {
    const [first, firstShard, firstSkip] =
      cursor === undefined ? ['', 0, 0] : readCursor(cursor, ['string', { most: MOST_SHARDS - 1 }, 'number'])
    const messages: FoundMessage[] = []
    let looked = 0
    for (const name of await this.#held.of(names.filter((each) => each >= String(first)))) {
      const [shard, skip] = name === first ? [Number(firstShard), Number(firstSkip)] : [0, 0]
      if (messages.length >= limit || looked++ >= MOST_TOPICS)
        return { messages, cursor: cursorText([name, shard, skip]), source: 'redis', complete: true }
      const topic = await this.#topics.openIfThere(name)
      if (topic === undefined) continue
      const room = limit - messages.length
      const page = await topic.list(
        { state: 'inFlight', isDead: false, shard, skip, limit: room },
        // without the bodies
        ({ id, state, dueAt, attempts, priority }) => ({ topic: name, id, state, dueAt, attempts, priority }),
      )
      messages.push(...page.messages.filter((each) => fits(each, filter)))
      if (page.next !== undefined)
        return {
          ...{ messages, cursor: cursorText([name, page.next.shard, page.next.skip]) },
          ...{ source: 'redis', complete: true },
        }
    }
    return { messages, source: 'redis', complete: true }
  }

  async #byTime(
    names: readonly string[],
    { state, dueFrom = 0, dueTo = EVER }: MessageFilter,
    limit: number,
    cursor?: string,
  ): Promise<FoundPage> {
    const now = this.#topics.now()
    const begin = state === 'delayed' ? Math.max(dueFrom, Math.floor(now) + 1) : dueFrom
    const to = (state === 'visible' ? Math.min(dueTo, Math.floor(now)) : dueTo) + 1
    const [from, skip] = cursor === undefined ? [begin, 0] : readCursor(cursor, ['number', 'number'])
    const place = { from: Math.max(begin, Number(from)), skip: Number(skip) }
    const { messages, next, complete } = await this.#due.list(names, place, to, limit)
    return {
      ...{ messages, source: 'redis', complete },
      ...(next !== undefined && { cursor: cursorText([next.from, next.skip]) }),
    }
  }
}

function fits(message: FoundMessage, { state, dueFrom = 0, dueTo = EVER }: MessageFilter): boolean {
  return (state === undefined || message.state === state) && message.dueAt >= dueFrom && message.dueAt <= dueTo
}
