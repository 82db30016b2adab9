import { Redis, type RedisOptions } from 'ioredis'

const SWITCHED = '+switch-master'

interface Address {
  readonly host: string
  readonly port: string
}

/**
 * Ends the connection to a master that the sentinels have replaced, so that the client asks them again. Without it a client stays for about
 * 10 s at an old master that is still alive: until the sentinels demote it, that master takes writes and loses them.
 *
 * The detector of ioredis does the same, but prints an error to stderr each time that a sentinel cannot be reached.
 *
 * @param options how to connect to each sentinel
 * @returns ends its connections. A client that is disconnected while it waits for its next attempt has no event from which this could
 *   follow
 */
export function followMaster(redis: Redis, name: string, sentinels: readonly RedisOptions[]): () => void {
  let announced: Address | undefined
  const leave = (): void => {
    if (announced !== undefined && !isAt(redis, announced)) redis.stream.destroy()
    announced = undefined
  }
  redis.on('connect', leave)
  const watching = sentinels.map((options) => {
    const sentinel = new Redis({
      ...options,
      enableReadyCheck: false,
      maxRetriesPerRequest: null, // the subscription waits until the sentinel is there
      retryStrategy: (attempt) => Math.min(attempt * 100, 1_000),
    })
    sentinel.on('error', () => undefined) // a sentinel may be away, because there are others
    sentinel.on('message', (_channel, message: string) => {
      const [group, , , host = '', port = ''] = message.split(' ')
      if (group !== name) return
      announced = { host, port }
      // a client that ends while it asks the sentinels never connects again: it then leaves when it is connected
      if (redis.status === 'connect' || redis.status === 'ready') leave()
    })
    sentinel.subscribe(SWITCHED).catch(() => undefined) // it ended, or the user lacks the right
    return sentinel
  })
  return () => {
    for (const sentinel of watching) sentinel.disconnect()
  }
}

/** Whether a client is connected to an address; a name instead of an address counts as another one. */
function isAt({ stream }: Redis, { host, port }: Address): boolean {
  return stream.remoteAddress === host && String(stream.remotePort) === port
}

/** Asks one sentinel after the other for the address of a master. */
export async function masterAddress(name: string, sentinels: readonly RedisOptions[]): Promise<Address> {
  let cause: unknown
  for (const options of sentinels) {
    const sentinel = new Redis({ ...options, enableReadyCheck: false, lazyConnect: true, retryStrategy: () => null })
    sentinel.on('error', () => undefined) // the command rejects, too
    try {
      const found = await sentinel.call('SENTINEL', 'get-master-addr-by-name', name)
      if (Array.isArray(found)) return { host: String(found[0]), port: String(found[1]) }
    } catch (thrown) {
      cause = thrown
    } finally {
      sentinel.disconnect()
    }
  }
  throw new Error('no sentinel knows the master', { cause })
}
