import type { ReliableQueueConfig } from 'redelayed'
import { MAX_VISIBILITY_MS } from './visibility.js'

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
  /** How long a message waits after a negative acknowledgement without a delay, after its first, second … delivery; the last one repeats. */
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
    deliveryLimit: or('deliveryLimit', whole(1, 1_000_000)),
    timeToLive: or('timeToLive', orNull(whole(1))),
    delay: or('delay', whole(0)),
    maxSize: or('maxSize', orNull(whole(1))),
    deadLetters: or('deadLetters', isFlag),
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

function orNull(is: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => value === null || is(value)
}

/** How many recent changes a topic keeps for events. */
const KEPT_EVENTS = 10_000

/** The configuration of the topic's queue. With a journal, the journal decides which changes are kept. */
export function queueConfigOf(settings: TopicSettings, hasJournal: boolean): ReliableQueueConfig {
  const { visibilityTimeout, deliveryLimit, timeToLive, delay, maxSize, deadLetters, events } = settings
  const config = { visibilityTimeout, deliveryLimit, timeToLive, delay, maxSize, deadLetters }
  return hasJournal ? config : { ...config, changes: events && { keep: 'recent', maxLength: KEPT_EVENTS } }
}

/** How long a message waits after delivery `attempt`, which counts from 1. */
export function retryDelayOf({ retryDelays }: { readonly retryDelays: readonly number[] }, attempt: number): number {
  return retryDelays[Math.min(attempt, retryDelays.length) - 1] ?? 0
}
