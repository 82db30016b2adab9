import type { OwnRedis } from './own-redis.js'

export interface Service {
  /** Where it listens: `http://127.0.0.1:8080`. */
  readonly url: string
  /** The first key, where this start has made it. It is nowhere else. */
  readonly madeKey: string | undefined
  readonly keysPath: string
  /** The Redis of its own, if it has one. */
  readonly ownRedis: Pick<OwnRedis, 'what' | 'isDurable'> | undefined
  /** What the journal is, if there is one, without what may be secret. */
  readonly journal: string | undefined
  /** Rejects when the service cannot go on. */
  readonly failed: Promise<never>
  /** Answers what waits, ends what runs within `shutdownTimeout`, and closes everything. */
  close(): Promise<void>
}
