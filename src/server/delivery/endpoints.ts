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

/** So many secrets of an endpoint sign at the same time. */
const MOST_SECRETS = 5

/** The endpoints of all instances: made, changed, disabled. */
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
    const disabled = enabled === false ? await this.#disabled('operator') : null
    return this.#change(id, (before) => ({
      ...{ ...before, ...change },
      disabled: enabled === undefined ? before.disabled : disabled,
    }))
  }

  /** The secrets before it sign too: the last one for so long, those before it for as long as was promised for them; with 0 none of them. */
  async rotate(id: string, secret: string, keepMs: number): Promise<EndpointRecord> {
    readSecret(secret)
    const now = await this.#records.now()
    return this.#change(id, (before) => {
      const kept = before.secrets.map(({ text, until }) => ({ text, until: until ?? now + keepMs }))
      const old = keepMs === 0 ? [] : kept.filter(({ until }) => until > now).slice(0, MOST_SECRETS - 1)
      return { ...before, secrets: [{ text: secret, until: null }, ...old] }
    })
  }

  /** False where it is disabled already, or not there. */
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

  /** Reads and writes it alone, of all instances. */
  async #change(id: string, change: (before: EndpointRecord) => EndpointRecord): Promise<EndpointRecord> {
    await this.get(id) // what is not there needs no lock
    return this.#exclusive.run(id, async (assertFresh) => {
      const record = change(await this.get(id))
      assertFresh()
      if (await this.#records.replace(id, record)) return record
      throw new TopicError('ERR_ENDPOINT_NOT_FOUND', `there is no endpoint ${JSON.stringify(id)}`)
    })
  }
}
