import { randomBytes } from 'node:crypto'
import { type RedelayedClient } from 'redelayed'
import type { Journal } from '../journal/journal.js'
import { TopicError } from '../topics/errors.js'
import { RecordStore } from '../topics/record-store.js'
import { RESERVED } from '../topics/topic-name.js'
import type { EgressPolicy } from './egress-policy.js'
import { completeEndpoint, type DisabledReason, type EndpointRecord } from './endpoint-record.js'
import type { Exclusive } from '../topics/exclusive.js'
import { newSecret, readSecret, type WebhookSecret } from './webhook-secret.js'

export interface NewEndpoint {
  readonly url: string
  readonly description?: string | undefined
  readonly perSecond?: number | undefined
  readonly concurrency?: number | undefined
  readonly timeout?: number | undefined
  readonly secret?: string | undefined
  readonly scheme?: WebhookSecret['scheme'] | undefined
}

export type EndpointChange = Partial<
  Pick<EndpointRecord, 'url' | 'description' | 'perSecond' | 'concurrency' | 'timeout'>
> & { readonly enabled?: boolean | undefined }

/** The most secrets of an endpoint that sign at the same time. */
const MOST_SECRETS = 5

/** The endpoints, shared by all instances: create, change, disable. */
export class Endpoints {
  readonly #records: RecordStore<EndpointRecord>
  readonly #policy: EgressPolicy
  readonly #exclusive: Exclusive
  readonly #most: number

  constructor(client: RedelayedClient, policy: EgressPolicy, exclusive: Exclusive, most: number) {
    this.#records = new RecordStore<EndpointRecord>(client, `${RESERVED}endpoints`, completeEndpoint)
    this.#policy = policy
    this.#exclusive = exclusive
    this.#most = most
  }

  keepIn(journal: Journal): Promise<void> {
    return this.#records.keepIn(journal)
  }

  /** @throws InvalidArgumentError webhooks may not go there, or the secret is invalid @throws TopicError there are too many endpoints */
  async create({ scheme, secret = newSecret(scheme), ...given }: NewEndpoint): Promise<[string, EndpointRecord]> {
    this.#policy.readUrl(given.url)
    readSecret(secret)
    if ((await this.#records.size()) >= this.#most)
      throw new TopicError('ERR_TOO_MANY_ENDPOINTS', `at most ${this.#most} endpoints are allowed`)
    const id = `ep_${randomBytes(12).toString('base64url')}`
    const { url, description = '', perSecond = 0, concurrency = 16, timeout = 15_000 } = given
    const record: EndpointRecord = {
      ...{ url, description, perSecond, concurrency, timeout, disabled: null },
      secrets: [{ text: secret, until: null }],
      createdAt: await this.#records.now(),
    }
    await this.#records.create(id, record)
    return [id, record]
  }

  /** @throws TopicError the endpoint does not exist */
  async get(id: string): Promise<EndpointRecord> {
    const record = await this.#records.get(id)
    if (record === null) throw notFound(id)
    return record
  }

  /** Checks that an endpoint exists; while Redis is away, a journal can answer. @throws TopicError the endpoint does not exist */
  async assertThere(id: string): Promise<void> {
    if (!(await this.#records.has(id))) throw notFound(id)
  }

  list(): Promise<[id: string, record: EndpointRecord][]> {
    return this.#records.list()
  }

  async update(id: string, { enabled, ...change }: EndpointChange): Promise<EndpointRecord> {
    if (change.url !== undefined) this.#policy.readUrl(change.url)
    const disabled = enabled === false ? await this.#disabled('operator') : null
    return this.#change(id, (before) => ({
      ...{ ...before, ...change },
      disabled: enabled === undefined ? before.disabled : disabled,
    }))
  }

  /** Sets a new secret. The previous one still signs for `keepMs`, older ones as long as was set for them; with 0 none of them signs. */
  async rotate(id: string, secret: string, keepMs: number): Promise<EndpointRecord> {
    readSecret(secret)
    const now = await this.#records.now()
    return this.#change(id, (before) => {
      const kept = before.secrets.map(({ text, until }) => ({ text, until: until ?? now + keepMs }))
      const old = keepMs === 0 ? [] : kept.filter(({ until }) => until > now).slice(0, MOST_SECRETS - 1)
      return { ...before, secrets: [{ text: secret, until: null }, ...old] }
    })
  }

  /** False if the endpoint is already disabled, or does not exist. */
  async disable(id: string, reason: DisabledReason): Promise<boolean> {
    const disabled = await this.#disabled(reason)
    return this.#exclusive.run(id, async (assertFresh) => {
      const before = await this.#records.get(id)
      if (before === null || before.disabled !== null) return false
      assertFresh()
      return this.#records.replace(id, { ...before, disabled })
    })
  }

  async remove(id: string): Promise<void> {
    await this.get(id)
    await this.#records.remove(id)
  }

  async #disabled(reason: DisabledReason): Promise<EndpointRecord['disabled']> {
    return { reason, at: await this.#records.now() }
  }

  /** Reads and writes an endpoint under a lock of all instances. */
  async #change(id: string, change: (before: EndpointRecord) => EndpointRecord): Promise<EndpointRecord> {
    await this.get(id) // a missing endpoint needs no lock
    return this.#exclusive.run(id, async (assertFresh) => {
      const record = change(await this.get(id))
      assertFresh()
      if (await this.#records.replace(id, record)) return record
      throw notFound(id)
    })
  }
}

function notFound(id: string): TopicError {
  return new TopicError('ERR_ENDPOINT_NOT_FOUND', `there is no endpoint ${JSON.stringify(id)}`)
}
