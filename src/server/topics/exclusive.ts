import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { ConnectionError } from 'redelayed'
import { keepLock, limitLock, releaseLock } from './scripts/generated.js'

/** The commands of an ioredis client that a lock sends. */
export interface LockCommands {
  eval(source: string, keys: number, ...keysAndArgs: (string | number)[]): Promise<unknown>
  set(key: string, value: string, px: 'PX', ms: number, nx: 'NX'): Promise<unknown>
}

/** What work under a lock calls before it writes. @throws ConnectionError the lock may be another one's by now */
export type AssertFresh = (outcome?: ConnectionError['outcome']) => void

/** So long an instance that died keeps the others from changing something. */
const LOCK_MS = 10_000
/** How often work that goes on asks for more time. */
const KEEP_MS = 2_000
/** Where Redis has confirmed the lock longer ago nothing is written any more: its time could end before the write arrives. */
const FRESH_MS = 5_000
const MOST_WAIT_MS = 15_000
const LOOK_MS = 20

/** One change of an endpoint or a topic at a time, of all instances: so none writes over what another one has written since it read. */
export class Exclusive {
  readonly #redis: LockCommands
  readonly #what: 'endpoint' | 'topic'

  constructor(redis: LockCommands, what: 'endpoint' | 'topic') {
    this.#redis = redis
    this.#what = what
  }

  /** @throws ConnectionError another one has been changing it for too long, or this one took too long */
  async run<T>(name: string, work: (assertFresh: AssertFresh) => Promise<T>): Promise<T> {
    const done = await this.tryRun(name, work, MOST_WAIT_MS)
    if (done === undefined) throw new ConnectionError(`the ${this.#what} is being changed all the time`, 'not-applied')
    return done.result
  }

  /** `undefined` where others have been changing it for so long; then nothing was done. */
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
      // one that an instance has set ends by then; what a stranger has set may have no end
      await this.#redis.eval(limitLock.source, 1, key, LOCK_MS)
      if (performance.now() - startedAt >= waitMs) return undefined
      await pause(LOOK_MS * (1 + Math.random()))
      askedAt = performance.now()
    }
    const keeping = setInterval(() => {
      const at = performance.now()
      this.#redis.eval(keepLock.source, 1, key, token, LOCK_MS).then(
        (kept) => void (kept === 1 && (askedAt = at)),
        () => undefined, // then it is soon too old to write
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
      // if it stays, it ends by itself
      await this.#redis.eval(releaseLock.source, 1, key, token).catch(() => undefined)
    }
  }
}
