import * as generated from './scripts/generated.js'
import { asPollReply } from './poll-reply.js'
import { asArray, asBytes, asFlag, asInteger, asNumber, asText, asTime } from './replies.js'
import { script } from './script.js'

export type { Claim, PollReply, PolledRecord, RepeatRecord } from './poll-reply.js'

/** What became of added messages. */
export interface AddReply {
  /** Epoch milliseconds. */
  readonly now: number
  /** One number per message; see the script. */
  readonly outcomes: readonly number[]
}

/** What is known of one message. */
export interface MessageReply {
  readonly priority: number
  readonly visibleAt: number
  readonly inFlight: boolean
  readonly attempts: number
  readonly failures: string
  readonly record: Buffer
}

export interface GetReply {
  readonly now: number
  /** `null` for ids without a message. Fewer than asked for, but at least one, where they are large. */
  readonly messages: readonly (MessageReply | null)[]
}

export interface CountReply {
  readonly now: number
  readonly total: number
  readonly visible: number
  readonly delayed: number
  readonly inFlight: number
  readonly dead: number
  /** When the first that is not in flight is or was visible, epoch milliseconds. */
  readonly firstVisibleAt: number | null
  readonly addPaused: boolean
  readonly pollPaused: boolean
}

/** How a message has ended, or `waits`: it is in the queue; `gone`: there is nothing of it. */
export type EndReply =
  | { readonly is: 'waits' | 'gone' }
  | { readonly is: 'completed'; readonly at: number; readonly attempts: number; readonly result: Buffer | null }
  | { readonly is: 'dead'; readonly failures: string }

export interface EndsReply {
  /** Whether the queue keeps completed messages. */
  readonly keeps: boolean
  /** Fewer than asked for, but at least one, where results are large. */
  readonly ends: readonly EndReply[]
}

/** The scripts of the reliable queue with the decoders of their replies. */
export const acknowledge = script(generated.reliableAcknowledge, asFlags)
export const add = script(generated.reliableAdd, asAddReply)
export const clear = script(generated.reliableClear, asInteger)
export const configure = script(generated.reliableConfigure, asFlag)
export const count = script(generated.reliableCount, asCountReply)
export const ends = script(generated.reliableEnds, asEndsReply)
export const extend = script(generated.reliableExtend, asTimes)
export const get = script(generated.reliableGet, asGetReply)
export const move = script(generated.reliableMove, asMoved)
export const negativeAcknowledge = script(generated.reliableNegativeAcknowledge, asIntegers)
export const poll = script(generated.reliablePoll, (reply) => asPollReply(reply))
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

function asMoved(reply: unknown): { moved: number; passedOver: number; gone: number } {
  const [moved = 0, passedOver = 0, gone = 0] = asIntegers(reply)
  return { moved, passedOver, gone }
}

function asAddReply(reply: unknown): AddReply {
  const [now, ...outcomes] = asArray(reply)
  return { now: asNumber(now), outcomes: outcomes.map(asInteger) }
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
    messages.push({
      priority,
      visibleAt: asNumber(flat[i + 1]),
      inFlight: asFlag(flat[i + 2]),
      attempts: asInteger(flat[i + 3]),
      failures: asText(flat[i + 4]),
      record: asBytes(flat[i + 5]),
    })
    i += 6
  }
  return { now: asNumber(now), messages }
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
  if (at === undefined || attempts === undefined) return { is: 'gone' } // of another writer
  const result = hasResult === '1' ? kept.subarray(head + 1) : null
  return { is: 'completed', at: Number(at), attempts: Number(attempts), result }
}

function asCountReply(reply: unknown): CountReply {
  const [now, total, visible, delayed, inFlight, dead, first, addPaused, pollPaused] = asArray(reply)
  return {
    now: asNumber(now),
    total: asInteger(total),
    visible: asInteger(visible),
    delayed: asInteger(delayed),
    inFlight: asInteger(inFlight),
    dead: asInteger(dead),
    firstVisibleAt: asTime(first),
    addPaused: asFlag(addPaused),
    pollPaused: asFlag(pollPaused),
  }
}
