import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { ConnectionError } from 'redelayed'
import type { ScriptRunner } from './endpoint-gate.js'
import { endpointRelease } from './scripts/generated.js'

/** The commands of an ioredis client that a lock sends. */
export interface LockCommands extends Pick<ScriptRunner, 'eval'> {
  set(key: string, value: string, px: 'PX', ms: number, nx: 'NX'): Promise<unknown>
}

/** So long an instance that died keeps the others from changing an endpoint. */
const LOCK_MS = 10_000
/** What was read longer ago is not written any more: the time of the lock could end before the write arrives. */
const FRESH_MS = 5_000
const MOST_WAIT_MS = 15_000
const LOOK_MS = 20

/** One change of an endpoint at a time, of all instances: so none writes over what another one has written since it read. */
export class Exclusive {
  readonly #redis: LockCommands

  constructor(redis: LockCommands) {
    this.#redis = redis
  }

  /** @param work calls `assertFresh` before it writes @throws ConnectionError another one has been changing it for too long, or this one took too long */
  async run<T>(endpoint: string, work: (assertFresh: () => void) => Promise<T>): Promise<T> {
    const key = `redelayed:service:endpoint-lock:{${endpoint}}`
    const token = randomBytes(12).toString('base64url')
    const startedAt = performance.now()
    let askedAt = startedAt
    while ((await this.#redis.set(key, token, 'PX', LOCK_MS, 'NX')) !== 'OK') {
      if (performance.now() - startedAt > MOST_WAIT_MS)
        throw new ConnectionError('the endpoint is being changed all the time', 'not-applied')
      await pause(LOOK_MS * (1 + Math.random()))
      askedAt = performance.now()
    }
    try {
      return await work(() => {
        if (performance.now() - askedAt > FRESH_MS)
          throw new ConnectionError('Redis took too long for a change of an endpoint', 'not-applied')
      })
    } finally {
      // if it stays, it ends by itself
      await this.#redis.eval(endpointRelease.source, 1, key, token).catch(() => undefined)
    }
  }
}
