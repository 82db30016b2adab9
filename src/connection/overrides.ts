import type { RedisOptions } from 'ioredis'

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
} satisfies RedisOptions
