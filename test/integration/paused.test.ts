import { expect } from 'chai'
import { codecs } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { uniqueName } from '../support/redis.js'
import { requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { cleanUp, makeClient, rawTo } from './fixtures.js'

const PAUSE_MS = 1_500

describe('CLIENT PAUSE WRITE, as before a manual failover', function () {
  this.timeout(30_000)
  let server: RedisServer

  before(async function () {
    requireServerBin(this)
    server = await startRedis()
  })
  after(() => server?.stop())
  afterEach(cleanUp)

  it('ends no server when a wait ends, or another begins, in the pause', async () => {
    const client = makeClient({ url: server.url })
    const raw = rawTo(server.port)
    // without the transfers of consumers, whose scripts would hold CLIENT UNBLOCK back by chance
    const options = { codec: codecs.string(), consumersDeliver: false }
    const one = client.getBlockingQueue<string>(uniqueName(), options)
    const other = client.getBlockingQueue<string>(uniqueName(), options)
    const runId = async () => /run_id:(\w+)/.exec(await raw.info('server'))?.[1]
    const before = await runId()
    expect(await one.poll(10), 'opens the connections').to.equal(null)

    await raw.call('CLIENT', 'PAUSE', PAUSE_MS, 'WRITE')
    const ended = one.poll(100)
    await eventually(async () => expect(String(await raw.call('CLIENT', 'LIST'))).to.match(/cmd=bl\w+/))
    const waiting = other.take()
    expect(await ended).to.equal(null)
    await raw.rpush(other.name, 'after the pause')
    expect(await waiting).to.equal('after the pause')
    expect(await runId()).to.equal(before)
  })
})
