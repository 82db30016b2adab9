import { PRIORITIES } from '../keys.js'
import { asArray, asBytes, asBytesOrNull, asInteger, asNow, asNumber, asText, asTime } from './replies.js'

/** The identity of one delivery of a message. */
export interface Claim {
  readonly id: string
  /**
   * The member in the set of messages in flight: priority and id; bytes only if the id is not a text, because they take longer everywhere.
   */
  readonly member: string | Buffer
  /** The number of the delivery and the token that identifies it. */
  readonly delivery: string
}

/** One stored message that was handed out. */
export interface PolledRecord extends Claim {
  readonly priority: number
  /** When it became visible, epoch milliseconds by the Redis clock. */
  readonly visibleAt: number
  /** When it was handed out, epoch milliseconds by the Redis clock. */
  readonly polledAt: number
  /** When its visibility timeout ends, epoch milliseconds by the Redis clock. */
  readonly visibleUntil: number
  /** When its visibility timeout ends by the monotonic clock of this process, or a little earlier. */
  readonly heldUntil: number
  readonly record: Buffer
}

/** The stored form of a repeat. */
export interface RepeatRecord {
  readonly name: string
  /** The bytes of the name, which may not be a text. */
  readonly key: Buffer
  /** The value; `null` if it is too large, and the poll has set it aside. */
  readonly value: Buffer | null
}

export interface PollReply {
  /** The Redis clock when the script ran, in milliseconds with fractions. */
  readonly now: number
  /** When the next message becomes visible, epoch milliseconds; at most `now` if more are visible already, `null` if there is none. */
  readonly next: number | null
  readonly subscribers: number
  readonly visibilityMs: number
  /** How many messages came back because their visibility timeout had ended. */
  readonly returned: number
  readonly expired: number
  readonly deadLettered: number
  /** The first key of another type, and the server's error, while the script did the rest; empty for none. */
  readonly problem: string
  /** How many members of schedules were moved, removed or postponed. If none was, the same poll finds the same again. */
  readonly changed: number
  /** The repeats whose next message this caller has to prepare. */
  readonly repeats: readonly RepeatRecord[]
  readonly messages: readonly PolledRecord[]
}

/**
 * `sentAt`: when the script was sent, by the monotonic clock of this process. `asked`: the visibility timeout that the caller asked for,
 * negative for that of the queue; the client believes in no longer one.
 */
export function asPollReply(reply: unknown, sentAt = 0, asked = -1): PollReply {
  const [now, next, subscribers, visibility, returned, expired, deadLettered, repeating, problem, changed, ...flat] =
    asArray(reply)
  const visibilityMs = asked < 0 ? asInteger(visibility) : Math.min(asked, asInteger(visibility))
  const time = asNow(now)
  const polledAt = Math.floor(time)
  const visibleUntil = polledAt + visibilityMs
  const heldUntil = sentAt + visibilityMs
  const messages: PolledRecord[] = []
  const repeats: RepeatRecord[] = []
  const first = 2 * asInteger(repeating)
  for (let i = 0; i + 1 < first; i += 2) {
    const key = asBytes(flat[i])
    repeats.push({ name: key.toString(), key, value: asBytesOrNull(flat[i + 1]) })
  }
  for (let at = first; at + 2 < flat.length;) {
    const [priority, delivery] = [asInteger(flat[at]), asText(flat[at + 1])]
    const end = at + 3 + 3 * asInteger(flat[at + 2])
    for (at += 3; at < end; at += 3) {
      const [bytes, record] = [asBytes(flat[at]), asBytes(flat[at + 2])]
      const id = bytes.toString()
      const member = memberOf(priority, id, bytes)
      const visibleAt = asNumber(flat[at + 1])
      messages.push({
        id,
        member,
        delivery,
        priority: priority % PRIORITIES,
        visibleAt,
        polledAt,
        visibleUntil,
        heldUntil,
        record,
      })
    }
  }
  return {
    now: time,
    next: asTime(next),
    subscribers: asInteger(subscribers),
    visibilityMs,
    returned: asInteger(returned),
    expired: asInteger(expired),
    deadLettered: asInteger(deadLettered),
    problem: asText(problem),
    changed: asInteger(changed),
    repeats,
    messages,
  }
}

function memberOf(priority: number, id: string, bytes: Buffer): string | Buffer {
  const first = priority === PRIORITIES ? 'g' : String(priority) // messages with a group
  return id.includes('\ufffd') ? Buffer.concat([Buffer.from(first), bytes]) : `${first}${id}`
}
