import { expect } from 'chai'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sqlBin, SqlServerProcess, type SqlKind } from '../../../test/support/sql-server.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'
import { startTestService, type TestService } from './support/service.js'

for (const kind of ['postgres', 'mariadb'] satisfies SqlKind[]) {
  describe(`the service while its journal in ${kind} is away`, function () {
    this.timeout(240_000)
    let sql: SqlServerProcess
    let redis: LosableRedis
    let server: TestService
    let receiver: Server
    let webhooks: string[]

    before(async function () {
      if (sqlBin(kind) !== undefined) return
      if (process.env['CI']) throw new Error(`${kind} is not installed`)
      this.skip()
    })
    beforeEach(async () => {
      webhooks = []
      receiver = createServer((request, response) => {
        webhooks.push(String(request.headers['webhook-id']))
        response.writeHead(204, { connection: 'close' }).end()
      })
      await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
      ;[sql, redis] = await Promise.all([SqlServerProcess.start(kind), LosableRedis.start()])
    })
    afterEach(async () => {
      await server?.stop()
      await redis?.stop()
      await sql?.stop()
      await new Promise((resolve) => receiver.close(resolve))
    })

    const start = async (journalMode: 'sync' | 'async'): Promise<void> => {
      const { port } = receiver.address() as AddressInfo
      const journal = await sql.create('journal')
      const outside = { webhookNetworks: ['127.0.0.0/8'], webhookPorts: [port] }
      server = await startTestService({ redis: redis.url, journal, journalMode, ...outside })
    }
    const ask: TestService['ask'] = (...args) => server.ask(...args)
    const push = (topic: string, id: string, more = {}) => ask('POST', `/v1/topics/${topic}/messages`, { id, ...more })
    const stateOf = async (topic: string, id: string): Promise<string> =>
      (await ask('GET', `/v1/topics/${topic}/messages/${id}`)).body.state
    const take = async (topic: string, id: string): Promise<void> => {
      const { status, body } = await ask('POST', `/v1/topics/${topic}/receive`, { wait: 20_000 })
      expect([status, body.messages.map((each) => each.id)]).to.deep.equal([200, [id]])
      const answer = await ask('POST', '/v1/leases/acknowledge', { leases: [body.messages[0]?.lease] })
      expect(answer.body.results).to.deep.equal(['ok'])
    }

    it('refuses pushes with a 503 and Retry-After in `sync`; consumers and webhooks continue, and SQL learns of it', async () => {
      await start('sync')
      const [taken, sent] = [server.topic(), server.topic()]
      const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
      const { body: endpoint } = await ask('POST', '/v1/endpoints', { url })
      await ask('PUT', `/v1/topics/${sent}`, { endpoint: endpoint.id })
      expect((await push(taken, 'a')).status).to.equal(201)
      expect((await push(sent, 'w', { delay: 2_000 })).status).to.equal(201)
      await sql.kill()
      const { status, body, headers } = await push(taken, 'refused')
      expect([status, body.code, headers.get('retry-after')]).to.deep.equal([503, 'journal-unavailable', '1'])
      await take(taken, 'a')
      await eventually(() => expect(webhooks).to.deep.equal(['w']), 60_000)
      await eventually(async () => {
        const ready = await ask('GET', '/readyz')
        expect([ready.status, ready.body]).to.deep.equal([200, { status: 'ok', journal: 'unavailable' }])
      }, 30_000)
      expect((await ask('GET', '/metrics')).body).to.match(/^redelayed_journal_up 0$/m)
      await sql.restart()
      await eventually(async () => {
        expect(await stateOf(taken, 'a')).to.equal('handled')
        expect(await stateOf(sent, 'w')).to.equal('handled')
      }, 60_000)
      await eventually(async () => expect((await push(taken, 'refused')).status).to.equal(201), 30_000)
      await take(taken, 'refused')
      expect(webhooks).to.deep.equal(['w'])
    })

    it('accepts pushes in `async`, which SQL has later', async () => {
      await start('async')
      const topic = server.topic()
      expect((await push(topic, 'a')).status).to.equal(201)
      await sql.kill()
      expect((await push(topic, 'b')).status).to.equal(201)
      await take(topic, 'a')
      await take(topic, 'b')
      await sql.restart()
      await eventually(async () => expect(await stateOf(topic, 'b')).to.equal('handled'), 60_000)
    })
  })
}
