import type { RedisOptions } from 'ioredis'
import { QuietSentinelConnector } from './disconnect.js'

/** Removes ioredis's own limits: a command that ioredis gives up may still pop elements at the server. */
export const LIMITS = {
  commandTimeout: undefined,
  socketTimeout: undefined,
  blockingTimeout: undefined,
} satisfies RedisOptions

/** The options of all clients of this package, which override the user's. */
export const OVERRIDES = {
  lazyConnect: true,
  keyPrefix: '',
  retryStrategy: null,
  replyMapping: 'legacy',
  stringNumbers: false,
  readOnly: false,
  enableOfflineQueue: false,
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: null,
  reconnectOnError: null,
  enableAutoPipelining: false,
  ...LIMITS,
  // retries a server that loads its data soon, and leaves no timer of ten seconds after a shutdown
  maxLoadingRetryTime: 500,
} satisfies RedisOptions

/**
 * The options of clients that ask sentinels for the master. ioredis asks them one after the other and would wait for a silent one for ever.
 * With this limit it can ask all of them while a connection is opened, and has time left for the master.
 */
export function sentinelOverrides(
  { sentinels, Connector = QuietSentinelConnector }: RedisOptions,
  connectTimeout: number,
): RedisOptions {
  if (!sentinels) return {}
  return {
    Connector,
    sentinelRetryStrategy: () => null,
    sentinelCommandTimeout: Math.max(1, Math.floor(connectTimeout / (sentinels.length + 1))),
  }
}
