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
 * What becomes of ticks that passed while no consumer polled the queue. The message of the first of them is in the queue and waits.
 * `'one'`: it stands for all of them. `'all'`: each has its message. `'none'`: a message of a tick is removed when the next
 * tick has come before a consumer took it.
 */
export type MissedTicks = 'one' | 'all' | 'none'

export interface ScheduleOptions extends RepeatTimes {
  /** Default `'one'`. */
  readonly missed?: MissedTicks | undefined
  /** For the worker's handler of that name. */
  readonly task?: string | undefined
  /** Of each message. At most 64 KiB together. */
  readonly headers?: Headers | undefined
  /** 0 to 9, the highest first. Default 0. */
  readonly priority?: number | undefined
  /** Of each message: it has its turns and limits, and waits while the group is paused. Not together with a `priority`. */
  readonly group?: string | undefined
  /** A message that no consumer has handled so many milliseconds after its tick is removed. At least 1. */
  readonly timeToLive?: Duration | undefined
  /** How often each message is delivered at most. 1 to 1,000,000; default: the queue's, else 10. */
  readonly deliveryLimit?: number | undefined
}

/** A repeat as it is kept. */
export interface RepeatDefinition extends TickRule {
  readonly missed: MissedTicks
  readonly priority: number
  readonly group?: string
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
  'group',
  'timeToLive',
  'deliveryLimit',
] as const satisfies readonly (keyof ScheduleOptions)[]

/** Of a name, so that the ids made of it are no longer than ids may be. */
const MAX_NAME_BYTES = 400
/** Of a definition; each element of its headers has a byte of them at least. */
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
  encodeHeaders(headers) // refuses what the message of a tick could not carry
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

/** The same with the name it is stored by; for both, a `DecodeError` says what is wrong with them. */
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

/** Any client of the server can have written it: each field is checked as what an application gives is, and nothing is made of it before. */
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
    if (cause instanceof UnsupportedOperationError) throw cause // a library is missing here, and perhaps only here
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
