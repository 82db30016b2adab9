import { expect } from 'chai'
import { startTestService, type TestService } from './support/service.js'

interface Entry {
  readonly key: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly requestId: string
}

describe('the audit log', function () {
  this.timeout(30_000)
  let server: TestService
  let topic: string
  beforeEach(async () => {
    server = await startTestService()
    topic = server.topic()
  })
  afterEach(() => server.stop())

  /** The entries of this topic, the newest first: other tests use the same Redis. */
  async function entries(query = '?limit=200'): Promise<Entry[]> {
    const { status, body } = await server.ask('GET', `/v1/audit${query}`)
    expect(status).to.equal(200)
    return (body as unknown as { entries: Entry[] }).entries.filter(({ path }) => path.includes(topic))
  }

  it('has what keys with the scope admin did, by whom, and nothing else', async () => {
    const made = await server.ask('PUT', `/v1/topics/${topic}`, {})
    await server.ask('POST', `/v1/topics/${topic}/messages`, { body: 'secret' })
    await server.ask('GET', `/v1/topics/${topic}`)
    await server.ask('POST', `/v1/topics/${topic}/pause`, { what: 'sideways' }) // refused
    await server.ask('POST', `/v1/topics/${topic}/purge`)
    await server.ask('DELETE', `/v1/topics/${topic}?force`)
    const [, id] = server.key.split('_')
    const found = await entries()
    expect(found.map(({ method, path, status }) => `${method} ${path} ${status}`)).to.deep.equal([
      `DELETE /v1/topics/${topic}?force 204`,
      `POST /v1/topics/${topic}/purge 200`,
      `PUT /v1/topics/${topic} 201`,
    ])
    expect(found.map(({ key }) => key)).to.deep.equal([id, id, id])
    expect(found.at(-1)?.requestId).to.equal(made.headers.get('x-request-id'))
    expect(JSON.stringify(found)).to.not.include('secret')
  })

  it('comes in pages, from any instance', async () => {
    for (let at = 0; at < 3; at++) await server.ask('PUT', `/v1/topics/${topic}`, {})
    const other = await startTestService()
    try {
      const paths: string[] = []
      let cursor = ''
      do {
        const { body } = await other.ask('GET', `/v1/audit?limit=1${cursor && `&cursor=${encodeURIComponent(cursor)}`}`)
        const page = body as unknown as { entries: Entry[]; cursor?: string }
        expect(page.entries).to.have.length(1)
        paths.push(page.entries[0]!.path)
        cursor = page.cursor ?? ''
      } while (cursor !== '' && paths.filter((path) => path.includes(topic)).length < 3)
      expect(paths.filter((path) => path === `/v1/topics/${topic}`)).to.have.length(3)
    } finally {
      await other.stop()
    }
  })

  it('is for keys with the scope admin and all topics', async () => {
    const reader = server.addKey(['read'])
    const narrow = server.addKey(['admin'], [topic])
    for (const key of [reader, narrow])
      expect((await server.ask('GET', '/v1/audit', undefined, { key })).status).to.equal(403)
    expect((await server.ask('GET', '/v1/audit?cursor=x')).body.code).to.equal('invalid-cursor')
  })
})
