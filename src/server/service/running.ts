import type { OwnRedis } from './own-redis.js'

export interface Service {
  /** The URL that it listens at: `http://127.0.0.1:8080`. */
  readonly url: string
  /** The first key, if this start has created it. It is stored nowhere. */
  readonly madeKey: string | undefined
  readonly keysPath: string
  /** The Redis server that the service started itself, if any. */
  readonly ownRedis: Pick<OwnRedis, 'what' | 'isDurable'> | undefined
  /** A description of the journal, if there is one, without secrets. */
  readonly journal: string | undefined
  /** Rejects when the service cannot go on. */
  readonly failed: Promise<never>
  /** Answers waiting requests, gives running ones `shutdownTimeout`, and closes everything. */
  close(): Promise<void>
}
