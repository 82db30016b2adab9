import { expect } from 'chai'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ServerSettings } from '../config/server-settings.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'
import { startTestService, type Answer, type TestService } from './support/service.js'

/** The settings that no other file tests: see settings-each.test.ts. */
describe('the effects of the settings of the service', function () {
  this.timeout(120_000)
  let redis: LosableRedis
  let dir: string
  let service: TestService | undefined

  // of its own: topics and endpoints are counted over all instances of a Redis
  before(async () => {
    redis = await LosableRedis.start()
  })
  after(() => redis.stop())
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-effects-'))
  })
  afterEach(async () => {
    await service?.stop()
    service = undefined
    rmSync(dir, { recursive: true, force: true })
  })

  const start = async (given: Partial<ServerSettings>): Promise<TestService> =>
    (service = await startTestService({ redis: redis.url, ...given }))

  function expectProblem({ status, body }: Answer, expected: number, code: string): void {
    expect([status, body.code], JSON.stringify(body)).to.deep.equal([expected, code])
  }

  it('--host: the service listens on all addresses', async () => {
    const given = await start({ host: '0.0.0.0' })
    expect(given.url).to.match(/^http:\/\/0\.0\.0\.0:\d+$/)
    expect((await given.ask('GET', '/livez')).status).to.equal(200)
  })

  it('--journal-mode: SQL follows, or there is no journal', async () => {
    const journal = `sqlite:${join(dir, 'journal.db')}`
    const one = await start({ journal, journalMode: 'async' })
    const topic = one.topic()
    await one.ask('POST', `/v1/topics/${topic}/messages`, { id: 'a', bizKey: 'k', delay: 60_000 })
    await eventually(async () => {
      const { status, body } = await one.ask('GET', `/v1/messages?bizKey=k&topic=${topic}`)
      expect([status, body.messages.map(({ id }) => id)]).to.deep.equal([200, ['a']])
    }, 30_000)
    const { body } = await one.ask('GET', '/v1/overview')
    expect((body as unknown as { journal: unknown }).journal).to.include({ mode: 'async', kind: 'sqlite' })
    await one.stop()
    const none = await start({ journal, journalMode: 'off' })
    expect(none.service.journal).to.equal(undefined)
    expectProblem(await none.ask('POST', '/v1/restores', {}), 409, 'no-journal')
  })

  it('--journal-retention: a message that ended before is forgotten', async () => {
    const journal = `sqlite:${join(dir, 'journal.db')}`
    const one = await start({ journal })
    const topic = one.topic()
    const path = `/v1/topics/${topic}/messages/a`
    await one.ask('POST', `/v1/topics/${topic}/messages`, { id: 'a', delay: 60_000 })
    expect((await one.ask('DELETE', path)).status).to.equal(204)
    await eventually(async () => expect((await one.ask('GET', path)).body).to.have.property('state', 'removed'))
    await one.service.close()
    const other = await start({ journal, journalRetention: 1_000 })
    // the journal deletes such rows once a minute
    await eventually(async () => expectProblem(await other.ask('GET', path), 404, 'message-not-found'), 75_000)
  })

  it('--max-topics: one more is refused', async () => {
    const before = ((await (await start({})).ask('GET', '/v1/topics')).body.topics ?? []).length
    await service?.stop()
    const given = await start({ maxTopics: before + 1 })
    expect((await given.ask('PUT', `/v1/topics/${given.topic()}`, {})).status).to.equal(201)
    expectProblem(await given.ask('PUT', `/v1/topics/${given.topic()}`, {}), 429, 'too-many-topics')
    expectProblem(await given.ask('POST', `/v1/topics/${given.topic()}/messages`, {}), 429, 'too-many-topics')
  })

  it('--max-batch: a batch of one more is refused', async () => {
    const given = await start({ maxBatch: 2 })
    const path = `/v1/topics/${given.topic()}/messages/batch`
    expect((await given.ask('POST', path, [{}, {}])).status).to.equal(200)
    expectProblem(await given.ask('POST', path, [{}, {}, {}]), 400, 'invalid-request')
    const headers = { 'content-type': 'application/x-ndjson' }
    expectProblem(await given.ask('POST', path, undefined, { raw: '{}\n{}\n{}\n', headers }), 400, 'invalid-request')
  })

  it('--max-wait: a longer wait ends by then', async () => {
    const given = await start({ maxWait: 50 })
    const begun = performance.now()
    const { status, body } = await given.ask('POST', `/v1/topics/${given.topic()}/receive`, { wait: 60_000 })
    expect([status, body.messages]).to.deep.equal([200, []])
    expect(performance.now() - begun).to.be.within(45, 50_000)
  })

  it('--max-event-streams: one more is refused', async () => {
    const given = await start({ maxEventStreams: 1 })
    const name = given.topic()
    await given.ask('PUT', `/v1/topics/${name}`, {})
    for (const path of [`/v1/events?topic=${name}`, '/v1/overview/stream']) {
      const hangUp = new AbortController()
      const headers = { authorization: `Bearer ${given.key}` }
      const { status } = await fetch(given.url + path, { headers, signal: hangUp.signal })
      expect(status, path).to.equal(200)
      expectProblem(await given.ask('GET', path), 429, 'too-many-streams')
      hangUp.abort()
    }
  })

  it('--webhook-ports, --webhook-networks, --webhook-http: endpoints elsewhere are refused', async () => {
    const strict = await start({ webhookHttp: false, webhookPorts: [443, 8_443], webhookNetworks: ['10.1.0.0/16'] })
    const made: string[] = []
    const make = async (url: string): Promise<number> => {
      const { status, body } = await strict.ask('POST', '/v1/endpoints', { url })
      if (status === 201) made.push(body.id)
      return status
    }
    for (const url of ['https://example.com', 'https://example.com:8443/x', 'https://10.1.2.3/'])
      expect(await make(url), url).to.equal(201)
    for (const url of ['http://example.com', 'https://example.com:444/', 'https://10.2.0.1/', 'https://127.0.0.1/'])
      expect(await make(url), url).to.equal(400)
    for (const id of made) await strict.ask('DELETE', `/v1/endpoints/${id}?force`)
  })

  it('--max-endpoints: one more is refused', async () => {
    const given = await start({ maxEndpoints: 1 })
    const made = await given.ask('POST', '/v1/endpoints', { url: 'https://example.com' })
    expect(made.status).to.equal(201)
    expectProblem(await given.ask('POST', '/v1/endpoints', { url: 'https://example.com' }), 429, 'too-many-endpoints')
    expect((await given.ask('DELETE', `/v1/endpoints/${made.body.id}`)).status).to.equal(204)
    await service?.stop()
    const none = await start({ maxEndpoints: 0 })
    expectProblem(await none.ask('POST', '/v1/endpoints', { url: 'https://example.com' }), 429, 'too-many-endpoints')
  })

  it('--shutdown-timeout: a request that does not end is ended', async () => {
    const given = await start({ shutdownTimeout: 100, requestTimeout: 600_000 })
    const { hostname, port } = new URL(given.url)
    const socket = connect(Number(port), hostname)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => undefined)
    const head = ['POST /v1/topics/a/messages HTTP/1.1', 'Host: a', `Authorization: Bearer ${given.key}`]
    socket.write([...head, 'Content-Type: application/json', 'Content-Length: 100', '', '{'].join('\r\n'))
    // the service has its head, and waits for the rest
    await eventually(async () => {
      expect((await given.ask('GET', '/metrics')).body).to.match(/^redelayed_request_body_bytes 100$/m)
    }, 30_000)
    const begun = performance.now()
    await given.service.close()
    await closed
    expect(performance.now() - begun, 'without the flag it takes ten seconds').to.be.below(9_000)
  })

  it('--log-level: each request is logged, or nothing', async () => {
    const program = fileURLToPath(new URL('../cli/main.ts', import.meta.url))
    for (const [level, expected] of [
      ['debug', true],
      ['silent', false],
    ] as const) {
      const args = ['--import=tsx', program, '--port', '0', '--data-dir', dir, '--redis', redis.url]
      const child = spawn(process.execPath, [...args, '--log-level', level], { stdio: ['ignore', 'pipe', 'inherit'] })
      let out = ''
      child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()))
      const ended = new Promise((resolve) => child.once('close', resolve))
      try {
        const url = await eventually(async () => {
          const [, found] = /listens on (http:\S+)/.exec(out) ?? []
          if (found === undefined) throw new Error(`it does not listen: ${out}`)
          return found
        }, 90_000)
        expect((await fetch(`${url}/livez`, { headers: { connection: 'close' } })).status).to.equal(200)
        if (expected) await eventually(() => expect(out).to.include('"route":"/livez"'), 30_000)
      } finally {
        child.kill('SIGTERM')
        await ended
      }
      expect(out.includes('"route":"/livez"'), out).to.equal(expected)
    }
  })
})
