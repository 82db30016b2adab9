import type { Redis } from 'ioredis'
import { ConnectionError, UnsupportedServerError } from '../../errors.js'
import { atMost } from '../../timing/pause.js'

const OLDEST_MAJOR = 5

/**
 * Refuses sentinels and servers older than 5.0, and resolves with their INFO. Without the right to call INFO the version is not checked.
 */
export async function assertVersion(redis: Redis): Promise<string | undefined> {
  let info: string
  try {
    info = await redis.info('server')
  } catch (error) {
    if (error instanceof Error && error.name === 'ReplyError') return undefined
    throw error
  }
  if (/^redis_mode:sentinel/m.test(info)) {
    throw new ConnectionError(
      'this is a sentinel and not a Redis: give its address in `sentinels`, with `name`',
      'not-applied',
    )
  }
  const version = /^redis_version:(\d+)\.(\S+)/m.exec(info)
  if (version !== null && Number(version[1]) < OLDEST_MAJOR) {
    throw new UnsupportedServerError(`Redis ${version[1]}.${version[2]} is too old; 5.0 or later is needed`)
  }
  return info
}

/** The role in the server's INFO: `master` or `slave`. */
export function roleIn(info: string): string {
  return /^role:(\w+)/m.exec(info)?.[1] ?? 'server without a role'
}

/** The `run_id` in INFO, which each server process has for itself. */
export function runIdIn(info: string | undefined): string | undefined {
  return info === undefined ? undefined : /^run_id:(\w+)/m.exec(info)?.[1]
}

/** The least time between two questions of a client that is about to refuse a reliable queue, and the longest wait for an answer. */
const ASK_AGAIN_MS = 1_000

/**
 * Whether the server is too old for reliable queues. The answer can be that of a node that has been replaced or upgraded since, or can have
 * been wrong; so the client asks again before it refuses.
 */
export class ServerAge {
  readonly #ask: () => Promise<string | undefined>
  readonly #now: () => number
  #isTooOld = false
  #askedAt = -Infinity
  #asking: Promise<void> = Promise.resolve()
  /** How many answers there were. */
  #answers = 0

  /** `ask` resolves with the INFO of a server, or `undefined` for an unknown one. */
  constructor(ask: () => Promise<string | undefined>, now = (): number => performance.now()) {
    this.#ask = ask
    this.#now = now
  }

  /** The server has answered with this INFO. */
  learn(info: string | undefined): void {
    this.#answers++
    this.#isTooOld = isBefore62(info)
  }

  /** Whether it was too old by its last answer. */
  get seemsTooOld(): boolean {
    return this.#isTooOld
  }

  /** Whether it still is. Asks at most once a second; if it does not answer within a second, or within `mostMs`, its last answer holds. */
  async isTooOld(mostMs = ASK_AGAIN_MS): Promise<boolean> {
    if (this.#isTooOld && this.#now() - this.#askedAt > ASK_AGAIN_MS) {
      this.#askedAt = this.#now()
      const answers = this.#answers
      this.#asking = this.#ask().then(
        (info) => {
          // a server that refuses to answer may be the same; one that answers late may have been replaced
          if (info !== undefined && answers === this.#answers) this.learn(info)
        },
        () => undefined,
      )
    }
    if (this.#isTooOld) await atMost(Math.min(ASK_AGAIN_MS, mostMs), this.#asking)
    return this.#isTooOld
  }
}

function isBefore62(info: string | undefined): boolean {
  const [, major, minor] = /^redis_version:(\d+)\.(\d+)/m.exec(info ?? '') ?? []
  return major !== undefined && Number(major) * 100 + Number(minor) < 602
}

/** The error of a reliable queue on a server older than 6.2. */
export function tooOldForReliable(): UnsupportedServerError {
  return new UnsupportedServerError('a reliable queue needs Redis 6.2 or later, or Valkey; nothing was sent')
}
