import {
  DecodeError,
  InvalidArgumentError,
  PayloadTooLargeError,
  UnsupportedOperationError,
  inWords,
  toError,
} from '../../errors.js'
import { assertFewJsonElements } from '../../codecs/json-bounds.js'
import { integer, nonEmptyString, oneOf, onlyKnown } from '../../options.js'
import { PRIORITIES } from '../../keys.js'
import { mostRepeatBytes } from '../../store/repeat-store.js'
import { MAX_DELIVERIES, groupOf } from '../add-options.js'
import { durationMs, type Duration } from '../../duration.js'
import { MAX_HEADER_BYTES, TASK_HEADER, checkHeaders, encodeHeaders, type Headers } from '../record.js'
import { MAX_DATE_MS, tickRuleOf, type RepeatTimes, type TickRule } from './ticks.js'

/**
 * The policy for ticks that passed while no consumer polled the queue. The message of the first of them waits in the queue. `'one'`: it
 * stands for all of them. `'all'`: each gets a message. `'none'`: the message of a tick is removed if no consumer took it before the next
 * tick.
 */
export type MissedTicks = 'one' | 'all' | 'none'

export interface ScheduleOptions extends RepeatTimes {
  /** The policy for missed ticks. Default `'one'`. */
  readonly missed?: MissedTicks | undefined
  /** The name of the worker's handler. */
  readonly task?: string | undefined
  /** The headers of each message. At most 64 KiB together. */
  readonly headers?: Headers | undefined
  /** The priority, the highest first. 0 to 9; default 0. */
  readonly priority?: number | undefined
  /** The group of each message, whose turns, limits and pauses apply. Not together with a `priority`. */
  readonly group?: string | undefined
  /** How many milliseconds after its tick an unhandled message is removed. At least 1. */
  readonly timeToLive?: Duration | undefined
  /** The most deliveries of each message. 1 to 1,000,000; default: the queue's, else 10. */
  readonly deliveryLimit?: number | undefined
}

/** The stored definition of a repeat. */
export interface RepeatDefinition extends TickRule {
  readonly missed: MissedTicks
  readonly priority: number
  readonly group?: string
  readonly headers?: Headers
  readonly timeToLive?: number
  readonly deliveryLimit?: number
  /** The encoded payload in base64. */
  readonly payload: string
}

/** The stored state of a repeat. */
export interface RepeatState {
  /** The last tick whose message was added, epoch milliseconds. */
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
  'group',
  'timeToLive',
  'deliveryLimit',
] as const satisfies readonly (keyof ScheduleOptions)[]

/** The longest name, so that the ids made from it are not too long. */
const MAX_NAME_BYTES = 400
/** The most JSON elements of a definition; each element of its headers takes at least one of their bytes. */
const MAX_ELEMENTS = MAX_HEADER_BYTES + 100

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

export function definitionOf(options: ScheduleOptions, payload: Buffer): RepeatDefinition {
  onlyKnown('options', options, NAMES)
  const { missed = 'one', task, priority = 0, group, timeToLive, deliveryLimit } = options
  const headers = {
    ...checkHeaders(options.headers),
    ...(task !== undefined && { [TASK_HEADER]: nonEmptyString('task', task) }),
  }
  encodeHeaders(headers) // refuses headers that the message of a tick could not carry
  return {
    ...tickRuleOf(options),
    missed: oneOf('missed', missed, ['one', 'all', 'none']),
    priority: integer('priority', priority, 0, PRIORITIES - 1),
    ...(group !== undefined && { group: groupOf({ group, priority }).toString() }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(timeToLive !== undefined && { timeToLive: durationMs('timeToLive', timeToLive, 1) }),
    ...(deliveryLimit !== undefined && { deliveryLimit: integer('deliveryLimit', deliveryLimit, 1, MAX_DELIVERIES) }),
    payload: payload.toString('base64'),
  }
}

/** `<tick> <JSON>`: JSON, because people who look into Redis can read it. */
export function writeState({ tick, definition }: RepeatState): Buffer {
  return Buffer.from(`${tick} ${JSON.stringify(definition)}`)
}

/** As `readState`, and checks the name too; throws a `DecodeError` for an invalid name or state. */
export function readRepeat(key: Buffer, value: Buffer, maxPayloadBytes: number): RepeatState {
  const name = key.toString()
  if (!Buffer.from(name).equals(key)) throw new DecodeError('repeat', 'a name that is no text')
  try {
    assertRepeatName(name)
  } catch (cause) {
    throw new DecodeError('repeat', toError(cause).message, { cause })
  }
  return readState(value, maxPayloadBytes)
}

/**
 * Reads a state. Any client of the server can have written it, so every field is checked as an application's arguments are before it is
 * used.
 */
export function readState(value: Buffer, maxPayloadBytes: number): RepeatState {
  const most = mostRepeatBytes(maxPayloadBytes)
  if (value.length > most) throw new DecodeError('repeat', `${value.length} bytes, where at most ${most} can be`)
  const text = value.toString()
  const [, digits, json] = /^(\d{1,16}) (\{.*\})$/s.exec(text) ?? []
  if (digits === undefined || json === undefined) throw new DecodeError('repeat', 'without the time of the last tick')
  assertFewJsonElements('repeat', value, MAX_ELEMENTS)
  try {
    const tick = integer('tick', Number(digits), 0, MAX_DATE_MS)
    const { payload, startAt, endAt, ...rest } = JSON.parse(json) as Record<keyof RepeatDefinition, unknown>
    const dates = {
      ...(startAt !== undefined && { startAt: dateOf('startAt', startAt) }),
      ...(endAt !== undefined && { endAt: dateOf('endAt', endAt) }),
    }
    const definition = definitionOf({ ...(rest as ScheduleOptions), ...dates }, bytesOf(payload, maxPayloadBytes))
    return { tick, definition }
  } catch (cause) {
    if (cause instanceof UnsupportedOperationError) throw cause // a library is missing, perhaps only in this process
    throw new DecodeError('repeat', toError(cause).message, { cause })
  }
}

function dateOf(what: string, ms: unknown): Date {
  return new Date(integer(what, ms, -MAX_DATE_MS, MAX_DATE_MS))
}

function bytesOf(payload: unknown, maxPayloadBytes: number): Buffer {
  if (typeof payload !== 'string') throw new InvalidArgumentError('payload', 'base64', payload)
  const bytes = Buffer.from(payload, 'base64')
  if (bytes.toString('base64') !== payload)
    throw new InvalidArgumentError('payload', 'base64', inWords('other characters'))
  if (bytes.length > maxPayloadBytes) throw new PayloadTooLargeError(bytes.length, maxPayloadBytes)
  return bytes
}
