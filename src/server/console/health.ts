import { pause, within } from '../pause.js'
import type { EndpointGate } from '../delivery/endpoint-gate.js'
import type { EndpointRecord } from '../delivery/endpoint-record.js'

export interface RedisState {
  readonly state: string
  readonly version: string | null
  /** Bytes, of all masters together. */
  readonly usedMemory: number | null
  /** `null`: there is no limit. */
  readonly maxMemory: number | null
}

/** A problem of an endpoint. */
export interface EndpointTrouble {
  readonly id: string
  /** Its description, or its URL. */
  readonly name: string
  readonly is: 'gone' | 'failing' | 'operator' | 'broken'
}

export interface Health {
  readonly redis: RedisState
  /** `null`: there is no journal, or it was not checked yet. */
  readonly journalAnswers: boolean | null
  readonly endpoints: readonly EndpointTrouble[]
  /** The number of endpoints without problems; `null`: not known yet. */
  readonly wellEndpoints: number | null
}

interface Asked {
  /** The sections `server` and `memory` of each master. */
  info(): Promise<readonly string[]>
  /** `undefined`: there is no journal. */
  readonly pingJournal: (() => Promise<void>) | undefined
  endpoints(): Promise<[id: string, record: EndpointRecord][]>
  readonly gate: Pick<EndpointGate, 'state'>
  /** The clock of Redis. */
  now(): number
}

const FRESH_MS = 5_000
/** The longest that the first reader waits. */
const FIRST_MS = 2_000
const PING_MS = 2_000
/** The most endpoints whose breakers are checked. */
const MOST_GATES = 1_000
const UNKNOWN: Health = {
  redis: { state: 'unknown', version: null, usedMemory: null, maxMemory: null },
  journalAnswers: null,
  endpoints: [],
  wellEndpoints: null,
}

/** The state of Redis, SQL and the endpoints, checked every few seconds while it is read. */
export class HealthReader {
  readonly #asked: Asked
  readonly #onError: (error: unknown) => void
  #last = UNKNOWN
  #at = -Infinity
  #looking: Promise<void> | undefined

  constructor(asked: Asked, onError: (error: unknown) => void) {
    this.#asked = asked
    this.#onError = onError
  }

  /** The result of the last check. */
  async read(): Promise<Health> {
    if (this.#looking === undefined && performance.now() - this.#at > FRESH_MS) {
      this.#at = performance.now()
      this.#looking = this.#look().finally(() => (this.#looking = undefined))
    }
    if (this.#last === UNKNOWN) {
      const enough = new AbortController()
      await Promise.race([this.#looking, pause(FIRST_MS, enough.signal)])
      enough.abort()
    }
    return this.#last
  }

  async stop(): Promise<void> {
    await this.#looking
  }

  async #look(): Promise<void> {
    const [redis, journalAnswers, endpoints] = await Promise.all([this.#redis(), this.#journal(), this.#endpoints()])
    this.#last = { redis, journalAnswers, ...endpoints }
  }

  async #redis(): Promise<RedisState> {
    try {
      const all = (await this.#asked.info()).map(fieldsOf)
      const sum = (name: string): number => all.reduce((total, fields) => total + Number(fields.get(name) ?? 0), 0)
      const version = all[0]?.get('valkey_version') ?? all[0]?.get('redis_version') ?? null
      return { state: 'ok', version, usedMemory: sum('used_memory') || null, maxMemory: sum('maxmemory') || null }
    } catch (thrown) {
      this.#onError(thrown)
      return { ...this.#last.redis, state: 'unavailable' }
    }
  }

  async #journal(): Promise<boolean | null> {
    const { pingJournal } = this.#asked
    if (pingJournal === undefined) return null
    const answer = pingJournal().then(
      () => true,
      () => false,
    )
    return within(PING_MS, answer, () => false)
  }

  async #endpoints(): Promise<Pick<Health, 'endpoints' | 'wellEndpoints'>> {
    try {
      const all = await this.#asked.endpoints()
      const disabled = all.flatMap(([id, record]) =>
        record.disabled ? [troubleOf(id, record, record.disabled.reason)] : [],
      )
      const enabled = all.filter(([, record]) => record.disabled === null).slice(0, MOST_GATES)
      const gates = await Promise.all(enabled.map(([id]) => this.#asked.gate.state(id, this.#asked.now())))
      const broken = enabled.filter((_, at) => gates[at]?.state === 'open' || gates[at]?.state === 'half-open')
      const endpoints = [...broken.map(([id, record]) => troubleOf(id, record, 'broken')), ...disabled]
      return { endpoints, wellEndpoints: all.length - endpoints.length }
    } catch (thrown) {
      this.#onError(thrown)
      const { endpoints, wellEndpoints } = this.#last
      return { endpoints, wellEndpoints }
    }
  }
}

function troubleOf(id: string, { description, url }: EndpointRecord, is: EndpointTrouble['is']): EndpointTrouble {
  return { id, name: description === '' ? url : description, is }
}

function fieldsOf(info: string): ReadonlyMap<string, string> {
  return new Map(
    info.split('\r\n').flatMap((line) => {
      const [name, value] = line.split(/:(.*)/, 2)
      return name !== undefined && value !== undefined ? [[name, value] as const] : []
    }),
  )
}
