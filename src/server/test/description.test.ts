import { expect } from 'chai'
import { newSecret, readSecret } from '../delivery/webhook-secret.js'
import { described } from '../api/described.js'
import { AcknowledgeInput, EndpointInput, MessageInput, TopicInput } from '../api/schemas.js'
import { isBase64 } from '../topics/body.js'
import { leaseText } from '../topics/lease.js'

/** The fields of a described body that the tests look at. */
interface Described {
  readonly allOf?: readonly object[]
  readonly properties: Readonly<
    Record<string, { readonly pattern?: string; readonly items?: { readonly pattern: string } }>
  >
}

describe('the OpenAPI description', () => {
  it('has what an operation refuses beside its schema', () => {
    const message = described(MessageInput) as unknown as Described
    expect(message.allOf).to.deep.equal([
      { not: { required: ['delay', 'dueAt'] } },
      { not: { required: ['body', 'bodyBase64'] } },
    ])
    const base64 = new RegExp(message.properties['bodyBase64']?.pattern ?? '$^')
    for (const text of ['', 'AA==', 'AAA=', 'AAAA', 'A', 'AAA', 'A===', 'A-_A', 'AAAA='])
      expect(base64.test(text), text).to.equal(isBase64(text) && !text.endsWith('==='))
    const leases = described(AcknowledgeInput) as unknown as Described
    const lease = leaseText({ topic: 'a.b:c-1', attempt: 12, receipt: 'xY_-0' })
    expect(lease).to.match(new RegExp(leases.properties['leases']?.items?.pattern ?? '$^'))
    const endpoint = described(EndpointInput) as unknown as Described
    const secret = new RegExp(endpoint.properties['secret']?.pattern ?? '$^')
    const isSecret = (text: string): boolean => {
      try {
        return readSecret(text) !== undefined
      } catch {
        return false
      }
    }
    const sizes = Array.from({ length: 70 }, (_, bytes) => Buffer.alloc(bytes, 0xa7).toString('base64'))
    for (const text of [newSecret('v1'), newSecret('v1a'), 'whsk_', 'x', ...sizes.map((each) => `whsec_${each}`)])
      expect(secret.test(text), text).to.equal(isSecret(text))
    expect(described(TopicInput)).to.not.have.property('allOf')
  })
})
