import type { Entry } from './job.js'
import { readLedger } from './ledger.js'

/** The bench's record of one message. */
interface Message {
  /** `offered`: the offer began, and its outcome is unknown. */
  state: 'offered' | 'acknowledged' | 'refused'
  /** The correct due times: several while it is unknown whether the message was postponed. */
  dues: number[]
  cancelled: 'no' | 'yes' | 'perhaps'
  /** Acknowledged in an earlier chapter, and counted there. */
  kept: boolean
  /** When the message was taken, by this machine's clock; more than once if it came again. */
  readonly taken: number[]
}

/** The difference between the clock of Redis and this machine's: `shiftMs` from `at` on. */
export interface ClockShift {
  readonly at: number
  readonly shiftMs: number
}

/** The effects that a fault may have without a defect of the library. */
export interface Allowance {
  /** Messages in the hands of consumers that were killed, or not yet on disk or on a replica. */
  readonly lost?: number
  readonly dropped?: number
  readonly duplicated?: number
  readonly quarantined?: number
}

export interface Findings {
  readonly acknowledged: number
  readonly refused: number
  readonly unanswered: number
  readonly cancelled: number
  readonly delivered: number
  readonly lost: number
  /** Gone from the schedule before their time: no client had these. */
  readonly dropped: number
  readonly duplicated: number
  readonly early: number
  /** Cancelled and delivered, refused and delivered, or delivered and never offered. */
  readonly wrong: number
  /** The lateness of messages due or overdue after healing, in milliseconds. */
  readonly latestMs: number
  readonly medianMs: number
  /** The first of each kind, in words. */
  readonly examples: readonly string[]
}

/** A time read beside a clock that is being set may be on either side of it. */
const AROUND_MS = 100
/** Messages that are due later than this after the repair must be left at the end. */
export const FAR_AHEAD_MS = 600_000

/** Checks what all workers wrote, message by message. */
export class Books {
  readonly #messages = new Map<number, Message>()

  constructor(files: readonly string[]) {
    const entries = files.flatMap((file) => readLedger<Entry>(file))
    // consumers may be ahead of producers' files
    for (const entry of entries) if (entry[0] !== 'got') this.#note(entry)
    for (const entry of entries) if (entry[0] === 'got') this.#get(entry[1]).taken.push(entry[2])
  }

  /** The facts that the next chapter needs: the acknowledged messages that are left when all others have been taken. */
  far(healedAt: number, clock: readonly ClockShift[]): Extract<Entry, readonly ['kept', ...unknown[]]>[] {
    const now = redisTime(healedAt, clock)
    return [...this.#messages].flatMap(([n, message]) =>
      isExpected(message) && isFar(message, now) ? [['kept', n, Math.min(...message.dues)] as const] : [],
    )
  }

  /** Judges all messages; with the numbers that are pending in the end, also whether the messages that must be left are there. */
  check(healedAt: number, clock: readonly ClockShift[], pending?: ReadonlySet<number>): Findings {
    const now = redisTime(healedAt, clock)
    const examples: string[] = []
    const found = {
      acknowledged: 0,
      refused: 0,
      unanswered: 0,
      cancelled: 0,
      delivered: 0,
      lost: 0,
      dropped: 0,
      duplicated: 0,
      early: 0,
      wrong: 0,
    }
    const lateness: number[] = []
    let latest = { ms: 0, text: 'nothing was late' }
    const add = (what: 'lost' | 'dropped' | 'duplicated' | 'early' | 'wrong', n: number, more: string): void => {
      if (found[what]++ === 0) examples.push(`${n} ${more}`)
    }
    for (const [n, message] of this.#messages) {
      const { state, dues, cancelled, taken } = message
      if (!message.kept) found[state === 'offered' ? 'unanswered' : state]++
      if (cancelled === 'yes') found.cancelled++
      found.delivered += taken.length
      if (isExpected(message) && taken.length === 0) {
        const what = `was acknowledged, due at ${dues.join(' or ')}`
        if (!isFar(message, now)) add('lost', n, `${what}, and never came`)
        else if (pending?.has(n) === false) add('dropped', n, `${what}, and is not pending any more`)
      }
      if (taken.length > 1) add('duplicated', n, `came ${taken.length} times`)
      if (taken.length > 0 && cancelled === 'yes') add('wrong', n, 'was cancelled and came')
      if (taken.length > 0 && state === 'refused') add('wrong', n, 'was refused and came')
      for (const at of taken) {
        if (dues.length === 0) continue
        const earliest = Math.min(...dues)
        const readings = shiftsAround(clock, at).map((shift) => at + shift)
        const until = Math.max(...readings)
        if (until < earliest) add('early', n, `came ${earliest - until} ms early`)
        const reference = Math.max(Math.max(...dues), now)
        if (at < healedAt) continue
        const late = Math.max(0, Math.min(...readings) - reference)
        lateness.push(late)
        if (late <= latest.ms) continue
        latest = {
          ms: late,
          text: `${n}, due at ${dues.join(' or ')}, came at ${taken.join(', ')}; healed at ${healedAt}`,
        }
      }
    }
    lateness.sort((a, b) => a - b)
    examples.push(`the latest: ${latest.text}`)
    return { ...found, latestMs: latest.ms, medianMs: lateness[lateness.length >> 1] ?? 0, examples }
  }

  #note(entry: Exclude<Entry, readonly ['got', ...unknown[]]>): void {
    const message = this.#get(entry[1])
    switch (entry[0]) {
      case 'try':
      case 'lost answer':
        message.state = 'offered'
        break
      case 'ok':
      case 'kept':
        message.state = 'acknowledged'
        message.dues = [entry[2]]
        message.kept = entry[0] === 'kept'
        break
      case 'no':
        message.state = 'refused'
        break
      case 'cancelling':
        message.cancelled = 'perhaps'
        break
      case 'cancel':
        message.cancelled = entry[2] === null ? 'perhaps' : entry[2] ? 'yes' : 'no'
        break
      case 'moving':
        message.dues = [entry[2], Infinity]
        break
      case 'move':
        message.dues = entry[2] === null ? message.dues.slice(0, 1) : [entry[2]]
    }
  }

  #get(n: number): Message {
    let message = this.#messages.get(n)
    if (message === undefined) {
      message = { state: 'refused', dues: [], cancelled: 'no', kept: false, taken: [] } // until a line says otherwise: it was never offered
      this.#messages.set(n, message)
    }
    return message
  }
}

function isExpected({ state, cancelled }: Message): boolean {
  return state === 'acknowledged' && cancelled === 'no'
}

/** Whether a message is due long after `now`, a time of the Redis clock. */
function isFar({ dues }: Message, now: number): boolean {
  return dues.length > 0 && Math.min(...dues) > now + FAR_AHEAD_MS
}

/** The time of the Redis clock at a time of this machine's clock. */
export function redisTime(at: number, clock: readonly ClockShift[]): number {
  return at + (shiftsAround(clock, at).at(-1) ?? 0)
}

/** The number that a pending entry holds, behind the length of its id, the id, and the length of what follows. */
export function numberIn(entry: Buffer): number {
  return Number(entry.toString('latin1', 1 + (entry[0] ?? 0) + 8) || NaN)
}

function shiftsAround(clock: readonly ClockShift[], at: number): number[] {
  const before = clock.filter((shift) => shift.at <= at - AROUND_MS).at(-1)?.shiftMs ?? 0
  const within = clock.filter((shift) => Math.abs(shift.at - at) < AROUND_MS).map((shift) => shift.shiftMs)
  return [before, ...within]
}
