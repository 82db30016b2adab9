import { createHmac, sign } from 'node:crypto'
import type { WebhookSecret } from './webhook-secret.js'

/** The headers of Standard Webhooks 1.0 that identify the message and prove its sender. */
export interface SignatureHeaders {
  readonly 'webhook-id': string
  readonly 'webhook-timestamp': string
  readonly 'webhook-signature': string
}

/**
 * Signs a delivery with every secret that is valid now: during a rotation there are several, and a receiver needs to know only one.
 *
 * @param at epoch milliseconds; receivers refuse a time that is more than five minutes off their own clock
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
 * Encodes an id that contains points, which separate it in the signed text, or characters that a header refuses. Two different ids stay
 * different.
 */
function withoutPoints(id: string): string {
  return /^[\w:-]+$/.test(id) ? id : `b64_${Buffer.from(id).toString('base64url')}`
}
