import type { ReliableQueueConfig } from 'redelayed'

/** What holds for a topic, on all instances. Durations are milliseconds. */
export interface TopicSettings {
  /** Over how many queues its messages are spread. It stays as it was made. */
  readonly shards: number
  /** How long a consumer has a message that it received. */
  readonly visibilityTimeout: number
  /** After so many deliveries a message is a dead letter. */
  readonly deliveryLimit: number
  /** Messages that no consumer handled so long after they were due are removed; `null`: never. */
  readonly timeToLive: number | null
  /** Of messages that say nothing of their own. */
  readonly delay: number
  /** How many messages there can be, of each shard; `null`: no limit. */
  readonly maxSize: number | null
  /** Whether messages that fail too often are kept as dead letters. */
  readonly deadLetters: boolean
  /** How long a message waits that was given back without a delay, after its first, second … delivery; the last one repeats. */
  readonly retryDelays: number[]
  /** The endpoint that gets its messages as webhooks; `null`: consumers receive them. */
  readonly endpoint: string | null
  /** Whether what happens to messages is kept for /v1/events. */
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

/** How many of the last changes a topic keeps for events. */
const KEPT_EVENTS = 10_000

/** What of it the queue keeps. A journal decides for itself which changes are kept. */
export function queueConfigOf(settings: TopicSettings, hasJournal: boolean): ReliableQueueConfig {
  const { visibilityTimeout, deliveryLimit, timeToLive, delay, maxSize, deadLetters, events } = settings
  const config = { visibilityTimeout, deliveryLimit, timeToLive, delay, maxSize, deadLetters }
  return hasJournal ? config : { ...config, changes: events && { keep: 'recent', maxLength: KEPT_EVENTS } }
}

/** How long a message waits after its delivery number `attempt`, from 1. */
export function retryDelayOf({ retryDelays }: TopicSettings, attempt: number): number {
  return retryDelays[Math.min(attempt, retryDelays.length) - 1] ?? 0
}
