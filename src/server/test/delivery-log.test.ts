import { expect } from 'chai'
import { loggedAnswer } from '../delivery/delivery-log.js'

/** The logged part of an answer with this body. */
const keptOf = (body: Buffer): string =>
  loggedAnswer({ is: 'answer', status: 500, retryAfter: undefined, body, tookMs: 1 }).answer

describe('the log of webhooks', () => {
  for (const [what, body] of [
    ['control characters', Buffer.alloc(4_096, 1)],
    ['no UTF-8', Buffer.alloc(4_096, 0xff)],
    ['quotes', Buffer.alloc(4_096, '"')],
    ['characters of two bytes', Buffer.from('é'.repeat(2_048))],
  ] as const) {
    it(`needs at most 8 KiB for an answer of ${what}`, () => {
      const kept = keptOf(body)
      expect(kept.length).to.be.greaterThan(1_000)
      expect(Buffer.byteLength(JSON.stringify(kept))).to.be.at.most(8_200)
    })
  }

  it('keeps text as it is', () => {
    for (const text of ['', 'busy\n\ttry later', '{"error":"ü"}']) expect(keptOf(Buffer.from(text))).to.equal(text)
  })
})
