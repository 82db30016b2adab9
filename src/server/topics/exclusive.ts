import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { ConnectionError } from 'redelayed'
import { keepLock, limitLock, releaseLock } from './scripts/generated.js'

/** The commands of an ioredis client that a lock sends. */
export interface LockCommands {
  eval(source: string, keys: number, ...keysAndArgs: (string | number)[]): Promise<unknown>
  set(key: string, value: string, px: 'PX', ms: number, nx: 'NX'): Promise<unknown>
}

/** Called by work under a lock before it writes. @throws ConnectionError another instance may have the lock by now */
export type AssertFresh = (outcome?: ConnectionError['outcome']) => void

/** The lifetime of a lock, for which an instance that died blocks the others. */
const LOCK_MS = 10_000
/** How often the lock is renewed during the work. */
const KEEP_MS = 2_000
/** If Redis has confirmed the lock longer ago, the work must not write: the lock could end before the write arrives. */
const FRESH_MS = 5_000
const MOST_WAIT_MS = 15_000
const LOOK_MS = 20

/** Lets only one instance at a time change an endpoint or a topic, so that none overwrites what another has written since it read. */
export class Exclusive {
  readonly #redis: LockCommands
  readonly #what: 'endpoint' | 'topic'

  constructor(redis: LockCommands, what: 'endpoint' | 'topic') {
    this.#redis = redis
    this.#what = what
  }

  /** @throws ConnectionError another request held the lock for too long, or this work took too long */
  async run<T>(name: string, work: (assertFresh: AssertFresh) => Promise<T>): Promise<T> {
    const done = await this.tryRun(name, work, MOST_WAIT_MS)
    if (done === undefined) throw new ConnectionError(`other requests kept this ${this.#what} busy`, 'not-applied')
    return done.result
  }

  /** `undefined` if others held the lock for `waitMs`; then nothing was done. */
  async tryRun<T>(
    name: string,
    work: (assertFresh: AssertFresh) => Promise<T>,
    waitMs = 0,
  ): Promise<{ readonly result: T } | undefined> {
    const key = `redelayed:service:${this.#what}-lock:{${name}}`
    const token = randomBytes(12).toString('base64url')
    const startedAt = performance.now()
    let askedAt = startedAt
    while ((await this.#redis.set(key, token, 'PX', LOCK_MS, 'NX')) !== 'OK') {
      // the lock of an instance ends by itself; one set by another program may not
      await this.#redis.eval(limitLock.source, 1, key, LOCK_MS)
      if (performance.now() - startedAt >= waitMs) return undefined
      await pause(LOOK_MS * (1 + Math.random()))
      askedAt = performance.now()
    }
    const keeping = setInterval(() => {
      const at = performance.now()
      this.#redis.eval(keepLock.source, 1, key, token, LOCK_MS).then(
        (kept) => void (kept === 1 && (askedAt = at)),
        () => undefined, // the lock soon is too old to write
      )
    }, KEEP_MS)
    try {
      const result = await work((outcome = 'not-applied') => {
        if (performance.now() - askedAt > FRESH_MS)
          throw new ConnectionError(`Redis took too long for a change of the ${this.#what}`, outcome)
      })
      return { result }
    } finally {
      clearInterval(keeping)
      // if that fails, the lock ends by itself
      await this.#redis.eval(releaseLock.source, 1, key, token).catch(() => undefined)
    }
  }
}
