import type { EgressPolicy } from './egress-policy.js'
import type { Endpoint } from './endpoint.js'
import { readSecret } from './webhook-secret.js'

/** Why no webhooks go to an endpoint: the operator said so, it answered 410, or nothing was delivered for days. */
export type DisabledReason = 'operator' | 'gone' | 'failing'

/** A secret of an endpoint as it is kept. */
export interface KeptSecret {
  readonly text: string
  /** Until then deliveries are signed with it too, epoch milliseconds; `null`: it is the current one. */
  readonly until: number | null
}

/** What is kept of an endpoint. */
export interface EndpointRecord {
  readonly url: string
  readonly description: string
  /** The current one first. */
  readonly secrets: readonly KeptSecret[]
  /** The most webhooks a second, of all instances together; 0: no limit. */
  readonly perSecond: number
  /** The most webhooks at once, of each instance. */
  readonly concurrency: number
  /** How long an answer may take, in milliseconds. */
  readonly timeout: number
  readonly disabled: { readonly reason: DisabledReason; readonly at: number } | null
  /** Epoch milliseconds. */
  readonly createdAt: number
}

/** The endpoint to send to. @throws InvalidArgumentError webhooks may not go to its URL, or not any more */
export function endpointOf(id: string, record: EndpointRecord, policy: EgressPolicy, now: number): Endpoint {
  const { url, secrets, perSecond, timeout } = record
  return {
    id,
    url: policy.readUrl(url),
    secrets: secrets.filter(({ until }) => until === null || until > now).map(({ text }) => readSecret(text)),
    perSecond,
    timeoutMs: timeout,
  }
}
