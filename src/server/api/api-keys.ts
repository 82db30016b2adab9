import { createHmac, hash as digestOf, randomBytes, timingSafeEqual } from 'node:crypto'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { RedelayedError } from 'redelayed'
import type { SessionOf } from '../console/sessions.js'

export const SCOPES = ['push', 'consume', 'admin', 'read'] as const
export type Scope = (typeof SCOPES)[number]

/** An accepted key, without its secret. */
export interface ApiKey {
  readonly id: string
  readonly scopes: ReadonlySet<Scope>
  /** Names of topics; one that ends with `*` is a prefix. */
  readonly topics: readonly string[]
  /** Hides the contents of messages, unless the key has the scope `consume` or `admin`. */
  readonly hidePayloads: boolean
}

interface Stored extends ApiKey {
  readonly hash: Buffer
}

const PREFIX = 'rdk'
const HIDE = 'hide-payloads'
/** The shortest time between two checks of the file. */
const LOOK_MS = 1_000

/** Whether the key is for this topic. */
export function covers({ topics }: ApiKey, topic: string): boolean {
  return topics.some((each) => (each.endsWith('*') ? topic.startsWith(each.slice(0, -1)) : each === topic))
}

/** Whether a key sees messages without their bodies and headers. */
export function isBlind({ hidePayloads, scopes }: ApiKey): boolean {
  return hidePayloads && !scopes.has('consume') && !scopes.has('admin')
}

export interface MadeKey {
  /** The key that the client sends; it is stored nowhere. */
  readonly key: string
  /** The line for the file. */
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
 * The accepted keys: a file with a line for each, `<id> <SHA-256 of the key> <scopes> <topics>`. The file is read again when it has
 * changed, so keys can be added and removed while the service runs. The keys are random, so a fast hash is enough.
 */
export class ApiKeys {
  readonly path: string
  readonly #onError: (error: unknown) => void
  #keys: ReadonlyMap<string, Stored> = new Map()
  #version = ''
  #lookedAt = -Infinity
  /** The last problem with the file. */
  #problem: string | undefined

  /** @throws RedelayedError the file cannot be read, or has an invalid line */
  constructor(path: string, onError: (error: unknown) => void) {
    this.path = path
    this.#onError = onError
    this.#read()
  }

  get size(): number {
    return this.#keys.size
  }

  /** The key that a client has sent, if it is accepted. */
  find(given: string): ApiKey | undefined {
    if (performance.now() - this.#lookedAt > LOOK_MS) this.#look()
    const [, id] = /^rdk_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/.exec(given) ?? []
    if (id === undefined) return undefined
    // a new key works as soon as the file has its line, not only after the next check
    if (!this.#keys.has(id)) this.#look()
    const stored = this.#keys.get(id)
    return stored !== undefined && timingSafeEqual(stored.hash, hashOf(given)) ? stored : undefined
  }

  /** The key of a session; `undefined` if the key was removed, its id has another secret now, or the session is forged. */
  ofSession({ keyId, proof, token }: SessionOf): ApiKey | undefined {
    if (performance.now() - this.#lookedAt > LOOK_MS) this.#look()
    const expected = this.proofOf(keyId, token)
    if (expected === undefined || !timingSafeEqual(hashOf(expected), hashOf(proof))) return undefined
    return this.#keys.get(keyId)
  }

  /** The proof of a key that a session stores. It is bound to one token, so that a reader of Redis cannot make another session of it. */
  proofOf(keyId: string, token: string): string | undefined {
    const stored = this.#keys.get(keyId)
    return stored && createHmac('sha256', stored.hash).update(token).digest('base64url')
  }

  /** Reads the file again. If it is missing or has a mistake, the earlier keys stay; each problem is reported once. */
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
    // before the lines are parsed, so that a mistake is reported once, however many requests come
    this.#version = version
    this.#keys = new Map(readLines(this.path, text).map((key) => [key.id, key]))
  }
}

/** Creates the file with one key that may do everything, unless the file exists; returns the key. */
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
      const expected = `<id> <hash> <scopes of ${SCOPES.join(', ')}> <topics>, optionally ${HIDE}`
      throw new RedelayedError('ERR_API_KEYS', `${path}, line ${at + 1}: expected ${expected}`)
    }
    const rights = { scopes: new Set(known), topics: topics.split(','), hidePayloads: hide !== undefined }
    return [{ id, hash: Buffer.from(hash, 'hex'), ...rights }]
  })
}

function hashOf(key: string): Buffer {
  return digestOf('sha256', key, 'buffer')
}
