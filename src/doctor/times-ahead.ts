import { queueOfDeadLetters, type ReliableKeys } from '../keys.js'
import { MAX_MARK_MS } from '../store/new-message.js'
import { MAX_VISIBILITY_MS } from '../reliable/visibility.js'
import { asInteger } from '../store/replies.js'
import type { Sender } from '../store/sender.js'

/**
 * How many entries of a reliable queue have a time that is still to come, where clients write only times that have passed: another program
 * wrote it, or a clock was ahead.
 */
export interface TimesAhead {
  /** Messages that are said to be completed more than an hour later than now. */
  readonly completed: number
  /**
   * Batches that are said to have finished more than an hour later than now: of many that finish at once each has a millisecond of its own.
   */
  readonly batches: number
  /** Of a queue of dead letters: those that are visible in more than 365 days. Its consumers may give them back with a shorter delay. */
  readonly dead: number
  /** Marks of deduplicated ids and payloads that end more than 366 days later than now: a day more than any, for clocks that differ. */
  readonly marks: number
}

const HOUR_MS = 3_600_000
/** No clock is further ahead. */
const DAY_MS = 86_400_000
/** The scores from here to below the second one are those of messages of paused tasks. */
const ASIDE = [2 ** 53, 2 ** 54] as const

export async function timesAheadOf(sender: Sender, name: string, keys: ReliableKeys, now: number): Promise<TimesAhead> {
  const count = async (key: string, from: string, to: string): Promise<number> =>
    asInteger(await sender.call('ZCOUNT', [key, from, to], { resend: 'reads' }))
  const isLater = `(${now + HOUR_MS}`
  const first = queueOfDeadLetters(name) === null ? undefined : keys.due[0]
  const [completed, batches, marks, ...dead] = await Promise.all([
    count(keys.completedAt, isLater, '+inf'),
    count(keys.batchesAt, isLater, '+inf'),
    count(keys.once, `(${now + MAX_MARK_MS + DAY_MS}`, '+inf'),
    first === undefined ? 0 : count(first, `(${now + MAX_VISIBILITY_MS}`, `(${ASIDE[0]}`),
    first === undefined ? 0 : count(first, String(ASIDE[1]), '+inf'),
  ])
  return { completed, batches, dead: dead[0] + dead[1], marks }
}
