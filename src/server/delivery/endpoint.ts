import type { WebhookSecret } from './webhook-secret.js'

/** Where the webhooks of a topic go, and how. */
export interface Endpoint {
  readonly id: string
  readonly url: URL
  /** Two while one is replaced by the other: each delivery is signed with both. */
  readonly secrets: readonly WebhookSecret[]
  /** The most webhooks a second, of all instances together; 0 for no limit. */
  readonly perSecond: number
  /** How long an answer may take. */
  readonly timeoutMs: number
}
