import type { Kept } from '../topics/record-store.js'
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

/** The record of what is kept. What a stranger has written may be anything: without a URL nothing is sent until an operator gives one. */
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
