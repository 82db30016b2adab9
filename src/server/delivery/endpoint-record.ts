import type { Kept } from '../topics/record-store.js'
import type { EgressPolicy } from './egress-policy.js'
import type { Endpoint } from './endpoint.js'
import { readSecret } from './webhook-secret.js'

/** Why an endpoint is disabled: by an operator, because it answered 410, or because it took no webhook for days. */
export type DisabledReason = 'operator' | 'gone' | 'failing'

/** A stored secret of an endpoint. */
export interface KeptSecret {
  readonly text: string
  /** Until this time it also signs deliveries, epoch milliseconds; `null`: it is the current secret. */
  readonly until: number | null
}

/** The stored record of an endpoint. */
export interface EndpointRecord {
  readonly url: string
  readonly description: string
  /** The current one first. */
  readonly secrets: readonly KeptSecret[]
  /** The most webhooks a second of all instances together; 0: no limit. */
  readonly perSecond: number
  /** The most webhooks of each instance at the same time. */
  readonly concurrency: number
  /** The longest that an answer may take, in milliseconds. */
  readonly timeout: number
  readonly disabled: { readonly reason: DisabledReason; readonly at: number } | null
  /** Epoch milliseconds. */
  readonly createdAt: number
}

/** The endpoint to send to. @throws InvalidArgumentError webhooks may not, or no longer, go to its URL */
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

/** Fills in defaults, as another program may have written anything: without a URL nothing is sent until an operator sets one. */
export function completeEndpoint(kept: Kept<EndpointRecord>): EndpointRecord {
  const { url, description, secrets, perSecond, concurrency, timeout, disabled, createdAt } = kept
  return {
    url: textOr('', url),
    description: textOr('', description),
    secrets: Array.isArray(secrets) ? secrets.filter(isSecret) : [],
    perSecond: numberOr(0, perSecond, 0, 1_000_000),
    concurrency: numberOr(16, concurrency, 1, 1_000),
    timeout: numberOr(15_000, timeout, 100, 120_000),
    disabled: isDisabled(disabled) ? disabled : null,
    createdAt: numberOr(0, createdAt, 0, Number.MAX_SAFE_INTEGER),
  }
}

const REASONS: readonly unknown[] = ['operator', 'gone', 'failing'] satisfies DisabledReason[]

function isDisabled(value: unknown): value is EndpointRecord['disabled'] {
  if (value === null) return true
  const { reason, at } = Object(value) as Readonly<Record<string, unknown>>
  return REASONS.includes(reason) && Number.isSafeInteger(at)
}

function isSecret(value: unknown): value is KeptSecret {
  const { text, until } = Object(value) as Readonly<Record<string, unknown>>
  return typeof text === 'string' && (until === null || Number.isFinite(until))
}

function textOr(otherwise: string, value: unknown): string {
  return typeof value === 'string' ? value : otherwise
}

function numberOr(otherwise: number, value: unknown, least: number, most: number): number {
  return typeof value === 'number' && value >= least && value <= most ? value : otherwise
}
