import { createHmac, hash as digestOf, randomBytes, timingSafeEqual } from 'node:crypto'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { RedelayedError } from 'redelayed'
import type { SessionOf } from '../console/sessions.js'

export const SCOPES = ['push', 'consume', 'admin', 'read'] as const
export type Scope = (typeof SCOPES)[number]

/** A key that is allowed in, without its secret. */
export interface ApiKey {
  readonly id: string
  readonly scopes: ReadonlySet<Scope>
  /** Names of topics; one that ends with `*` stands for all that begin so. */
  readonly topics: readonly string[]
  /** It does not see what is in messages, unless it may receive them or administer. */
  readonly hidePayloads: boolean
}

interface Stored extends ApiKey {
  readonly hash: Buffer
}

const PREFIX = 'rdk'
const HIDE = 'hide-payloads'
/** How often the file is looked at, at most. */
const LOOK_MS = 1_000

/** May the key have to do with this topic? */
export function covers({ topics }: ApiKey, topic: string): boolean {
  return topics.some((each) => (each.endsWith('*') ? topic.startsWith(each.slice(0, -1)) : each === topic))
}

/** Whether a key sees messages without their bodies and headers. */
export function isBlind({ hidePayloads, scopes }: ApiKey): boolean {
  return hidePayloads && !scopes.has('consume') && !scopes.has('admin')
}

export interface MadeKey {
  /** What the client sends; it is nowhere else. */
  readonly key: string
  /** For the file. */
  readonly line: string
}

export function makeKey(
  scopes: readonly Scope[] = SCOPES,
  topics: readonly string[] = ['*'],
  hidePayloads = false,
): MadeKey {
  const id = randomBytes(6).toString('hex')
  const key = `${PREFIX}_${id}_${randomBytes(32).toString('base64url')}`
  return {
    key,
    line: `${id} ${hashOf(key).toString('hex')} ${scopes.join(',')} ${topics.join(',')}${hidePayloads ? ` ${HIDE}` : ''}`,
  }
}

/**
 * The keys that are allowed in: a file with a line for each, `<id> <SHA-256 of the key> <scopes> <topics>`. It is read again when it has changed, so
 * keys are added and removed while the service runs. The keys are random, so a fast hash is enough.
 */
export class ApiKeys {
  readonly path: string
  readonly #onError: (error: unknown) => void
  #keys: ReadonlyMap<string, Stored> = new Map()
  #version = ''
  #lookedAt = -Infinity
  /** What was wrong with the file at the last look. */
  #problem: string | undefined

  /** @throws RedelayedError the file cannot be read, or has a line that is no key */
  constructor(path: string, onError: (error: unknown) => void) {
    this.path = path
    this.#onError = onError
    this.#read()
  }

  get size(): number {
    return this.#keys.size
  }

  /** The key of a text that a client has sent. */
  find(given: string): ApiKey | undefined {
    if (performance.now() - this.#lookedAt > LOOK_MS) this.#look()
    const [, id] = /^rdk_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/.exec(given) ?? []
    if (id === undefined) return undefined
    // a key works from the moment when its line is there, and not only from the next look
    if (!this.#keys.has(id)) this.#look()
    const stored = this.#keys.get(id)
    return stored !== undefined && timingSafeEqual(stored.hash, hashOf(given)) ? stored : undefined
  }

  /** The key of a session; `undefined` when it was removed, its id is that of another secret now, or a stranger made the session. */
  ofSession({ keyId, proof, token }: SessionOf): ApiKey | undefined {
    if (performance.now() - this.#lookedAt > LOOK_MS) this.#look()
    const expected = this.proofOf(keyId, token)
    if (expected === undefined || !timingSafeEqual(hashOf(expected), hashOf(proof))) return undefined
    return this.#keys.get(keyId)
  }

  /** What a session keeps of the secret of a key. It is for one token, so that one who reads it in Redis can make no other session of it. */
  proofOf(keyId: string, token: string): string | undefined {
    const stored = this.#keys.get(keyId)
    return stored && createHmac('sha256', stored.hash).update(token).digest('base64url')
  }

  /** A mistake in a file that was changed, and a file that is not there, keep the keys of before; each is reported once, not at every look. */
  #look(): void {
    try {
      this.#read()
      this.#problem = undefined
    } catch (thrown) {
      const problem = String(thrown)
      if (problem !== this.#problem) this.#onError(thrown)
      this.#problem = problem
    }
  }

  #read(): void {
    this.#lookedAt = performance.now()
    const { mtimeMs, size, ino } = statSync(this.path)
    const version = `${mtimeMs} ${size} ${ino}`
    if (version === this.#version) return
    const text = readFileSync(this.path, 'utf8')
    // before its lines are read: a mistake in the file is reported once, however many requests come
    this.#version = version
    this.#keys = new Map(readLines(this.path, text).map((key) => [key.id, key]))
  }
}

/** Makes the file with one key that may do everything, where there is none; resolves with the key. */
export function makeKeysFile(path: string): string | undefined {
  const { key, line } = makeKey()
  const head =
    '# Keys of the HTTP API: <id> <SHA-256 of the key> <scopes> <topics>. Make one with: redelayed-server key'
  mkdirSync(dirname(path), { recursive: true })
  try {
    writeFileSync(path, `${head}\n${line}\n`, { mode: 0o600, flag: 'wx' })
    return key
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EEXIST') return undefined
    throw thrown
  }
}

function readLines(path: string, text: string): Stored[] {
  return text.split('\n').flatMap((line, at) => {
    const content = line.trim()
    if (content === '' || content.startsWith('#')) return []
    const form = /^([0-9a-f]{12}) ([0-9a-f]{64}) (\S+) (\S+)( hide-payloads)?$/.exec(content)
    const [, id = '', hash = '', scopes = '', topics = '', hide] = form ?? []
    const known = scopes.split(',').filter((each): each is Scope => SCOPES.some((scope) => scope === each))
    if (form === null || known.length !== scopes.split(',').length) {
      const expected = `<id> <hash> <scopes of ${SCOPES.join(', ')}> <topics>, perhaps ${HIDE}`
      throw new RedelayedError('ERR_API_KEYS', `${path}, line ${at + 1}: expected ${expected}`)
    }
    const rights = { scopes: new Set(known), topics: topics.split(','), hidePayloads: hide !== undefined }
    return [{ id, hash: Buffer.from(hash, 'hex'), ...rights }]
  })
}

function hashOf(key: string): Buffer {
  return digestOf('sha256', key, 'buffer')
}
