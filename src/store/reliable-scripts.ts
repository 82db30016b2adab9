import { InternalError } from '../errors.js'
import * as generated from './scripts/generated.js'
import { asPollReply } from './poll-reply.js'
import { asArray, asBytes, asFlag, asInteger, asNow, asNumber, asText, asTime } from './replies.js'
import { PRIORITIES } from '../keys.js'
import { script } from './script.js'

export type { Claim, PollReply, PolledRecord, RepeatRecord } from './poll-reply.js'

/** The outcomes of added messages. */
export interface AddReply {
  /** Epoch milliseconds. */
  readonly now: number
  /** One of `ADD_OUTCOME` in `new-message.ts` per message. */
  readonly outcomes: readonly number[]
}

/** The counts of the messages of a move; see reliable-move.lua. */
export interface MoveReply {
  readonly moved: number
  readonly passedOver: number
  readonly gone: number
  readonly rest: number
}

/** The data of one message. */
export interface MessageReply {
  readonly priority: number
  readonly visibleAt: number
  readonly inFlight: boolean
  readonly attempts: number
  readonly failures: string
  /** The last progress that a consumer reported. */
  readonly progress: ProgressReply | null
  readonly record: Buffer
}

export interface ProgressReply {
  readonly attempt: number
  /** Epoch milliseconds. */
  readonly at: number
  readonly value: Buffer
}

export interface GetReply {
  readonly now: number
  /** The messages, `null` for ids without one. Fewer than requested, but at least one, if they are large. */
  readonly messages: readonly (MessageReply | null)[]
}

export interface CountReply {
  readonly now: number
  readonly total: number
  readonly visible: number
  readonly delayed: number
  readonly inFlight: number
  readonly dead: number
  /** When the first message that is not in flight is or was visible, epoch milliseconds. */
  readonly firstVisibleAt: number | null
  readonly addPaused: boolean
  readonly pollPaused: boolean
  /** The numbers of tasks whose messages are or can be set aside, because they are or were paused; at most some hundreds. */
  readonly asides: readonly number[]
}

/** How a message has ended, or `waits`: it is in the queue; `gone`: nothing is known of it. */
export type EndReply =
  | { readonly is: 'waits' | 'gone' }
  | { readonly is: 'completed'; readonly at: number; readonly attempts: number; readonly result: Buffer | null }
  | { readonly is: 'dead'; readonly failures: string }
  /** Only for a batch. */
  | { readonly is: 'finished'; readonly counts: BatchReply }

export interface EndsReply {
  /** Whether the queue keeps completed messages. */
  readonly keeps: boolean
  /** The ends, fewer than requested, but at least one, if results are large. */
  readonly ends: readonly EndReply[]
}

/** The counts of a batch. */
export interface BatchReply {
  readonly state: 'open' | 'closed' | 'finished'
  readonly pending: number
  readonly completed: number
  readonly dead: number
  readonly expired: number
  readonly removed: number
  /** Epoch milliseconds. */
  readonly openedAt: number
  readonly closedAt: number | null
  readonly finishedAt: number | null
}

/** The scripts of the reliable queue with the decoders of their replies. */
export const acknowledge = script(generated.reliableAcknowledge, asFlags)
export const add = script(generated.reliableAdd, asAddReply)
export const batches = script(generated.reliableBatches, (reply) =>
  asArray(reply).map((counts) => readBatch(asText(counts))),
)
export const clear = script(generated.reliableClear, asInteger)
export const closeBatch = script(generated.reliableCloseBatch, asClosed)
export const configure = script(generated.reliableConfigure, asFlag)
export const count = script(generated.reliableCount, asCountReply)
export const ends = script(generated.reliableEnds, asEndsReply)
export const extend = script(generated.reliableExtend, asTimes)
export const get = script(generated.reliableGet, asGetReply)
export const move = script(generated.reliableMove, asMoved)
export const negativeAcknowledge = script(generated.reliableNegativeAcknowledge, asIntegers)
export const poll = script(generated.reliablePoll, (reply) => asPollReply(reply))
export const progress = script(generated.reliableProgress, asTime)
export const remove = script(generated.reliableRemove, asFlags)
export const repeat = script(generated.reliableRepeat, asInteger)
export const reschedule = script(generated.reliableReschedule, asTime)
export const restore = script(generated.reliableRestore, asIntegers)
export const update = script(generated.reliableUpdate, asInteger)

function asIntegers(reply: unknown): number[] {
  return asArray(reply).map(asInteger)
}

function asFlags(reply: unknown): boolean[] {
  return asArray(reply).map(asFlag)
}

function asTimes(reply: unknown): (number | null)[] {
  return asArray(reply).map(asTime)
}

function asMoved(reply: unknown): MoveReply {
  const [moved = 0, passedOver = 0, gone = 0, rest = 0] = asIntegers(reply)
  return { moved, passedOver, gone, rest }
}

function asAddReply(reply: unknown): AddReply {
  const [now, ...outcomes] = asArray(reply)
  return { now: asNow(now), outcomes: outcomes.map(asInteger) }
}

function asGetReply(reply: unknown): GetReply {
  const [now, ...flat] = asArray(reply)
  const messages: (MessageReply | null)[] = []
  for (let i = 0; i < flat.length;) {
    const priority = asInteger(flat[i])
    if (priority < 0) {
      messages.push(null)
      i++
      continue
    }
    const history = asBytes(flat[i + 4])
    messages.push({
      priority: priority % PRIORITIES,
      visibleAt: asNumber(flat[i + 1]),
      inFlight: asFlag(flat[i + 2]),
      attempts: asInteger(flat[i + 3]),
      failures: history.toString(),
      progress: progressIn(history),
      record: asBytes(flat[i + 5]),
    })
    i += 6
  }
  return { now: asNow(now), messages }
}

const TILDE = 0x7e
const NEWLINE = 0x0a
const BACKSLASH = 0x5c
const LETTER_N = 0x6e

/** The progress in the first line of a history, `~<attempt> <epoch ms> <bytes>`, with line feeds and backslashes of the bytes escaped. */
function progressIn(history: Buffer): ProgressReply | null {
  if (history[0] !== TILDE) return null
  const line = history.subarray(0, Math.max(0, history.indexOf(NEWLINE)))
  const [head, attempt, at] = /^~(\d{1,15}) (\d{1,15}) /.exec(line.toString('latin1', 0, 40)) ?? []
  if (head === undefined) return null // of another program
  return { attempt: Number(attempt), at: Number(at), value: unescaped(line.subarray(head.length)) }
}

function unescaped(bytes: Buffer): Buffer {
  const value = Buffer.alloc(bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const isEscaped = bytes[at] === BACKSLASH && at + 1 < bytes.length
    if (isEscaped) at++
    value[length++] = isEscaped && bytes[at] === LETTER_N ? NEWLINE : (bytes[at] ?? 0)
  }
  return value.subarray(0, length)
}

function asEndsReply(reply: unknown): EndsReply {
  const [keeps, ...flat] = asArray(reply)
  const ends: EndReply[] = []
  for (let at = 0; at < flat.length; at += 2) ends.push(asEnd(asText(flat[at]), asBytes(flat[at + 1])))
  return { keeps: asFlag(keeps), ends }
}

function asEnd(kind: string, kept: Buffer): EndReply {
  if (kind === 'd') return { is: 'dead', failures: kept.toString() }
  if (kind !== 'c') return { is: kind === 'w' ? 'waits' : 'gone' }
  const head = kept.indexOf('\n')
  const [, at, attempts, hasResult] =
    /^(\d{1,16}),(\d{1,16}),(1?)$/.exec(kept.toString('latin1', 0, Math.max(0, head))) ?? []
  if (at === undefined || attempts === undefined) return { is: 'gone' } // of another program
  const result = hasResult === '1' ? kept.subarray(head + 1) : null
  return { is: 'completed', at: Number(at), attempts: Number(attempts), result }
}

const BATCH_STATES = { o: 'open', c: 'closed', f: 'finished' } as const
const BATCH_COUNTS = /^([ocf]),(\d{1,16}),(\d{1,16}),(\d{1,16}),(\d{1,16}),(\d{1,16}),(\d{1,16}),(\d{0,16}),(\d{0,16})$/

/** The counts of a batch in the scripts' format; `null` if there are none, or another program wrote them. */
function readBatch(text: string): BatchReply | null {
  const [, state, pending, completed, dead, expired, removed, opened, closed, finished] = BATCH_COUNTS.exec(text) ?? []
  if (state === undefined) return null
  return {
    state: BATCH_STATES[state as keyof typeof BATCH_STATES],
    pending: Number(pending),
    completed: Number(completed),
    dead: Number(dead),
    expired: Number(expired),
    removed: Number(removed),
    openedAt: Number(opened),
    closedAt: closed ? Number(closed) : null,
    finishedAt: finished ? Number(finished) : null,
  }
}

/** `null`: the last message is larger than the queue allows. */
function asClosed(reply: unknown): BatchReply | null {
  const [outcome, counts] = asArray(reply)
  if (asInteger(outcome) < 0) return null
  const batch = readBatch(asText(counts))
  if (batch === null) throw new InternalError('batch-reply', 'the counts cannot be read')
  return batch
}

function asCountReply(reply: unknown): CountReply {
  const [now, total, visible, delayed, inFlight, dead, first, addPaused, pollPaused, asides] = asArray(reply)
  return {
    now: asNow(now),
    total: asInteger(total),
    visible: asInteger(visible),
    delayed: asInteger(delayed),
    inFlight: asInteger(inFlight),
    dead: asInteger(dead),
    firstVisibleAt: asTime(first),
    addPaused: asFlag(addPaused),
    pollPaused: asFlag(pollPaused),
    asides: asIntegers(asides),
  }
}
