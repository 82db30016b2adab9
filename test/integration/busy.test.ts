import { expect } from 'chai'
import { Redis } from 'ioredis'
import { codecs } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { uniqueName } from '../support/redis.js'
import { requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { cleanUp, makeClient, onCleanup } from './fixtures.js'

/** How long another program's script runs, and how long the server is free between two of them. */
const BUSY_MS = 2_500
const FREE_MS = 300
const BURSTS = 3
/** Within so long after the server is free what came due meanwhile has to be there. */
const SOON_MS = 600

describe('a server that is BUSY again and again', function () {
  this.timeout(30_000)
  let server: RedisServer

  before(async function () {
    requireServerBin(this)
    server = await startRedis({ args: ['--lua-time-limit', '20'] })
  })
  after(() => server?.stop())
  afterEach(cleanUp)

  async function connected(): Promise<Redis> {
    const redis = new Redis({ port: server.port, maxRetriesPerRequest: 0 })
    redis.on('error', () => undefined)
    onCleanup(() => redis.disconnect())
    await redis.ping()
    return redis
  }

  it('delivers messages that came due meanwhile in its next free moment, to takes and to workers', async () => {
    const client = makeClient({ port: server.port, host: '127.0.0.1' })
    client.on('error', () => undefined)
    const queue = client.getBlockingQueue<string>(uniqueName(), { codec: codecs.string() })
    const delayed = client.getDelayedQueue(queue)
    const jobs = client.getReliableQueue<string>(uniqueName(), { codec: codecs.string() })
    const came = new Map<string, number>()
    client.createWorker(jobs, (text) => void came.set(text, performance.now()))
    const taking = (async () => {
      for (let n = 0; n <= BURSTS; n++) came.set(await queue.take(), performance.now())
    })()
    await delayed.offer('taken 0', 1)
    await jobs.add('handled 0')
    await eventually(() => expect([...came.keys()]).to.have.members(['taken 0', 'handled 0']))
    const [hog, killer] = [await connected(), await connected()]

    const late: Record<string, number> = {}
    for (let burst = 1; burst <= BURSTS; burst++) {
      await delayed.offer(`taken ${burst}`, 100)
      await jobs.add(`handled ${burst}`, { delay: 100 })
      const running = hog.eval('while true do end', 0).catch((error: Error) => error.message)
      await new Promise((resolve) => setTimeout(resolve, BUSY_MS)) // messages come due meanwhile
      await eventually(() => killer.script('KILL'))
      expect(await running).to.match(/killed/i)
      const freeAt = performance.now()
      await new Promise((resolve) => setTimeout(resolve, FREE_MS)) // all the time that the server is free
      for (const what of [`taken ${burst}`, `handled ${burst}`]) {
        late[what] =
          (await eventually(() => came.get(what) ?? Promise.reject(new Error(`${what} is not there`)), 10_000)) - freeAt
      }
    }
    await taking
    expect(Object.entries(late).filter(([, ms]) => ms > SOON_MS)).to.deep.equal([])
  })
})
