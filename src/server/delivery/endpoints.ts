import { randomBytes } from 'node:crypto'
import { type RedelayedClient } from 'redelayed'
import type { Journal } from '../journal/journal.js'
import { TopicError } from '../topics/errors.js'
import { RecordStore } from '../topics/record-store.js'
import { RESERVED } from '../topics/topic-name.js'
import type { EgressPolicy } from './egress-policy.js'
import type { DisabledReason, EndpointRecord } from './endpoint-record.js'
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

/** The endpoints of all instances: made, changed, disabled. */
export class Endpoints {
  readonly #records: RecordStore<EndpointRecord>
  readonly #policy: EgressPolicy
  readonly #most: number

  constructor(client: RedelayedClient, policy: EgressPolicy, most: number) {
    this.#records = new RecordStore<EndpointRecord>(client, `${RESERVED}endpoints`)
    this.#policy = policy
    this.#most = most
  }

  keepIn(journal: Journal): Promise<void> {
    return this.#records.keepIn(journal)
  }

  /** @throws InvalidArgumentError webhooks may not go there, or the secret is none @throws TopicError there are too many */
  async create({ scheme, secret = newSecret(scheme), ...given }: NewEndpoint): Promise<[string, EndpointRecord]> {
    this.#policy.readUrl(given.url)
    readSecret(secret)
    if ((await this.#records.size()) >= this.#most)
      throw new TopicError('ERR_TOO_MANY_ENDPOINTS', `there can be ${this.#most} endpoints`)
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

  /** @throws TopicError there is none */
  async get(id: string): Promise<EndpointRecord> {
    const record = await this.#records.get(id)
    if (record === null) throw new TopicError('ERR_ENDPOINT_NOT_FOUND', `there is no endpoint ${JSON.stringify(id)}`)
    return record
  }

  list(): Promise<[id: string, record: EndpointRecord][]> {
    return this.#records.list()
  }

  async update(id: string, { enabled, ...change }: EndpointChange): Promise<EndpointRecord> {
    if (change.url !== undefined) this.#policy.readUrl(change.url)
    const before = await this.get(id)
    const disabled = enabled === undefined ? before.disabled : enabled ? null : await this.#disabled('operator')
    return this.#replace(id, { ...before, ...change, disabled })
  }

  /** The old secret signs too, for so long. */
  async rotate(id: string, secret: string, keepMs: number): Promise<EndpointRecord> {
    readSecret(secret)
    const before = await this.get(id)
    const now = await this.#records.now()
    const [current] = before.secrets
    const old = current === undefined || keepMs === 0 ? [] : [{ text: current.text, until: now + keepMs }]
    return this.#replace(id, { ...before, secrets: [{ text: secret, until: null }, ...old] })
  }

  /** False where it is disabled already, or not there. */
  async disable(id: string, reason: DisabledReason): Promise<boolean> {
    const before = await this.#records.get(id)
    if (before === null || before.disabled !== null) return false
    return this.#records.replace(id, { ...before, disabled: await this.#disabled(reason) })
  }

  async remove(id: string): Promise<void> {
    await this.get(id)
    await this.#records.remove(id)
  }

  async #disabled(reason: DisabledReason): Promise<EndpointRecord['disabled']> {
    return { reason, at: await this.#records.now() }
  }

  async #replace(id: string, record: EndpointRecord): Promise<EndpointRecord> {
    if (await this.#records.replace(id, record)) return record
    throw new TopicError('ERR_ENDPOINT_NOT_FOUND', `there is no endpoint ${JSON.stringify(id)}`)
  }
}
