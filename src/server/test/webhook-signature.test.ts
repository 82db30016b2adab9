import { expect } from 'chai'
import { createPublicKey, randomBytes, verify } from 'node:crypto'
import { InvalidArgumentError } from 'redelayed'
import { Webhook } from 'standardwebhooks'
import { signatureHeaders } from '../delivery/signature.js'
import { newSecret, publicHalf, readSecret, type WebhookSecret } from '../delivery/webhook-secret.js'

const body = Buffer.from('{"to":"Ada ☃"}')

describe('signatures of webhooks', () => {
  it('are accepted by the verifier of Standard Webhooks', () => {
    const secret = newSecret()
    const headers = signatureHeaders('msg-1', Date.now(), body, [readSecret(secret)])
    expect(new Webhook(secret).verify(body.toString(), { ...headers })).to.deep.equal({ to: 'Ada ☃' })
  })

  it('are refused for another body, another secret, another id and another time', () => {
    const secret = newSecret()
    const headers = { ...signatureHeaders('msg-1', Date.now(), body, [readSecret(secret)]) }
    const verifier = new Webhook(secret)
    expect(() => verifier.verify('{"to":"Eve"}', headers)).to.throw('No matching signature')
    expect(() => new Webhook(newSecret()).verify(body.toString(), headers)).to.throw('No matching signature')
    expect(() => verifier.verify(body.toString(), { ...headers, 'webhook-id': 'msg-2' })).to.throw('No matching')
    const late = { ...signatureHeaders('msg-1', Date.now() - 600_000, body, [readSecret(secret)]) }
    expect(() => verifier.verify(body.toString(), late)).to.throw('too old')
  })

  it('of two secrets are accepted by a receiver that knows one of them', () => {
    const [old, young] = [newSecret(), newSecret()]
    const headers = { ...signatureHeaders('msg-1', Date.now(), body, [readSecret(young), readSecret(old)]) }
    for (const secret of [old, young])
      expect(new Webhook(secret).verify(body.toString(), headers)).to.deep.equal({ to: 'Ada ☃' })
  })

  it('of Ed25519 are verified with the public half', () => {
    const secret = readSecret(newSecret('v1a')) as Extract<WebhookSecret, { scheme: 'v1a' }>
    const headers = signatureHeaders('msg-1', 1_700_000_000_000, body, [secret])
    const bytes = Buffer.from(publicHalf(secret).slice('whpk_'.length), 'base64')
    const key = createPublicKey({
      key: { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') },
      format: 'jwk',
    })
    const [scheme, signature = ''] = headers['webhook-signature'].split(',')
    expect(scheme).to.equal('v1a')
    const signed = Buffer.concat([Buffer.from('msg-1.1700000000.'), body])
    expect(verify(null, signed, key, Buffer.from(signature, 'base64'))).to.equal(true)
    expect(verify(null, body, key, Buffer.from(signature, 'base64'))).to.equal(false)
  })

  it('have an id that fits a header and has no point, and different ids stay different', () => {
    const ids = ['a.b', 'a b', 'ä', 'a\r\nx-evil: 1', 'a-b', 'a_b:c'].map(
      (id) => signatureHeaders(id, 0, body, [])['webhook-id'],
    )
    for (const id of ids) expect(id).to.match(/^[\w:-]+$/)
    expect(new Set(ids).size).to.equal(ids.length)
    expect(ids.at(-1)).to.equal('a_b:c')
  })
})

describe('secrets of webhooks', () => {
  const of = (bytes: number) => randomBytes(bytes).toString('base64')

  it('have 24 to 64 bytes', () => {
    for (const bytes of [24, 32, 64]) expect(readSecret(`whsec_${of(bytes)}`).scheme).to.equal('v1')
  })

  const wrong = {
    empty: '',
    'of no bytes': 'whsec_',
    'of 23 bytes': `whsec_${of(23)}`,
    'of 65 bytes': `whsec_${of(65)}`,
    'without a prefix': of(32),
    'with what is no base64': `whsec_!${of(32)}`,
    'of Ed25519 with 31 bytes': `whsk_${of(31)}`,
    'of Ed25519 with what is no base64': 'whsk_x',
  }
  for (const [what, text] of Object.entries(wrong)) {
    it(`are not ${what}; the error does not repeat them`, () => {
      expect(() => readSecret(text))
        .to.throw(InvalidArgumentError)
        .with.property('message')
        .that.satisfies((message: string) => text.length < 12 || !message.includes(text.slice(6)))
    })
  }
})
