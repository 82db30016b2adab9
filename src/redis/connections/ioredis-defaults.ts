import type { RedisOptions } from 'ioredis'
import { QuietSentinelConnector } from './disconnect.js'

/** ioredis's own limits: a command that it gives up may still take elements at the server. */
export const LIMITS = {
  commandTimeout: undefined,
  socketTimeout: undefined,
  blockingTimeout: undefined,
} satisfies RedisOptions

/** What every client of ours must have, whatever the user's options say. */
export const OVERRIDES = {
  lazyConnect: true,
  keyPrefix: '',
  retryStrategy: null,
  replyMapping: 'legacy',
  readOnly: false,
  enableOfflineQueue: false,
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: null,
  reconnectOnError: null,
  enableAutoPipelining: false,
  ...LIMITS,
  // a server that loads its data is asked again soon, and no timer of ten seconds outlives a shutdown
  maxLoadingRetryTime: 500,
} satisfies RedisOptions

/**
 * For clients that ask sentinels for the master. ioredis asks them one after the other and would wait for a silent one for ever; so
 * all of them can be asked while a connection is opened, and the master has its share.
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
