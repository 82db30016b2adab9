import { createHmac, sign } from 'node:crypto'
import type { WebhookSecret } from './webhook-secret.js'

/** The headers of Standard Webhooks 1.0 that say which message this is, and that it comes from here. */
export interface SignatureHeaders {
  readonly 'webhook-id': string
  readonly 'webhook-timestamp': string
  readonly 'webhook-signature': string
}

/**
 * Signs a delivery with every secret that is valid now: while a secret is rotated there are two, and a receiver needs to know one of them.
 *
 * @param at epoch milliseconds; receivers refuse what is more than five minutes away from their own clock
 */
export function signatureHeaders(
  id: string,
  at: number,
  body: Uint8Array,
  secrets: readonly WebhookSecret[],
): SignatureHeaders {
  const messageId = withoutPoints(id)
  const timestamp = String(Math.floor(at / 1_000))
  const signed = Buffer.concat([Buffer.from(`${messageId}.${timestamp}.`), body])
  return {
    'webhook-id': messageId,
    'webhook-timestamp': timestamp,
    'webhook-signature': secrets.map((secret) => signatureOf(signed, secret)).join(' '),
  }
}

function signatureOf(signed: Buffer, secret: WebhookSecret): string {
  const bytes =
    secret.scheme === 'v1' ? createHmac('sha256', secret.key).update(signed).digest() : sign(null, signed, secret.key)
  return `${secret.scheme},${bytes.toString('base64')}`
}

/**
 * The id stands before a point in what is signed, and in a header: any id of a message becomes one that has neither points nor characters
 * that a header refuses, and two different ids stay different.
 */
function withoutPoints(id: string): string {
  return /^[\w:-]+$/.test(id) ? id : `b64_${Buffer.from(id).toString('base64url')}`
}
