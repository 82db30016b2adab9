/** The checks of probes: whether Redis answers, and whether a worker works. */
import { expect } from 'chai'
import { AuthError, ConnectionError, InvalidArgumentError, ShutdownError } from '../../src/index.js'
import { deadLettersOf, listKeys, reliableKeys } from '../../src/keys.js'
import { eventually } from '../support/events.js'
import { startCluster, startRedis } from '../support/redis-server.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { startProxy } from '../support/tcp-proxy.js'
import { cleanUp, makeClient, onCleanup, rawTo, rejection } from './fixtures.js'

function queueOf(client = makeClient()) {
  const name = uniqueName('health')
  onCleanup(() => rawClient().unlink(...[reliableKeys(name), reliableKeys(deadLettersOf(name))].flatMap(listKeys)))
  return { client, queue: client.getReliableQueue<string>(name) }
}

describe('health', function () {
  this.timeout(60_000)
  afterEach(cleanUp)

  describe('ping', () => {
    it('resolves with the milliseconds of the answer', async () => {
      expect(await makeClient().ping()).to.be.within(0, 5_000)
    })

    it('asks every master of a cluster', async () => {
      const cluster = await startCluster({ masters: 3 })
      onCleanup(() => cluster.stop())
      const [first] = cluster.nodes
      await makeClient({ cluster: [`redis://127.0.0.1:${first?.port}`] }).ping()
      for (const { port } of cluster.nodes) expect(await rawTo(port).info('commandstats')).to.include('cmdstat_ping:')
    })

    it('rejects when a master of a cluster is gone', async () => {
      const cluster = await startCluster({ masters: 3 })
      onCleanup(() => cluster.stop())
      const client = makeClient({ cluster: cluster.nodes.map(({ port }) => `redis://127.0.0.1:${port}`) })
      client.on('error', () => undefined)
      await client.ping()
      await cluster.servers[1]?.stop()
      await eventually(async () => {
        const error = await rejection(client.ping({ timeout: '1s' }))
        expect(error).to.be.an.instanceOf(ConnectionError)
      }, 10_000)
      // no command but these asks the cluster for its slots, and the answer stays the same
      for (let i = 0; i < 5; i++)
        expect(await rejection(client.ping({ timeout: '1s' }))).to.be.an.instanceOf(ConnectionError)
    })

    it('rejects when there is no server, within its timeout, with the address', async () => {
      const client = makeClient({ url: 'redis://:secret@127.0.0.1:1', connectTimeout: '10s' })
      const error = await rejection(client.ping({ timeout: '300ms' }))
      expect(error).to.be.an.instanceOf(ConnectionError).and.include({ code: 'ERR_CONNECTION', outcome: 'not-applied' })
      expect(error.message).to.include('127.0.0.1:1').and.include('300 ms').and.not.include('secret')
    })

    it('rejects when the server is silent', async () => {
      const proxy = await startProxy({ targetPort: Number(new URL(redisUrl()).port) })
      onCleanup(() => proxy.stop())
      const client = makeClient({ host: '127.0.0.1', port: proxy.port })
      await client.ping()
      proxy.blackhole(true)
      expect(await rejection(client.ping({ timeout: '200ms' }))).to.be.an.instanceOf(ConnectionError)
      proxy.blackhole(false)
      await client.ping()
    })

    it('rejects with an AuthError when the password is missing', async () => {
      const server = await startRedis({ args: ['--requirepass', 'secret'] })
      onCleanup(() => server.stop())
      const error = await rejection(makeClient({ host: '127.0.0.1', port: server.port, connectTimeout: '1s' }).ping())
      expect(error).to.be.an.instanceOf(AuthError)
    })

    it('rejects after a shutdown, and with an option that it does not know', async () => {
      const client = makeClient()
      expect(await rejection(client.ping({ patience: 1 } as never))).to.be.an.instanceOf(InvalidArgumentError)
      await client.shutdown()
      expect(await rejection(client.ping())).to.be.an.instanceOf(ShutdownError)
    })
  })

  describe('of a worker', () => {
    it('counts no time of a handler that has ended, while its acknowledgement waits for Redis', async () => {
      const proxy = await startProxy({ targetPort: Number(new URL(redisUrl()).port) })
      onCleanup(() => proxy.stop())
      const { queue } = queueOf()
      await queue.add('x')
      const client = makeClient({ host: '127.0.0.1', port: proxy.port })
      client.on('error', () => undefined)
      const worker = client.createWorker(client.getReliableQueue(queue.name), () => proxy.blackhole(true))
      await eventually(() => expect(worker.isIdle).to.equal(false))
      await eventually(() => expect(worker.health()).to.include({ active: 0, longestMs: 0 }))
      expect(worker.isIdle).to.equal(false)
      proxy.blackhole(false)
    })

    it('names the last poll and the last success, and how long a handler has been running', async () => {
      const { client, queue } = queueOf()
      let finish = (): void => undefined
      const worker = client.createWorker(queue, () => new Promise<void>((resolve) => (finish = resolve)))
      expect(worker.health()).to.deep.include({ isAlive: true, state: 'running', lastSuccessAt: null, active: 0 })
      await eventually(() => expect(worker.health().lastPollAt).to.be.an.instanceOf(Date))
      await queue.add('x')
      await eventually(() => expect(worker.health().active).to.equal(1))
      await eventually(() => expect(worker.health().longestMs).to.be.greaterThan(20))
      // no poll is due while all handlers are busy
      expect(worker.health({ maxSilence: 1 }).isAlive).to.equal(true)
      finish()
      await eventually(() => expect(worker.health().lastSuccessAt).to.be.an.instanceOf(Date))
      expect(worker.health()).to.include({ active: 0, longestMs: 0 })
      worker.pause()
      await eventually(() => expect(worker.health({ maxSilence: 1 })).to.include({ isAlive: true, state: 'paused' }))
      await worker.close()
      expect(worker.health()).to.include({ isAlive: false, state: 'closed' })
    })

    it('is not alive when Redis has answered no poll for too long, and is again when it does', async () => {
      const proxy = await startProxy({ targetPort: Number(new URL(redisUrl()).port) })
      onCleanup(() => proxy.stop())
      const { client, queue } = queueOf(makeClient({ host: '127.0.0.1', port: proxy.port, sweepInterval: 100 }))
      client.on('error', () => undefined)
      const worker = client.createWorker(queue, () => undefined)
      await eventually(() => expect(worker.health().lastPollAt).to.be.an.instanceOf(Date))
      expect(worker.health({ maxSilence: '1m' }).isAlive).to.equal(true)
      proxy.blackhole(true)
      await eventually(() => expect(worker.health({ maxSilence: '1s' }).isAlive).to.equal(false), 15_000)
      expect(worker.health({ maxSilence: '5m' }).isAlive).to.equal(true)
      proxy.blackhole(false)
      await eventually(() => expect(worker.health({ maxSilence: '1s' }).isAlive).to.equal(true), 30_000)
    })

    it('is not alive when Redis was never there', async () => {
      const client = makeClient({ url: 'redis://127.0.0.1:1', connectTimeout: '200ms' })
      client.on('error', () => undefined)
      const worker = client.createWorker(client.getReliableQueue(uniqueName('health')), () => undefined)
      expect(worker.health({ maxSilence: '4s' }).isAlive).to.equal(true)
      await eventually(() => expect(worker.health({ maxSilence: '4s' }).isAlive).to.equal(false), 10_000)
    })

    it('is not alive after its client was shut down', async () => {
      const { client, queue } = queueOf()
      const worker = client.createWorker(queue, () => undefined)
      expect(worker.health().isAlive).to.equal(true)
      await client.shutdown()
      await eventually(() => expect(worker.health()).to.include({ isAlive: false, state: 'closed' }))
    })

    it('has the polls of the shards of a sharded queue', async () => {
      const client = makeClient()
      const name = uniqueName('health')
      const queue = client.getShardedReliableQueue<string>(name, { shards: 2 })
      onCleanup(() => Promise.all(queue.shards.map((shard) => shard.clear())))
      const worker = client.createWorker(queue, () => undefined)
      await eventually(() => expect(worker.health().lastPollAt).to.be.an.instanceOf(Date))
    })
  })
})
