import { expect } from 'chai'
import { startTestService, type TestService } from './support/service.js'

const LEASES = 50

/** The random part of a lease: `<topic>.<attempt>.<receipt>`, and in the receipt the text between the attempts and the id. */
function tokenOf(lease: string): Buffer {
  const receipt = Buffer.from(lease.split('.').at(-1) ?? '', 'base64url').toString('latin1')
  const [, token = ''] = /^\d\d+ ([\w-]+)\n/.exec(receipt) ?? []
  return Buffer.from(token, 'base64url')
}

describe('leases', () => {
  let server: TestService
  let topic: string

  beforeEach(async () => {
    server = await startTestService()
    topic = server.topic()
  })
  afterEach(() => server.stop())

  it('have at least 8 random bytes, and different ones for each receive', async () => {
    const messages = Array.from({ length: LEASES }, (_, n) => ({ id: String(n), body: n }))
    for (const message of messages) await server.ask('POST', `/v1/topics/${topic}/messages`, message)
    const leases: string[] = []
    for (let n = 0; n < LEASES; n++) {
      const { body } = await server.ask('POST', `/v1/topics/${topic}/receive`, { max: 1 })
      leases.push(...body.messages.map(({ lease }) => lease))
    }
    const tokens = leases.map(tokenOf)
    expect(tokens).to.have.length(LEASES)
    expect(Math.min(...tokens.map(({ length }) => length))).to.be.at.least(8)
    expect(new Set(tokens.map((token) => token.toString('hex'))).size).to.equal(LEASES)
    // each byte takes many values: none is constant, and none counts the receives
    for (let at = 0; at < 8; at++) {
      const values = tokens.map((token) => token[at] ?? 0)
      expect(new Set(values).size, `values of byte ${at}`).to.be.at.least(LEASES / 2)
      expect(values, `byte ${at}`).not.to.deep.equal(values.toSorted((a, b) => a - b))
    }
  })
})
