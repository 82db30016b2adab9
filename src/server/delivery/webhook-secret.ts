import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, type KeyObject } from 'node:crypto'
import { InvalidArgumentError } from 'redelayed'

const HMAC = 'whsec_'
const ED25519 = 'whsk_'
const ED25519_PUBLIC = 'whpk_'
/** https://www.standardwebhooks.com: between 24 and 64 bytes. */
const [LEAST_BYTES, MOST_BYTES] = [24, 64]
const NEW_BYTES = 32
/** The bytes before the 32 bytes of a private Ed25519 key in PKCS #8 (RFC 8410). */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')
const SEED_BYTES = 32

/** A secret of an endpoint, ready to sign with. */
export type WebhookSecret =
  { readonly scheme: 'v1'; readonly key: Buffer } | { readonly scheme: 'v1a'; readonly key: KeyObject }

/** A new secret: `whsec_…` for HMAC-SHA256, which both sides have, or `whsk_…` for Ed25519, whose public half the receiver gets. */
export function newSecret(scheme: WebhookSecret['scheme'] = 'v1'): string {
  if (scheme === 'v1') return HMAC + randomBytes(NEW_BYTES).toString('base64')
  const { privateKey } = generateKeyPairSync('ed25519')
  return ED25519 + privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-SEED_BYTES).toString('base64')
}

/** @throws InvalidArgumentError the text is not a secret of Standard Webhooks; the message does not repeat it */
export function readSecret(text: string): WebhookSecret {
  if (text.startsWith(HMAC)) {
    const key = bytesOf(text.slice(HMAC.length))
    if (key !== undefined && key.length >= LEAST_BYTES && key.length <= MOST_BYTES) return { scheme: 'v1', key }
  } else if (text.startsWith(ED25519)) {
    const key = bytesOf(text.slice(ED25519.length))
    if (key?.length === SEED_BYTES)
      return {
        scheme: 'v1a',
        key: createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, key]), format: 'der', type: 'pkcs8' }),
      }
  }
  throw new InvalidArgumentError(
    'secret',
    `${HMAC} and ${LEAST_BYTES} to ${MOST_BYTES} bytes in base64, or ${ED25519} and ${SEED_BYTES} bytes`,
    text,
  )
}

/** The public key `whpk_…`, with which a receiver verifies signatures of `whsk_…`. */
export function publicHalf(secret: Extract<WebhookSecret, { scheme: 'v1a' }>): string {
  const spki = createPublicKey(secret.key).export({ format: 'der', type: 'spki' })
  return ED25519_PUBLIC + spki.subarray(-SEED_BYTES).toString('base64')
}

/** The decoded bytes; `undefined` for invalid base64, which `Buffer.from` would skip. */
function bytesOf(base64: string): Buffer | undefined {
  const bytes = Buffer.from(base64, 'base64')
  return bytes.toString('base64').replace(/=+$/, '') === base64.replace(/=+$/, '') ? bytes : undefined
}
