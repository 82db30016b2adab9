import type { MessageState, ReliableQueue } from 'redelayed'
import { cursorText, readCursor } from './cursor.js'
import type { StoredMessage, Topic } from './topic.js'
import { MOST_SHARDS } from './topic-settings.js'

/** Which messages are purged: those that match all given properties. */
export interface PurgeFilter {
  /** Default: all messages that no consumer has. */
  readonly state?: MessageState | undefined
  /** Needs a journal. */
  readonly bizKey?: string | undefined
  /** The range of the due time, epoch milliseconds. */
  readonly dueFrom?: number | undefined
  readonly dueTo?: number | undefined
}

/** One part of the work; the caller repeats the call with the cursor until there is none. */
export interface PurgedPart {
  readonly purged: number
  readonly cursor?: string
}

/** About the most messages that one call removes. */
export const MOST_PURGED = 1_000
/** The longest that one call takes. */
const MOST_MS = 2_000
/** The most messages read at a time. */
const PAGE = 200
/** The call leaves a shard after this many pages in a row of which it could remove nothing: consumers take its messages. */
const FRUITLESS = 3

/** Removes the messages that match. @throws JournalError, TopicError ERR_CURSOR */
export function purgeMatching(topic: Topic, filter: PurgeFilter, cursor?: string): Promise<PurgedPart> {
  const work = { until: performance.now() + MOST_MS, topic, filter }
  if (filter.bizKey !== undefined) {
    const [after] = cursor === undefined ? [''] : readCursor(cursor, ['string'])
    return purgeOfKey(work, filter.bizKey, String(after))
  }
  const [shard] = cursor === undefined ? [0] : readCursor(cursor, [{ most: MOST_SHARDS - 1 }])
  return purgeShards(work, Number(shard))
}

interface Work {
  readonly topic: Topic
  readonly filter: PurgeFilter
  readonly until: number
}

/** Each page begins at the start of the queue, as the previous page was removed. */
async function purgeShards({ topic, filter, until }: Work, first: number): Promise<PurgedPart> {
  let purged = 0
  for (let shard = first; shard < topic.shards.length; shard++) {
    for (let fruitless = 0; fruitless < FRUITLESS;) {
      if (purged >= MOST_PURGED || performance.now() > until) return { purged, cursor: cursorText([shard]) }
      const { ids, isAll } = await firstOf(topic.shards[shard] as ReliableQueue<Uint8Array>, filter, until)
      const gone = await topic.removeEach(ids, filter.state === 'inFlight')
      purged += gone
      if (isAll) break
      fruitless = gone > 0 ? 0 : fruitless + 1
    }
  }
  return { purged }
}

/**
 * The first messages that match; `isAll`: there are no more. It finds at least one even when the time is over, so that each call makes
 * progress.
 */
async function firstOf(
  queue: ReliableQueue<Uint8Array>,
  { state, dueFrom, dueTo }: PurgeFilter,
  until: number,
): Promise<{ readonly ids: readonly string[]; readonly isAll: boolean }> {
  const ids: string[] = []
  // skips messages in flight; the second listing finds messages that become visible in between
  for (const one of state === undefined ? (['delayed', 'visible'] as const) : [state]) {
    const listed = queue.listAll({
      ...{ pageSize: PAGE, state: one },
      ...(dueFrom !== undefined && { visibleFrom: dueFrom }),
      ...(dueTo !== undefined && { visibleTo: dueTo }),
    })
    for await (const info of listed) {
      if (ids.push(info.id) === PAGE || performance.now() > until) return { ids, isAll: false }
    }
  }
  return { ids, isAll: true }
}

/** In the order of ids; SQL also has final messages. */
async function purgeOfKey({ topic, filter, until }: Work, bizKey: string, first: string): Promise<PurgedPart> {
  let [purged, after] = [0, first]
  for (;;) {
    const ids = await topic.idsWithBizKey(bizKey, after === '' ? null : after, PAGE)
    const found = await Promise.all(ids.map((id) => topic.find(id)))
    const some = found.flatMap((message) => (message !== undefined && fits(message, filter) ? [message.id] : []))
    purged += await topic.removeEach(some, filter.state === 'inFlight')
    if (ids.length < PAGE) return { purged }
    after = ids.at(-1) ?? ''
    if (purged >= MOST_PURGED || performance.now() > until) return { purged, cursor: cursorText([after]) }
  }
}

/** The states without a consumer. `accepted`: the journal has the message, and Redis will get it. */
const FREE: readonly StoredMessage['state'][] = ['visible', 'delayed', 'accepted']

function fits(message: StoredMessage, { state, bizKey, dueFrom = 0, dueTo = Infinity }: PurgeFilter): boolean {
  const isMeant = state === undefined ? FREE.includes(message.state) : message.state === state
  // a newer message with the same id can have another key
  return isMeant && message.bizKey === bizKey && message.dueAt >= dueFrom && message.dueAt <= dueTo
}
