import { Cluster, Redis, type RedisOptions } from 'ioredis'
import type { ClientOptions } from '../../../src/index.js'
import { keysOf } from './contents.js'

/** A message that is not with all replicas by then does not count. */
const WAIT_MS = 500
const PROBE_MS = 1_000
/** ioredis forgets what it is not to send again when the connection breaks. */
const FORGOTTEN_MS = 2_000

interface Asked {
  readonly id: string
  readonly resolve: (safe: boolean) => void
}

/**
 * Finds whether replicas, too, have the messages that were added: `add` itself waits for the master only. One that is seen
 * at a server is in what a later `WAIT` there waits for, whichever server it is.
 */
export class Witness {
  readonly #redis: Redis | Cluster
  readonly #messages: string
  readonly #probe: string
  readonly #replicas: number
  #asked: Asked[] = []
  #isRunning = false

  constructor(client: ClientOptions, queue: string, replicas: number) {
    this.#messages = keysOf(queue).messages
    this.#probe = `redelayed:probe:{${queue}}` // of the slot of the queue
    this.#replicas = replicas
    const options: RedisOptions = {
      // a pipeline whose parts went over two connections would prove nothing
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 1,
      reconnectOnError: ({ message }) => message.startsWith('READONLY'),
    }
    this.#redis =
      client.cluster === undefined
        ? new Redis({ sentinels: [...(client.sentinels ?? [])], name: client.name ?? '', ...options })
        : new Cluster([...client.cluster] as { host: string; port: number }[], {
            redisOptions: { ...options, socketTimeout: FORGOTTEN_MS },
          })
    this.#redis.on('error', () => {}) // the calls reject with it
  }

  /** False where it is not known, also of one that was handled meanwhile. */
  isSafe(id: string): Promise<boolean> {
    return new Promise((resolve) => {
      this.#asked.push({ id, resolve })
      if (!this.#isRunning) void this.#run()
    })
  }

  close(): void {
    this.#redis.disconnect()
  }

  /** All that were asked for meanwhile share a wait. */
  async #run(): Promise<void> {
    this.#isRunning = true
    while (this.#asked.length > 0) {
      const asked = this.#asked
      this.#asked = []
      const there = await this.#look(asked.map(({ id }) => id)).catch(() => [])
      asked.forEach(({ resolve }, at) => resolve(there[at] === true))
    }
    this.#isRunning = false
  }

  async #look(ids: readonly string[]): Promise<boolean[]> {
    const looking = this.#redis
      .pipeline()
      .hmget(this.#messages, ...ids)
      .set(this.#probe, '1', 'PX', PROBE_MS)
      .wait(this.#replicas, WAIT_MS)
      .exec()
    const looked = await before(FORGOTTEN_MS, looking)
    const [records, written, waited] = looked ?? []
    if (records?.[0] !== null || written?.[0] !== null || waited?.[0] !== null) return []
    if (Number(waited[1]) < this.#replicas) return []
    return (records[1] as (string | null)[]).map((record) => record !== null)
  }
}

async function before<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), ms)))
  try {
    return await Promise.race([promise, over])
  } finally {
    clearTimeout(timer)
  }
}
