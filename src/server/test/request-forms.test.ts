import { expect } from 'chai'
import { startTestService, type TestService } from './support/service.js'

describe('the description of requests', function () {
  this.timeout(60_000)
  let server: TestService
  let topic: string
  before(async () => {
    server = await startTestService()
    topic = server.topic()
    await server.ask('PUT', `/v1/topics/${topic}`, {})
  })
  after(() => server.stop())

  const code = async (method: string, path: string, body?: unknown): Promise<unknown[]> => {
    const answer = await server.ask(method, path, body)
    return [answer.status, answer.body.code]
  }

  it('holds for numbers and flags of a query, which are written as such', async () => {
    for (const query of ['limit=true', 'limit=1.5', 'limit=', 'limit=1e1', 'limit=1&limit=2'])
      expect(await code('GET', `/v1/topics?${query}`), query).to.deep.equal([400, 'invalid-request'])
    expect(await code('DELETE', `/v1/topics/${topic}?force=1`)).to.deep.equal([400, 'invalid-request'])
    expect((await server.ask('GET', '/v1/topics?limit=1')).status).to.equal(200)
  })

  it('holds for a body that can be left out: null does not count as left out', async () => {
    for (const path of ['purge', 'pause', 'receive', 'dead-letters/redrive']) {
      expect(await code('POST', `/v1/topics/${topic}/${path}`, null), path).to.deep.equal([400, 'invalid-request'])
      expect((await server.ask('POST', `/v1/topics/${topic}/${path}`)).status, path).to.equal(200)
    }
    await server.ask('POST', `/v1/topics/${topic}/resume`)
    const { body } = await server.ask('GET', '/openapi.json')
    const { paths } = body as unknown as {
      paths: Record<string, Record<string, { requestBody: { required: boolean } }>>
    }
    const isRequired = (path: string): boolean | undefined => paths[path]?.['post']?.requestBody.required
    expect(isRequired('/v1/topics/{topic}/purge')).to.equal(false)
    expect(isRequired('/v1/topics/{topic}/messages')).to.equal(true)
  })

  it('holds for ids that no message has, invalid leases, and dates before 1970', async () => {
    const long = encodeURIComponent('ü'.repeat(300))
    for (const method of ['GET', 'DELETE'])
      expect(await code(method, `/v1/topics/${topic}/messages/${long}`)).to.deep.equal([404, 'message-not-found'])
    expect(await code('PATCH', `/v1/topics/${topic}/messages/${long}`, { delay: 1 })).to.deep.equal([
      404,
      'message-not-found',
    ])
    const redriven = await server.ask('POST', `/v1/topics/${topic}/dead-letters/redrive`, { ids: ['ü'.repeat(300)] })
    expect([redriven.status, redriven.body]).to.deep.equal([200, { redriven: 0 }])
    for (const path of ['acknowledge', 'extend', 'negative-acknowledge'])
      expect(await code('POST', `/v1/leases/${path}`, { leases: [`${topic}.1.0`] }), path).to.deep.equal([
        400,
        'invalid-lease',
      ])
    const pushed = await server.ask('POST', `/v1/topics/${topic}/messages`, { dueAt: '1900-01-01T00:00:00Z' })
    expect([pushed.status, pushed.body.outcome]).to.deep.equal([201, 'added'])
  })
})
