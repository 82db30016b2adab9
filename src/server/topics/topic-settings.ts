import type { ReliableQueueConfig } from 'redelayed'
import { MOST_COUNTED, MOST_RATE_MS } from './bounds.js'
import { MAX_VISIBILITY_MS } from './visibility.js'

/** At most `max` deliveries in any `perMs` milliseconds, by all instances. */
export interface TopicRateLimit {
  readonly max: number
  readonly perMs: number
}

/** The settings of a topic, on all instances. Durations are milliseconds. */
export interface TopicSettings {
  /** The number of queues that share its messages. It cannot be changed. */
  readonly shards: number
  /** How long a consumer keeps a message that it received. */
  readonly visibilityTimeout: number
  /** The number of deliveries after which a message becomes a dead letter. */
  readonly deliveryLimit: number
  /** A message that no consumer has handled this long after it was due is removed; `null`: never. */
  readonly timeToLive: number | null
  /** The delay of messages that have none of their own. */
  readonly delay: number
  /** The most messages of each shard; `null`: no limit. */
  readonly maxSize: number | null
  /** Whether messages that fail too often are kept as dead letters. */
  readonly deadLetters: boolean
  /** The most dead letters of each shard; `null`: all. */
  readonly keepDeadLetters: number | null
  /** How long a dead letter is kept; `null`: for ever. */
  readonly keepDeadLettersFor: number | null
  /** The most completed messages of each shard that are kept for programs with the library; `null`: none. */
  readonly keepCompleted: number | null
  /** How long a completed message is kept; `null`: only `keepCompleted` limits it. */
  readonly keepCompletedFor: number | null
  /** The most messages of each shard that consumers have at once; `null`: no limit. */
  readonly concurrency: number | null
  /** The most deliveries of each shard in any period; `null`: no limit. */
  readonly rateLimit: TopicRateLimit | null
  /** As `concurrency`, for each group of messages. */
  readonly groupConcurrency: number | null
  /** As `rateLimit`, for each group of messages. */
  readonly groupRateLimit: TopicRateLimit | null
  /**
   * How long a message waits after a negative acknowledgement without a delay, after its first, second … delivery; the last one repeats.
   */
  readonly retryDelays: number[]
  /** The endpoint that gets its messages as webhooks; `null`: consumers receive them. */
  readonly endpoint: string | null
  /** Whether the changes of messages are kept for /v1/events. */
  readonly events: boolean
}

export const TOPIC_DEFAULTS: TopicSettings = Object.freeze({
  shards: 1,
  visibilityTimeout: 30_000,
  deliveryLimit: 10,
  timeToLive: null,
  delay: 0,
  maxSize: null,
  deadLetters: true,
  keepDeadLetters: null,
  keepDeadLettersFor: null,
  keepCompleted: null,
  keepCompletedFor: null,
  concurrency: null,
  rateLimit: null,
  groupConcurrency: null,
  groupRateLimit: null,
  // 15s 3m 10m 30m 30m 1h 2h 6h 15h
  retryDelays: [15_000, 180_000, 600_000, 1_800_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 54_000_000],
  endpoint: null,
  events: true,
})

/** The most shards of a topic. */
export const MOST_SHARDS = 256

/** Settings in which missing or invalid values have their defaults. */
export function completeSettings(given: unknown): TopicSettings {
  const found = new Map(Object.entries(typeof given === 'object' && given !== null ? given : {}))
  const or = <K extends keyof TopicSettings>(name: K, is: (value: unknown) => boolean): TopicSettings[K] =>
    is(found.get(name)) ? (found.get(name) as TopicSettings[K]) : TOPIC_DEFAULTS[name]
  const isFlag = (value: unknown): boolean => typeof value === 'boolean'
  return {
    shards: or('shards', whole(1, MOST_SHARDS)),
    visibilityTimeout: or('visibilityTimeout', whole(1, MAX_VISIBILITY_MS)),
    deliveryLimit: or('deliveryLimit', isCounted),
    timeToLive: or('timeToLive', orNull(whole(1))),
    delay: or('delay', whole(0)),
    maxSize: or('maxSize', orNull(whole(1))),
    deadLetters: or('deadLetters', isFlag),
    keepDeadLetters: or('keepDeadLetters', orNull(isCounted)),
    keepDeadLettersFor: or('keepDeadLettersFor', orNull(whole(1))),
    keepCompleted: or('keepCompleted', orNull(isCounted)),
    keepCompletedFor: or('keepCompletedFor', orNull(whole(1))),
    concurrency: or('concurrency', orNull(isCounted)),
    rateLimit: or('rateLimit', orNull(isRate)),
    groupConcurrency: or('groupConcurrency', orNull(isCounted)),
    groupRateLimit: or('groupRateLimit', orNull(isRate)),
    retryDelays: or('retryDelays', (value) => Array.isArray(value) && value.every(whole(0))),
    endpoint: or(
      'endpoint',
      orNull((value) => typeof value === 'string'),
    ),
    events: or('events', isFlag),
  }
}

function whole(least: number, most = Number.MAX_SAFE_INTEGER): (value: unknown) => boolean {
  return (value) => Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most
}

const isCounted = whole(1, MOST_COUNTED)

function isRate(value: unknown): boolean {
  const { max, perMs, ...more } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  return isCounted(max) && whole(1, MOST_RATE_MS)(perMs) && Object.keys(more).length === 0
}

function orNull(is: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => value === null || is(value)
}

/** How many recent changes a topic keeps for events. */
const KEPT_EVENTS = 10_000

/** What the topic's queue has of the settings: `null` for what it does not have. */
export function queueSettingsOf(settings: TopicSettings): Omit<ReliableQueueConfig, 'changes'> {
  const { shards: _shards, retryDelays: _retryDelays, endpoint: _endpoint, events: _events, ...config } = settings
  return config
}

/** What the topic's queue keeps for events. With a journal, the journal decides. */
export function changesOf({ events }: TopicSettings): ReliableQueueConfig['changes'] {
  return events && { keep: 'recent', maxLength: KEPT_EVENTS }
}

/** How long a message waits after delivery `attempt`, which counts from 1. */
export function retryDelayOf({ retryDelays }: { readonly retryDelays: readonly number[] }, attempt: number): number {
  return retryDelays[Math.min(attempt, retryDelays.length) - 1] ?? 0
}
