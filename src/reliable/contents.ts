import { RedelayedError } from '../errors.js'
import { integer, oneOf, onlyKnown } from '../options.js'
import type { QueueHandle } from '../queues/queue-handle.js'
import { ASIDE, ASIDE_ENDS, asideTimes } from '../store/due-keys.js'
import type { ReliableStore, StoredMessage } from '../store/reliable-store.js'
import { readFailures, type FailedAttempt } from './failures.js'
import type { MessageProgress } from './progress.js'
import { assertKnownId } from './message-id.js'
import { readRecord, type Headers } from './record.js'

/** Whether a message can be delivered now, later, or is with a consumer. */
export type MessageState = 'visible' | 'delayed' | 'inFlight'

/** A stored message. */
export interface MessageInfo<T> {
  readonly id: string
  readonly payload: T
  readonly headers: Headers
  readonly priority: number
  /** The message's group, if any. */
  readonly group?: string | undefined
  readonly state: MessageState
  /** When the message is, was, or will be visible again, epoch milliseconds by the Redis clock. */
  readonly visibleAt: number
  /** How often the message was delivered. */
  readonly attempts: number
  readonly failures: readonly FailedAttempt[]
  /** The last progress that a consumer reported; `null` for none, and for one that this process cannot read. */
  readonly progress: MessageProgress | null
  readonly expiresAt: number | null
}

/** The messages to walk, and the size of pages. */
export interface ListMessages {
  readonly state?: MessageState
  /** The messages of a page. 1 to 1,000; default 100. */
  readonly pageSize?: number
  /** The earliest `visibleAt` of the messages, epoch milliseconds. Default: all. */
  readonly visibleFrom?: number
  /** The latest `visibleAt` of the messages, epoch milliseconds. Default: all. */
  readonly visibleTo?: number
  /** How many messages to skip without reading them; in a sharded queue, in each shard. Default 0. */
  readonly skip?: number
}

/** The numbers of messages by their state. */
export interface ReliableQueueCounts {
  readonly total: number
  readonly visible: number
  readonly delayed: number
  readonly inFlight: number
  readonly dead: number
  /** How long the first visible message has been waiting, in milliseconds. */
  readonly oldestMs: number
}

/** Reads what a reliable queue holds, without changing anything. */
export class Contents<T> {
  readonly #handle: QueueHandle<T>
  readonly #store: ReliableStore

  constructor(handle: QueueHandle<T>, store: ReliableStore) {
    this.#handle = handle
    this.#store = store
  }

  async getAll(ids: readonly string[]): Promise<(MessageInfo<T> | null)[]> {
    const infos: (MessageInfo<T> | null)[] = []
    for await (const { messages, now } of this.#store.get(knownIds(ids))) {
      for (const message of messages) infos.push(message && this.#info(message, now))
    }
    return infos
  }

  async containsMany(ids: readonly string[]): Promise<number> {
    return this.#store.contains(knownIds(ids))
  }

  async counts(): Promise<ReliableQueueCounts> {
    const { now, firstVisibleAt, total, visible, delayed, inFlight, dead } = await this.#store.count()
    const oldestMs = firstVisibleAt === null ? 0 : Math.max(0, now - Math.max(0, firstVisibleAt))
    return { total, visible, delayed, inFlight, dead, oldestMs }
  }

  /** Walks messages by priority from the highest on, then by time, and those in flight last. */
  async *list(options: ListMessages): AsyncGenerator<MessageInfo<T>, void> {
    onlyKnown('options', options, ['state', 'pageSize', 'visibleFrom', 'visibleTo', 'skip'])
    const { state } = options
    if (state !== undefined) oneOf('state', state, ['visible', 'delayed', 'inFlight'])
    const pageSize = integer('pageSize', options.pageSize ?? 100, 1, 1_000)
    let skip = integer('skip', options.skip ?? 0, 0, Number.MAX_SAFE_INTEGER)
    const span = spanOf(options)
    const { now: begunAt, asides } = await this.#store.count()
    const times = timesOf(state, begunAt, span)
    const priorities = state === 'inFlight' ? [] : [...this.#store.keys.due.keys()].reverse()
    const spans = withAsides(times, asides, state, begunAt, span)
    const ranges = priorities.flatMap((schedule) => spans.map((some) => [schedule, some] as const))
    // a message in flight becomes visible, not delayed
    const held = state === 'delayed' ? [] : [['inFlight', times] as const]
    for (const [schedule, some] of [...ranges, ...held]) {
      const passed = skip === 0 ? 0 : Math.min(skip, await this.#store.countOf(schedule, some))
      skip -= passed
      for (let from = passed; ; from += pageSize) {
        const ids = await this.#store.idsOf(schedule, some, from, pageSize)
        for await (const { messages, now } of this.#store.get(ids)) {
          for (const message of messages) {
            if (message === null || (state !== undefined && stateOf(message, now) !== state)) continue
            if (message.visibleAt < span.from || message.visibleAt > span.to) continue
            const info = this.#readable(message, now)
            if (info !== undefined) yield info
          }
        }
        if (ids.length < pageSize) break
      }
    }
  }

  /** Decodes a message; an unreadable one is reported. */
  #readable(message: StoredMessage, now: number): MessageInfo<T> | undefined {
    try {
      return this.#info(message, now)
    } catch (thrown) {
      if (!(thrown instanceof RedelayedError)) throw thrown
      this.#handle.context.hub.emit('error', this.#handle.withQueueName(thrown))
      return undefined
    }
  }

  #info(message: StoredMessage, now: number): MessageInfo<T> {
    const { headers, payload, expiresAt, group } = readRecord(message.record)
    return {
      id: message.id.toString(),
      payload: this.#handle.decode(payload),
      headers,
      priority: message.priority,
      ...(group !== undefined && { group }),
      state: stateOf(message, now),
      visibleAt: message.visibleAt,
      attempts: message.attempts,
      failures: readFailures(message.failures),
      progress: this.#progress(message),
      expiresAt,
    }
  }

  /** The progress of a message; an unreadable one is `null`, and the message is still shown. */
  #progress({ progress }: StoredMessage): MessageProgress | null {
    if (progress === null) return null
    try {
      return { ...progress, value: this.#handle.decode(progress.value) }
    } catch (thrown) {
      if (!(thrown instanceof RedelayedError)) throw thrown
      return null
    }
  }
}

function knownIds(ids: readonly string[]): Buffer[] {
  return ids.map((id, at) => Buffer.from(assertKnownId(`ids[${at}]`, id)))
}

interface Span {
  readonly from: number
  readonly to: number
}

function spanOf({ visibleFrom, visibleTo }: ListMessages): Span {
  const bound = (what: string, value: number | undefined, none: number): number =>
    value === undefined ? none : integer(what, value, 0, Number.MAX_SAFE_INTEGER)
  return { from: bound('visibleFrom', visibleFrom, -Infinity), to: bound('visibleTo', visibleTo, Infinity) }
}

type Times = readonly [least: string, most: string]

function timesOf(state: MessageState | undefined, now: number, { from, to }: Span): Times {
  const least = from === -Infinity ? '-inf' : `${from}`
  const most = to === Infinity ? '+inf' : `${to}`
  if (state === 'delayed' || state === 'inFlight') return [from > now ? least : `(${now}`, most]
  return [least, state === 'visible' && to > now ? `${now}` : most]
}

/**
 * The ranges of scores, including messages set aside for paused tasks: they are visible, and have scores after all times, a range for each
 * task.
 */
function withAsides(
  times: Times,
  tasks: readonly number[],
  state: MessageState | undefined,
  now: number,
  { from, to }: Span,
): Times[] {
  const [least, most] = times
  if (tasks.length === 0 || (least === '-inf' && most === '+inf')) return [times]
  // scores that another program has written after those of messages set aside
  const behind: Times = [ASIDE_ENDS, most]
  const others: Times[] = most === '+inf' ? [[least, `(${ASIDE}`], behind] : [times]
  if (state === 'delayed') return others
  const latest = state === 'visible' ? Math.min(to, now) : to
  return [...others, ...tasks.map((task) => asideTimes(task, from, latest)).filter((some) => some !== undefined)]
}

/** A message whose visibility timeout ended is visible again, even if no consumer has polled since. */
function stateOf({ inFlight, visibleAt }: StoredMessage, now: number): MessageState {
  if (visibleAt <= now) return 'visible'
  return inFlight ? 'inFlight' : 'delayed'
}
