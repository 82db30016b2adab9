import { DecodeError, InvalidArgumentError, UnsupportedOperationError, toError } from '../../errors.js'
import { integer, nonEmptyString, oneOf, onlyKnown } from '../../options.js'
import { PRIORITIES } from '../../keys.js'
import { MAX_DELIVERIES, positive } from '../add-options.js'
import { TASK_HEADER, checkHeaders, type Headers } from '../record.js'
import { tickRuleOf, type RepeatTimes, type TickRule } from './ticks.js'

/**
 * What becomes of ticks that passed while nobody polled the queue. The message of the first of them is in the queue and waits.
 * `'one'`: it stands for all of them. `'all'`: each has its message. `'none'`: a message of a tick is removed when the next
 * tick has come before anybody took it.
 */
export type MissedTicks = 'one' | 'all' | 'none'

export interface RepeatOptions extends RepeatTimes {
  /** Default `'one'`. */
  readonly missed?: MissedTicks | undefined
  /** For the worker's handler of that name. */
  readonly task?: string | undefined
  readonly headers?: Headers | undefined
  /** 0 to 9, the highest first. Default 0. */
  readonly priority?: number | undefined
  /** A message that nobody has handled so many milliseconds after its tick is removed. At least 1. */
  readonly timeToLive?: number | undefined
  /** How often each message is delivered at most. 1 to 1,000,000; default: the queue's, else 10. */
  readonly deliveryLimit?: number | undefined
}

/** A repeat as it is kept. */
export interface RepeatDefinition extends TickRule {
  readonly missed: MissedTicks
  readonly priority: number
  readonly headers?: Headers
  readonly timeToLive?: number
  readonly deliveryLimit?: number
  /** Codec bytes in base64. */
  readonly payload: string
}

/** How far a repeat has come. */
export interface RepeatState {
  /** The last tick that has its message, epoch milliseconds. */
  readonly tick: number
  readonly definition: RepeatDefinition
}

const NAMES = [
  'every',
  'cron',
  'timeZone',
  'startAt',
  'endAt',
  'missed',
  'task',
  'headers',
  'priority',
  'timeToLive',
  'deliveryLimit',
] as const satisfies readonly (keyof RepeatOptions)[]

/** Of a name, so that the ids made of it are no longer than ids may be. */
const MAX_NAME_BYTES = 400

export function assertRepeatName(name: unknown): string {
  const text = nonEmptyString('name', name)
  const isFit = text.isWellFormed() && Buffer.byteLength(text) <= MAX_NAME_BYTES
  if (!isFit) throw new InvalidArgumentError('name', `a text of 1 to ${MAX_NAME_BYTES} bytes`, name)
  return text
}

/** The id of the message of a tick. */
export function tickId(name: string, tick: number): string {
  return `${name}@${tick}`
}

export function definitionOf(options: RepeatOptions, payload: Buffer): RepeatDefinition {
  onlyKnown('options', options, NAMES)
  const { missed = 'one', task, priority = 0, timeToLive, deliveryLimit } = options
  const headers = {
    ...checkHeaders(options.headers),
    ...(task !== undefined && { [TASK_HEADER]: nonEmptyString('task', task) }),
  }
  return {
    ...tickRuleOf(options),
    missed: oneOf('missed', missed, ['one', 'all', 'none']),
    priority: integer('priority', priority, 0, PRIORITIES - 1),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(timeToLive !== undefined && { timeToLive: positive('timeToLive', timeToLive) }),
    ...(deliveryLimit !== undefined && { deliveryLimit: integer('deliveryLimit', deliveryLimit, 1, MAX_DELIVERIES) }),
    payload: payload.toString('base64'),
  }
}

/** `<tick> <JSON>`: JSON, because whoever looks into Redis can read it. */
export function writeState({ tick, definition }: RepeatState): Buffer {
  return Buffer.from(`${tick} ${JSON.stringify(definition)}`)
}

/** What another version wrote, or nobody, is refused as what an application gives is. */
export function readState(value: Buffer): RepeatState {
  const text = value.toString()
  const space = text.indexOf(' ')
  const tick = Number(text.slice(0, space))
  try {
    const kept = JSON.parse(text.slice(space + 1)) as RepeatDefinition
    const { payload, startAt, endAt, ...rest } = kept
    const dates = {
      startAt: startAt === undefined ? undefined : new Date(startAt),
      endAt: endAt === undefined ? undefined : new Date(endAt),
    }
    const definition = definitionOf({ ...rest, ...dates }, Buffer.from(payload, 'base64'))
    if (Number.isSafeInteger(tick)) return { tick, definition }
  } catch (cause) {
    if (cause instanceof UnsupportedOperationError) throw cause // a library is missing here, and perhaps only here
    throw new DecodeError('repeat', toError(cause).message, { cause })
  }
  throw new DecodeError('repeat', 'without the time of the last tick')
}
