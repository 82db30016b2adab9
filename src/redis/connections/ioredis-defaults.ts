import type { RedisOptions } from 'ioredis'
import { QuietSentinelConnector } from './disconnect.js'

/** ioredis's own limits, which are removed: a command that it gives up may still pop elements at the server. */
export const LIMITS = {
  commandTimeout: undefined,
  socketTimeout: undefined,
  blockingTimeout: undefined,
} satisfies RedisOptions

/** The options of every client of ours, which override the user's. */
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
  // ask a server that loads its data again soon, and leave no timer of ten seconds after a shutdown
  maxLoadingRetryTime: 500,
} satisfies RedisOptions

/**
 * For clients that ask sentinels for the master. ioredis asks them one after the other and would wait for a silent one for ever. With this limit
 * it can ask all of them while a connection is opened, and has time left for the master.
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
