import * as generated from './scripts/generated.js'
import { asArray, asBytes, asBytesOrNull, asFlag, asInteger, asNumber, asText } from './replies.js'
import { script } from './script.js'

/** What became of added messages. */
export interface AddReply {
  /** Epoch milliseconds. */
  readonly now: number
  /** One number per message; see the script. */
  readonly outcomes: readonly number[]
}

/** One message that is handed out. */
export interface PolledRecord {
  readonly priority: number
  readonly id: Buffer
  /** The number of the delivery and the token that identifies it. */
  readonly lease: string
  /** When it became visible, epoch milliseconds. */
  readonly visibleAt: number
  readonly record: Buffer
}

/** A repeat as it lies in Redis. */
export interface RepeatRecord {
  readonly name: string
  /** The bytes of the name, which may be no text. */
  readonly key: Buffer
  /** `null` where it is larger than any may be; the poll has set it aside then. */
  readonly value: Buffer | null
}

export interface PollReply {
  /** The Redis clock when the script ran, in milliseconds with fractions. */
  readonly now: number
  /** When something becomes visible next, epoch milliseconds; at most `now` when there is more already, `null` when there is nothing. */
  readonly next: number | null
  readonly subscribers: number
  readonly visibilityMs: number
  /** How many came back because their visibility had ended. */
  readonly returned: number
  readonly expired: number
  readonly deadLettered: number
  /** The first key that is not what it should be, and what the server said, while the rest went on; else empty. */
  readonly problem: string
  /** How many members of schedules were moved, removed or put off. Without any, the same poll finds the same again. */
  readonly changed: number
  /** Whose next message this caller has to prepare. */
  readonly repeats: readonly RepeatRecord[]
  readonly messages: readonly PolledRecord[]
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

/** The scripts of the reliable queue with the decoders of their replies. */
export const acknowledge = script(generated.reliableAcknowledge, asFlags)
export const add = script(generated.reliableAdd, asAddReply)
export const configure = script(generated.reliableConfigure, asFlag)
export const count = script(generated.reliableCount, asCountReply)
export const extend = script(generated.reliableExtend, asTimes)
export const get = script(generated.reliableGet, asGetReply)
export const move = script(generated.reliableMove, asMoved)
export const negativeAcknowledge = script(generated.reliableNegativeAcknowledge, asIntegers)
export const poll = script(generated.reliablePoll, asPollReply)
export const remove = script(generated.reliableRemove, asFlags)
export const repeat = script(generated.reliableRepeat, asInteger)
export const reschedule = script(generated.reliableReschedule, asTime)
export const update = script(generated.reliableUpdate, asInteger)

function asIntegers(reply: unknown): number[] {
  return asArray(reply).map(asInteger)
}

function asFlags(reply: unknown): boolean[] {
  return asArray(reply).map(asFlag)
}

/** A time in milliseconds, or `null` where there is an empty text. */
function asTime(reply: unknown): number | null {
  return asText(reply) === '' ? null : asNumber(reply)
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

function asPollReply(reply: unknown): PollReply {
  const [now, next, subscribers, visibility, returned, expired, deadLettered, repeating, problem, changed, ...flat] =
    asArray(reply)
  const messages: PolledRecord[] = []
  const repeats: RepeatRecord[] = []
  const first = 2 * asInteger(repeating)
  for (let i = 0; i + 1 < first; i += 2) {
    const key = asBytes(flat[i])
    repeats.push({ name: key.toString(), key, value: asBytesOrNull(flat[i + 1]) })
  }
  for (let at = first; at + 2 < flat.length;) {
    const [priority, lease] = [asInteger(flat[at]), asText(flat[at + 1])]
    const end = at + 3 + 3 * asInteger(flat[at + 2])
    for (at += 3; at < end; at += 3) {
      const [id, record] = [asBytes(flat[at]), asBytes(flat[at + 2])]
      messages.push({ priority, id, lease, visibleAt: asNumber(flat[at + 1]), record })
    }
  }
  return {
    now: asNumber(now),
    next: asTime(next),
    subscribers: asInteger(subscribers),
    visibilityMs: asInteger(visibility),
    returned: asInteger(returned),
    expired: asInteger(expired),
    deadLettered: asInteger(deadLettered),
    problem: asText(problem),
    changed: asInteger(changed),
    repeats,
    messages,
  }
}

function asGetReply(reply: unknown): GetReply {
  const [now, ...flat] = asArray(reply)
  const messages: (MessageReply | null)[] = []
  for (let i = 0; i + 5 < flat.length; i += 6) {
    const priority = asInteger(flat[i])
    messages.push(
      priority < 0
        ? null
        : {
            priority,
            visibleAt: asNumber(flat[i + 1]),
            inFlight: asFlag(flat[i + 2]),
            attempts: asInteger(flat[i + 3]),
            failures: asText(flat[i + 4]),
            record: asBytes(flat[i + 5]),
          },
    )
  }
  return { now: asNumber(now), messages }
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
