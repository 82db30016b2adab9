import { boolean, integer, onlyKnown } from '../options.js'
import { durationMs, type Duration } from '../duration.js'
import { visibilityMs } from './visibility.js'
import { positive } from './add-options.js'
import {
  changesText,
  readChangesText,
  type ChangesConfig,
  type StoredChangesConfig,
} from './change-stream/change-config.js'

/** The most deliveries in a period of time. */
export interface RateLimitConfig {
  /** The most deliveries. 1 to 1,000,000. */
  readonly max: number
  /** The period in milliseconds. 1 to 86,400,000. */
  readonly perMs: Duration
}

/** The configuration of a queue, stored in Redis, for all processes. A setting that is not set has its default. */
export interface ReliableQueueConfig {
  /** For how many milliseconds no other consumer gets a message that was handed out. 1 millisecond to 365 days; default 30,000. */
  readonly visibilityTimeout?: Duration | null | undefined
  /** The most deliveries of a message. 1 to 1,000,000; default 10. */
  readonly deliveryLimit?: number | null | undefined
  /** How many milliseconds after they became visible unhandled messages are removed. At least 1; default: never. */
  readonly timeToLive?: Duration | null | undefined
  /** The delay of messages that are added without one, in milliseconds. Default 0. */
  readonly delay?: Duration | null | undefined
  /** The most messages in the queue, including those in flight. At least 1; default: no limit. */
  readonly maxSize?: number | null | undefined
  /** The largest payload in bytes. At least 1; default: the client's `maxPayloadBytes`. */
  readonly maxMessageBytes?: number | null | undefined
  /** Whether messages that are rejected or failed too often are kept in the queue `deadLetters`. Default true. */
  readonly deadLetters?: boolean | null | undefined
  /** The most dead letters that the queue keeps; a further one drops the oldest. 1 to 1,000,000; default: all. */
  readonly keepDeadLetters?: number | null | undefined
  /** How many milliseconds the queue keeps a dead letter at most, counted from when the message died. At least 1; default: for ever. */
  readonly keepDeadLettersFor?: Duration | null | undefined
  /**
   * The most completed messages that the queue keeps, with their results, for `waitUntilFinished` and `getCompleted`; acknowledgements
   * remove the oldest. 1 to 1,000,000; default: none.
   */
  readonly keepCompleted?: number | null | undefined
  /** How many milliseconds the queue keeps a completed message at most. At least 1; default: only `keepCompleted` limits it. */
  readonly keepCompletedFor?: Duration | null | undefined
  /** The most messages that consumers have at once, over all processes, including prefetched ones. 1 to 1,000,000; default: no limit. */
  readonly concurrency?: number | null | undefined
  /**
   * At most `max` deliveries in any period of `perMs` milliseconds, over all processes. 1 to 1,000,000 and 1 to 86,400,000; default: no
   * limit.
   */
  readonly rateLimit?: RateLimitConfig | null | undefined
  /** As `concurrency`, for each group of messages (`add(payload, { group })`). */
  readonly groupConcurrency?: number | null | undefined
  /** As `rateLimit`, for each group of messages. */
  readonly groupRateLimit?: RateLimitConfig | null | undefined
  /**
   * The changes of messages that the queue keeps, for `changes` and `allEvents`. `false` or `null` (default): none; setting it deletes the
   * kept ones.
   */
  readonly changes?: ChangesConfig | false | null | undefined
}

/** A stored rate limit. */
export interface StoredRateLimit {
  readonly max: number
  readonly perMs: number
}

/** The stored configuration of a queue: durations are milliseconds. */
export interface StoredQueueConfig extends Omit<
  ReliableQueueConfig,
  | 'visibilityTimeout'
  | 'timeToLive'
  | 'delay'
  | 'keepCompletedFor'
  | 'keepDeadLettersFor'
  | 'rateLimit'
  | 'groupRateLimit'
  | 'changes'
> {
  readonly visibilityTimeout?: number | null | undefined
  readonly timeToLive?: number | null | undefined
  readonly delay?: number | null | undefined
  readonly keepCompletedFor?: number | null | undefined
  readonly keepDeadLettersFor?: number | null | undefined
  readonly rateLimit?: StoredRateLimit | null | undefined
  readonly groupRateLimit?: StoredRateLimit | null | undefined
  readonly changes?: StoredChangesConfig | false | null | undefined
}

const MOST_CLAIMS = 1_000_000
const DAY_MS = 86_400_000

const flag = (what: string, value: unknown): number => Number(boolean(what, value))

const CHECKS: { readonly [K in keyof ReliableQueueConfig]-?: (what: string, value: unknown) => number | string } = {
  visibilityTimeout: visibilityMs,
  deliveryLimit: (what, value) => integer(what, value, 1, 1_000_000),
  timeToLive: (what, value) => durationMs(what, value, 1),
  delay: (what, value) => durationMs(what, value),
  maxSize: positive,
  maxMessageBytes: positive,
  deadLetters: flag,
  keepDeadLetters: (what, value) => integer(what, value, 1, 1_000_000),
  keepDeadLettersFor: (what, value) => durationMs(what, value, 1),
  keepCompleted: (what, value) => integer(what, value, 1, 1_000_000),
  keepCompletedFor: (what, value) => durationMs(what, value, 1),
  concurrency: (what, value) => integer(what, value, 1, MOST_CLAIMS),
  rateLimit: rateText,
  groupConcurrency: (what, value) => integer(what, value, 1, MOST_CLAIMS),
  groupRateLimit: rateText,
  changes: (what, value) => changesText(what, value as ChangesConfig | false),
}

const NAMES = Object.keys(CHECKS) as (keyof ReliableQueueConfig)[]

const PAUSES: readonly string[] = ['addPaused', 'pollPaused']

/** The settings that are stored as 1 or 0. */
const FLAGS: readonly string[] = [...NAMES.filter((name) => CHECKS[name] === flag), ...PAUSES]

/** The names and values for the script; `null` removes a setting, an absent one stays. */
export function configArgs(config: ReliableQueueConfig): string[] {
  onlyKnown('config', config, NAMES)
  return NAMES.flatMap((name) => {
    const value = config[name]
    if (value === undefined) return []
    return [name, value === null ? '' : String(CHECKS[name](`config.${name}`, value))]
  })
}

/** Reads the stored settings; leaves out a value that the scripts do not accept, because `setConfig` did not write it. */
export function readConfig(values: readonly (string | null)[]): StoredQueueConfig {
  const config: Record<string, number | boolean | StoredRateLimit | StoredChangesConfig | undefined> = {}
  NAMES.forEach((name, at) => {
    const value = values[at]
    if (value === null || value === undefined || !isSetting(name, value)) return
    if (name === 'changes') config[name] = readChangesText(value)
    else if (isRate(name)) config[name] = readRateText(value)
    else config[name] = FLAGS.includes(name) ? value === '1' : Number(value)
  })
  return config
}

/** Whether a stored text is a valid value of a setting; true for a setting that this version does not know. */
export function isSetting(name: string, value: string): boolean {
  if (name === 'changes') return readChangesText(value) !== undefined
  if (isRate(name)) return readRateText(value) !== undefined
  if (FLAGS.includes(name)) return value === '0' || value === '1'
  const check = CHECKS[name as keyof typeof CHECKS] as (typeof CHECKS)[keyof typeof CHECKS] | undefined
  if (check === undefined) return true
  try {
    return /^\d{1,16}$/.test(value) && Number(check(name, Number(value))) >= 0
  } catch {
    return false
  }
}

/** The rate limit in the scripts' format: `<max>/<ms>`. */
function rateText(what: string, value: unknown): string {
  onlyKnown(what, value, ['max', 'perMs'])
  const { max, perMs } = value as { max: unknown; perMs: unknown }
  return `${integer(`${what}.max`, max, 1, MOST_CLAIMS)}/${durationMs(`${what}.perMs`, perMs, 1, DAY_MS)}`
}

function isRate(name: string): boolean {
  return CHECKS[name as keyof typeof CHECKS] === rateText
}

function readRateText(text: string): StoredRateLimit | undefined {
  const [, most, per] = /^(\d{1,16})\/(\d{1,16})$/.exec(text) ?? []
  const [max, perMs] = [Number(most), Number(per)]
  const isValid = text.length <= 16 && max >= 1 && max <= MOST_CLAIMS && perMs >= 1 && perMs <= DAY_MS
  return isValid ? { max, perMs } : undefined
}

export const CONFIG_NAMES: readonly string[] = NAMES

/** All settings that the scripts read. */
export const SETTING_NAMES: readonly string[] = [...NAMES, ...PAUSES]
