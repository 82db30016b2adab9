import type { AcceptItem } from '../journal/accept-item.js'
import { isBase64, OWN_HEADERS, storedBody, type BodyInput } from './body.js'
import { TopicError } from './errors.js'

/** What happens when the topic already has a message with this id. */
export type Existing = 'keep' | 'replace' | 'postpone'

/** A message as a caller gives it. */
export interface NewMessage extends BodyInput {
  readonly id?: string | undefined
  /** Milliseconds. */
  readonly delay?: number | undefined
  /** Epoch milliseconds, or a time of ISO 8601. Not with `delay`. */
  readonly dueAt?: number | string | undefined
  readonly priority?: number | undefined
  /** Not with a `priority`. */
  readonly group?: string | undefined
  readonly timeToLive?: number | undefined
  readonly deliveryLimit?: number | undefined
  readonly existing?: Existing | undefined
}

/** The outcome of a push. */
export interface Pushed {
  readonly id: string
  /**
   * `kept`: the topic already has a message with this id, which stays; `journalled`: the journal has it, and Redis gets it as soon as it
   * answers.
   */
  readonly outcome: 'added' | 'replaced' | 'postponed' | 'kept' | 'journalled'
  /** Epoch milliseconds; absent with `kept`. */
  readonly dueAt?: number
}

/** A valid message with its id and due time, ready for the queue. */
export interface ReadyMessage {
  readonly item: AcceptItem<Uint8Array> & { readonly id: string }
  readonly existing: Existing
  readonly dueAt: number
  /** The service drew the id. */
  readonly isDrawn?: boolean
}

interface Given {
  /** Draws the id of a message that has none. */
  readonly drawId: () => string
  /** The delay of a message that has neither a delay nor a due time. */
  readonly delay: number
  /** The clock of Redis. */
  readonly now: number
  readonly maxBytes: number
}

/** The latest due time: the end of JavaScript's dates, some 270,000 years from now. */
const MAX_TIME = 8_640_000_000_000_000
const MAX_ID_BYTES = 512
const MAX_GROUP_BYTES = 255
const MAX_HEADER_BYTES = 60 * 1_024

/** @throws TopicError a part of the message is invalid */
export function readyMessage(message: NewMessage, { drawId, delay: initial, now, maxBytes }: Given): ReadyMessage {
  const { id = drawId(), delay, dueAt, priority, group, timeToLive, deliveryLimit, bodyBase64 } = message
  const { existing = 'keep' } = message
  if (id === '' || !id.isWellFormed() || Buffer.byteLength(id) > MAX_ID_BYTES)
    throw invalid('id', `1 to ${MAX_ID_BYTES} bytes of UTF-8`)
  if (group !== undefined && (group === '' || !group.isWellFormed() || Buffer.byteLength(group) > MAX_GROUP_BYTES))
    throw invalid('group', `1 to ${MAX_GROUP_BYTES} bytes of UTF-8`)
  if (group !== undefined && (priority ?? 0) !== 0) throw invalid('priority', 'one of group and priority')
  if (delay !== undefined && dueAt !== undefined) throw invalid('dueAt', 'one of delay and dueAt')
  if (message.body !== undefined && bodyBase64 !== undefined) throw invalid('bodyBase64', 'one of body and bodyBase64')
  if (bodyBase64 !== undefined && !isBase64(bodyBase64)) throw invalid('bodyBase64', 'base64 with padding')
  for (const name of Object.keys(message.headers ?? {})) {
    if (name.toLowerCase().startsWith(OWN_HEADERS)) throw invalid('headers', `no name that begins with ${OWN_HEADERS}`)
  }
  const { payload, headers } = storedBody(message)
  const hasHeaders = Object.keys(headers).length > 0
  if (hasHeaders && Buffer.byteLength(JSON.stringify(headers)) > MAX_HEADER_BYTES)
    throw invalid('headers', `at most ${MAX_HEADER_BYTES} bytes together`)
  assertSize(payload, maxBytes)
  const due = dueAt === undefined ? now + (delay ?? initial) : timeOf('dueAt', dueAt)
  return {
    item: {
      payload,
      id,
      // Redis counts a delay by its own clock, which is exact; a due time stays as it is
      ...(dueAt === undefined ? delay !== undefined && { delay } : { date: new Date(due) }),
      ...(hasHeaders && { headers }),
      ...(priority !== undefined && { priority }),
      ...(group !== undefined && { group }),
      ...(timeToLive !== undefined && { timeToLive }),
      ...(deliveryLimit !== undefined && { deliveryLimit }),
    },
    existing,
    dueAt: Math.max(due, now),
    isDrawn: message.id === undefined,
  }
}

/** Epoch milliseconds. @throws TopicError it is not a time */
export function timeOf(what: string, time: number | string): number {
  // a date before 1970 is in the past like any other
  const ms = typeof time === 'number' ? time : Math.max(0, Date.parse(time))
  if (Number.isInteger(ms) && ms >= 0 && ms <= MAX_TIME) return ms
  throw invalid(what, 'epoch milliseconds or a time such as 2030-01-01T09:00:00Z')
}

export function assertSize(payload: Buffer, most: number): void {
  if (payload.length <= most) return
  const problem = `the body has ${payload.length} bytes, and the limit is ${most}`
  throw new TopicError('ERR_MESSAGE_TOO_LARGE', problem)
}

function invalid(what: string, expected: string): TopicError {
  return new TopicError('ERR_MESSAGE_INVALID', `${what}: expected ${expected}`)
}
