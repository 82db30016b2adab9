import { SentinelConnector, type Redis } from 'ioredis'

/** How long a server may take to answer the last commands. */
export const QUIT_TIMEOUT_MS = 2_000

/** For a connection that has ended, ioredis would set a timer of two seconds that nothing clears. */
export function disconnect(redis: Redis): void {
  if (redis.status === 'end') return
  // ioredis listens for one error only, and an aborted TLS handshake emits two: the second would end the process
  streamOf(redis)?.on('error', () => {})
  redis.disconnect()
}

/** For a peer that may have disappeared: it never answers the end of the stream, and ioredis would wait two seconds. */
export function abandon(redis: Redis): void {
  disconnect(redis)
  streamOf(redis)?.destroy()
}

/** There is none before it is opened. */
function streamOf(redis: Redis): Redis['stream'] | undefined {
  return redis.stream
}

/** For clients that ioredis itself creates and disconnects: see `disconnect`. */
export function leaveQuietly(redis: Redis): Redis {
  const leave = redis.disconnect.bind(redis)
  redis.disconnect = (reconnect) => {
    if (redis.status !== 'end') leave(reconnect)
  }
  return redis
}

/** A private method of ioredis, which a version may lack. */
interface AsksSentinels {
  connectToSentinel?(...args: unknown[]): Redis
}

/** Disconnects quietly from sentinels that refused, and takes no sentinel for the master. */
export class QuietSentinelConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as ConstructorParameters<typeof SentinelConnector>[0])
    const self = this as unknown as AsksSentinels
    const connect = self.connectToSentinel?.bind(this)
    if (connect !== undefined) self.connectToSentinel = (...args) => leaveQuietly(connect(...args))
  }

  /** ioredis compares the role, which a sentinel does not have. */
  override check(info: { role?: string; redis_mode?: string }): boolean {
    return super.check(info) && info.redis_mode !== 'sentinel'
  }
}
