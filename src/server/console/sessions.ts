import { createHash, randomBytes } from 'node:crypto'

/** The commands of an ioredis client that this class sends. */
export interface SessionCommands {
  set(key: string, value: string, word: 'PX', ms: number): Promise<unknown>
  get(key: string): Promise<string | null>
  del(...keys: string[]): Promise<unknown>
  zadd(key: string, score: number, member: string): Promise<unknown>
  zrem(key: string, ...members: string[]): Promise<unknown>
  zcard(key: string): Promise<number>
  zrangebyscore(key: string, min: string, max: string, limit: 'LIMIT', from: number, count: number): Promise<string[]>
  pexpire(key: string, ms: number): Promise<unknown>
}

/** The owner of a session, and its proof. */
export interface SessionOf {
  readonly keyId: string
  readonly proof: string
  /** The token that the browser sent. */
  readonly token: string
}

export const SESSION_MS = 12 * 3_600_000
/** The most sessions of a key; one more ends the oldest. */
export const MOST_SESSIONS = 100
/** The most old sessions that one sign-in ends: another program can have added any number. */
const MOST_ENDED = 100
const PREFIX = 'redelayed:service:session:'
/** The prefix of a key's set of sessions: their hashes, and when they began. */
const ALL_PREFIX = 'redelayed:service:sessions:'
const TOKEN = /^[A-Za-z0-9_-]{43}$/

/** The sessions of the page, shared by all instances. Redis stores only the hash of the token that a browser sends. */
export class Sessions {
  readonly #redis: SessionCommands

  constructor(redis: SessionCommands) {
    this.#redis = redis
  }

  /** Resolves with the token for the browser. @param proofOf makes the key's proof for a token */
  async begin(keyId: string, proofOf: (token: string) => string): Promise<string> {
    const token = randomBytes(32).toString('base64url')
    await this.#redis.set(PREFIX + hashOf(token), `${keyId} ${proofOf(token)}`, 'PX', SESSION_MS)
    await this.#note(keyId, hashOf(token))
    return token
  }

  async find(token: string): Promise<SessionOf | undefined> {
    if (!TOKEN.test(token)) return undefined
    const [keyId, proof] = (await this.#redis.get(PREFIX + hashOf(token)))?.split(' ') ?? []
    return keyId === undefined || proof === undefined ? undefined : { keyId, proof, token }
  }

  async end(token: string): Promise<void> {
    const session = await this.find(token)
    if (session === undefined) return
    await this.#redis.del(PREFIX + hashOf(token))
    await this.#redis.zrem(ALL_PREFIX + session.keyId, hashOf(token))
  }

  /** Adds a session to those of its key, and ends the oldest if there are too many. */
  async #note(keyId: string, hash: string): Promise<void> {
    const all = ALL_PREFIX + keyId
    // another program has put another type there: replace it
    await this.#redis.zadd(all, Date.now(), hash).catch(async (error: unknown) => {
      if (!(error instanceof Error && error.message.startsWith('WRONGTYPE'))) throw error
      await this.#redis.del(all)
      await this.#redis.zadd(all, Date.now(), hash)
    })
    await this.#redis.pexpire(all, SESSION_MS)
    const tooMany = Math.min((await this.#redis.zcard(all)) - MOST_SESSIONS, MOST_ENDED)
    if (tooMany <= 0) return
    const old = await this.#redis.zrangebyscore(all, '-inf', '+inf', 'LIMIT', 0, tooMany)
    for (const each of old) await this.#redis.del(PREFIX + each) // each is in a slot of its own
    await this.#redis.zrem(all, ...old)
  }
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url')
}
