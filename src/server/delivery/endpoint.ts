import type { WebhookSecret } from './webhook-secret.js'

/** An endpoint, ready to send webhooks to. */
export interface Endpoint {
  readonly id: string
  readonly url: URL
  /** Several while one is being replaced: each delivery is signed with all of them. */
  readonly secrets: readonly WebhookSecret[]
  /** The most webhooks a second of all instances together; 0: no limit. */
  readonly perSecond: number
  /** The longest that an answer may take. */
  readonly timeoutMs: number
}
