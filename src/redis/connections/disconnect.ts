import { SentinelConnector, type Redis } from 'ioredis'
import { lastErrorOf } from './last-error.js'

/** How long a server may take to answer the last commands. */
export const QUIT_TIMEOUT_MS = 2_000

/** Disconnects, unless the connection has ended: then ioredis would set a timer of two seconds that nothing clears. */
export function disconnect(redis: Redis): void {
  if (redis.status === 'end') return
  // ioredis listens for one error only, and an aborted TLS handshake emits two, of which the second would end the process
  streamOf(redis)?.on('error', () => {})
  redis.disconnect()
}

/** Disconnects from a peer that may have disappeared, without the two seconds that ioredis would wait for its end of the stream. */
export function abandon(redis: Redis): void {
  disconnect(redis)
  streamOf(redis)?.destroy()
}

/** The stream of a client; undefined before it is opened. */
function streamOf(redis: Redis): Redis['stream'] | undefined {
  return redis.stream
}

/** Makes a client that ioredis itself creates and ends disconnect as `disconnect` does. */
export function leaveQuietly(redis: Redis): Redis {
  const leave = redis.disconnect.bind(redis)
  redis.disconnect = (reconnect) => {
    if (redis.status !== 'end') leave(reconnect)
  }
  return redis
}

/** Makes a connection to a sentinel say why it broke. */
function sayingWhy(redis: Redis): Redis {
  const whyOf = lastErrorOf(redis)
  const own = redis as unknown as { sentinel: (...args: unknown[]) => Promise<unknown> }
  const sentinel = own.sentinel.bind(redis)
  own.sentinel = async (...args) => {
    try {
      return await sentinel(...args)
    } catch (thrown) {
      throw thrown instanceof Error ? whyOf(thrown) : thrown
    }
  }
  return redis
}

/** A private method of ioredis, which a version may lack. */
interface AsksSentinels {
  connectToSentinel?(...args: unknown[]): Redis
}

/** Disconnects quietly from sentinels that refused, and never uses a sentinel, or a server without an `INFO`, as the master. */
export class QuietSentinelConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as ConstructorParameters<typeof SentinelConnector>[0])
    const self = this as unknown as AsksSentinels
    const connect = self.connectToSentinel?.bind(this)
    if (connect !== undefined) self.connectToSentinel = (...args) => sayingWhy(leaveQuietly(connect(...args)))
  }

  /**
   * Also refuses a sentinel: ioredis compares only the role, which a sentinel does not have. Of an `INFO` that is nil, it would read the
   * role in a callback, where an error ends the process.
   */
  override check(info: { role?: string; redis_mode?: string } | null): boolean {
    return (
      super.check(typeof info === 'object' && info !== null ? info : { role: 'unknown' }) &&
      info?.redis_mode !== 'sentinel'
    )
  }
}
