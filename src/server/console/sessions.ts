import { createHash, randomBytes } from 'node:crypto'

/** The commands of an ioredis client that are needed. */
export interface SessionCommands {
  set(key: string, value: string, word: 'PX', ms: number): Promise<unknown>
  get(key: string): Promise<string | null>
  del(key: string): Promise<unknown>
}

/** Whose session it is, and what proves it. */
export interface SessionOf {
  readonly keyId: string
  readonly proof: string
  /** What the browser has sent. */
  readonly token: string
}

export const SESSION_MS = 12 * 3_600_000
const PREFIX = 'redelayed:service:session:'
const TOKEN = /^[A-Za-z0-9_-]{43}$/

/** The sessions of people who signed in at the page, for all instances. Redis has only the hash of what a browser sends. */
export class Sessions {
  readonly #redis: SessionCommands

  constructor(redis: SessionCommands) {
    this.#redis = redis
  }

  /** Resolves with what the browser is to send. @param proofOf that of the key for a session */
  async begin(keyId: string, proofOf: (token: string) => string): Promise<string> {
    const token = randomBytes(32).toString('base64url')
    await this.#redis.set(keyOf(token), `${keyId} ${proofOf(token)}`, 'PX', SESSION_MS)
    return token
  }

  async find(token: string): Promise<SessionOf | undefined> {
    if (!TOKEN.test(token)) return undefined
    const [keyId, proof] = (await this.#redis.get(keyOf(token)))?.split(' ') ?? []
    return keyId === undefined || proof === undefined ? undefined : { keyId, proof, token }
  }

  async end(token: string): Promise<void> {
    if (TOKEN.test(token)) await this.#redis.del(keyOf(token))
  }
}

function keyOf(token: string): string {
  return PREFIX + createHash('sha256').update(token).digest('base64url')
}
