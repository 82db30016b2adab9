import { RedelayedError } from '../errors.js'
import { deadLettersOf, reliableKeys } from '../keys.js'
import { resolveSettings } from '../options.js'
import { readFailures, type FailedAttempt } from '../reliable/failures.js'
import { readRecord, type Headers } from '../reliable/record.js'
import { ASIDE, ASIDE_ENDS } from '../store/due-keys.js'
import { asArray, asBytes, asNumber } from '../store/replies.js'
import type { ProgressReply } from '../store/reliable-scripts.js'
import { ReliableStore, type StoredMessage } from '../store/reliable-store.js'
import type { Sender } from '../store/sender.js'
import { firstWithin, MOST_BYTES } from './within-bytes.js'

/** A message of a reliable queue, with its encoded payload. */
export interface QueuedMessage {
  readonly id: string
  readonly state: 'visible' | 'delayed' | 'inFlight'
  /** When the message is, was, or will be visible again, epoch milliseconds. */
  readonly visibleAt: number
  readonly priority: number
  readonly attempts: number
  readonly failures: readonly FailedAttempt[]
  readonly headers: Headers
  readonly payload: Buffer
  /** The message's group; `null` for none. */
  readonly group: string | null
  /** The last progress that a consumer reported, encoded. */
  readonly progress: ProgressReply | null
  readonly expiresAt: number | null
  /** Why the record cannot be read; then `payload` has the whole record. */
  readonly problem: string | null
}

/**
 * The first messages of a queue: visible ones in the order in which consumers get them, delayed ones, and those that consumers have. About
 * 8 MiB at most of each kind.
 */
export async function nextMessages(sender: Sender, name: string, limit: number): Promise<QueuedMessage[]> {
  const store = reliableStoreOf(sender, name)
  const { keys } = store
  const begunAt = await store.now()
  const firstOf = (key: string, least: string, most: string): Promise<Scheduled[]> => {
    const read = async (from: number, count: number): Promise<Scheduled[]> => {
      const args = [key, least, most, 'WITHSCORES', 'LIMIT', String(from), String(count)]
      return asScheduled(await sender.call('ZRANGEBYSCORE', args, { resend: 'reads' }))
    }
    return firstWithin(read, ({ id }) => id.length, limit)
  }
  // one after the other: ids of other programs can be of any size
  const all = async (least: string, most: string): Promise<Scheduled[]> => {
    const found: Scheduled[] = []
    for (const key of [...keys.due].reverse()) found.push(...(await firstOf(key, least, most)))
    return found
  }
  // messages set aside for paused tasks are visible, and come after those that consumers can get
  const visible = [...(await all('-inf', String(begunAt))), ...(await all(ASIDE, `(${ASIDE_ENDS}`))]
  const delayed = [...(await all(`(${begunAt}`, `(${ASIDE}`)), ...(await all(ASIDE_ENDS, '+inf'))]
  const held = await firstOf(keys.inFlight, '-inf', '+inf')
  const messages: QueuedMessage[] = []
  for (const list of [
    visible.slice(0, limit),
    delayed.sort((a, b) => byNumber(a.at, b.at)).slice(0, limit),
    held.map(({ id, at }) => ({ id: id.subarray(1), at })),
  ]) {
    let bytes = 0
    for await (const page of store.get(list.map(({ id }) => id))) {
      for (const message of page.messages) {
        if (message === null) continue
        messages.push(asQueued(message, page.now))
        bytes += message.record.length
      }
      if (bytes >= MOST_BYTES) break
    }
  }
  return messages
}

/** The first dead letters of a queue, the oldest first. */
export function firstDeadLetters(sender: Sender, name: string, limit: number): Promise<QueuedMessage[]> {
  return nextMessages(sender, deadLettersOf(name), limit)
}

/** The keys and scripts of a queue, for reading. */
export function reliableStoreOf(sender: Sender, name: string): ReliableStore {
  const [keys, dead] = [reliableKeys(name), reliableKeys(deadLettersOf(name))]
  return new ReliableStore(sender, resolveSettings({}), { keys, dead }, '')
}

/** Compares numbers, also infinite ones, which another program can have written. */
export function byNumber(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0
}

interface Scheduled {
  readonly id: Buffer
  readonly at: number
}

function asScheduled(reply: unknown): Scheduled[] {
  const flat = asArray(reply)
  return Array.from({ length: flat.length / 2 }, (_, at) => ({
    id: asBytes(flat[2 * at]),
    at: asNumber(flat[2 * at + 1]),
  }))
}

/** A stored message with its state at `now`. */
export function asQueued(message: StoredMessage, now: number): QueuedMessage {
  const { id, visibleAt, inFlight, priority, attempts, failures, progress, record } = message
  const known = {
    id: id.toString(),
    state: visibleAt <= now ? 'visible' : inFlight ? 'inFlight' : 'delayed',
    visibleAt,
    priority,
    attempts,
    failures: readFailures(failures),
    progress,
  } as const
  try {
    const { headers, payload, expiresAt, group = null } = readRecord(record)
    return { ...known, headers, payload, group, expiresAt, problem: null }
  } catch (error) {
    if (!(error instanceof RedelayedError)) throw error
    return { ...known, headers: {}, payload: record, group: null, expiresAt: null, problem: error.message }
  }
}
