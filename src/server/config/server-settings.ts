import type { JournalMode } from './journal-options.js'
import {
  duration,
  journalUrl,
  networkList,
  oneOf,
  onOff,
  proxyUrl,
  sentinels,
  size,
  text,
  url,
  urls,
  whole,
  wholes,
  type Setting,
} from './setting.js'

const REDIS = ['redis', 'rediss']
const MiB = 1_048_576

/**
 * Every setting of the service. `maxMessageBytes` is the flag `--max-message-bytes`, the variable `REDELAYED_MAX_MESSAGE_BYTES` and the
 * line `max-message-bytes:` of the configuration file.
 */
export const SETTINGS = {
  host: text('The address to listen on. 0.0.0.0 or :: for all.', '<address>', '127.0.0.1'),
  port: whole('The port to listen on; 0 for any free one.', 8080, 0, 65_535),
  redis: url('The Redis of the queues. Default: REDIS_URL, else a server of its own.', REDIS, undefined),
  redisCluster: urls('Some nodes of a Redis Cluster, instead of --redis.', REDIS),
  redisSentinels: sentinels(
    'Sentinels to ask for the master. The host in --redis is then the name of the master.',
    REDIS,
  ),
  journal: journalUrl(
    'The SQL database that has every message too: sqlite:<path>, postgres://… or mysql://…; off for none. Default: journal.db in --data-dir with a Redis of its own, else off.',
  ),
  journalMode: oneOf<JournalMode>(
    'sync: a push is answered when SQL has it; async: SQL follows.',
    ['sync', 'async', 'off'],
    'sync',
  ),
  journalRetention: duration(
    'How long the journal keeps a message that has ended, and its history.',
    604_800_000,
    60_000,
    315_360_000_000,
  ),
  dataDir: text('The folder of the keys file, and of the data of a Redis of its own.', '<path>', './redelayed-data'),
  apiKeys: text('The file with the hashes of the API keys. Default: api-keys in --data-dir.', '<path>', undefined),
  ids: oneOf('The ids of messages that are pushed without one.', ['uuid7', 'snowflake'], 'uuid7'),
  createTopics: onOff('Whether a push or receive creates a missing topic.', true),
  maxTopics: whole('The most topics.', 10_000, 1, 1_000_000),
  maxMessageBytes: size('The largest body of a message.', MiB, 1, 16 * MiB),
  maxBatchBytes: size('The largest body of a batch.', 16 * MiB, 1, 256 * MiB),
  maxBatch: whole('The most messages of a batch.', 1_000, 1, 10_000),
  maxBodiesBytes: size(
    'The most bytes of the bodies of all requests under way together; more is a 503.',
    256 * MiB,
    4 * MiB,
    65_536 * MiB,
  ),
  maxAnswersBytes: size(
    'The most bytes of the large answers under way together; a request for one more is a 503.',
    256 * MiB,
    16 * MiB,
    65_536 * MiB,
  ),
  maxFanOut: whole('The most topics that one request can push a message to.', 100, 1, 1_000),
  idempotencyPeriod: duration('How long an idempotency key is known.', 86_400_000, 1_000, 2_592_000_000),
  maxIdempotencyKeys: whole('The most idempotency keys known at once.', 1_000_000, 1, 1_000_000_000),
  maxConnections: whole('The most connections of clients; more get a 503 and are closed.', 10_000, 1, 1_000_000),
  maxWait: duration('The longest wait of a receive.', 60_000, 0, 600_000),
  maxEventStreams: whole('The most clients of /v1/events.', 100, 0, 10_000),
  webhookPorts: wholes('The ports that webhooks may go to.', [80, 443], 1, 65_535),
  webhookNetworks: networkList('Non-public networks that webhooks may go to.'),
  webhookHttp: onOff('Whether webhooks may go to http: too, not only to https:.', true),
  webhookProxy: proxyUrl(
    'An HTTP proxy that webhooks go through. It resolves the names, and has to refuse internal addresses.',
  ),
  maxEndpoints: whole('The most endpoints of webhooks.', 1_000, 0, 100_000),
  legacyRoutes: onOff(
    'Whether to serve also the paths of another delay service: /push, /delete, /reStore and /get.',
    false,
  ),
  ui: onOff('Whether to serve the page for operators at /ui.', true),
  readOnly: onOff(
    'Only show the queues that libraries have in the Redis of --redis: no topics, no webhooks, and no writes to it.',
    false,
  ),
  rateLimit: whole('The most requests a second of each key on this instance; 0 for no limit.', 0, 0, 1_000_000),
  requestTimeout: duration('How long a client may take to send a request.', 30_000, 1_000, 600_000),
  shutdownDelay: duration('How long /readyz is a 503 before the service stops, so that proxies see it.', 0, 0, 600_000),
  shutdownTimeout: duration('How long requests have to end when the service stops.', 10_000, 0, 600_000),
  logLevel: oneOf('How much is logged.', ['fatal', 'error', 'warn', 'info', 'debug', 'silent'], 'info'),
} as const satisfies Record<string, Setting<unknown>>

export type SettingName = keyof typeof SETTINGS

/** The settings with their values. */
export type ServerSettings = {
  readonly [K in SettingName]: (typeof SETTINGS)[K] extends Setting<infer T> ? T : never
}

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[]

/** The name of a setting in flags and files: `max-message-bytes`. */
export function flagOf(name: SettingName): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/** The name of a setting in the environment: `REDELAYED_MAX_MESSAGE_BYTES`. */
export function variableOf(name: SettingName): string {
  return `REDELAYED_${flagOf(name).replaceAll('-', '_').toUpperCase()}`
}

/** The help: a line for each setting. */
export function helpLines(): string[] {
  return SETTING_NAMES.map((name) => {
    const { form, about, initial } = SETTINGS[name]
    const isSet = initial !== undefined && !Array.isArray(initial)
    return `  ${`--${flagOf(name)} ${form}`.padEnd(34)} ${about}${isSet ? ` Default ${String(initial)}.` : ''}`
  })
}
