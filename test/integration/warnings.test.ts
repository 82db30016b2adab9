import { expect } from 'chai'
import { Redis } from 'ioredis'
import { codecs, retryIn, type WarningEvent } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { expectWarning } from '../support/hooks.js'
import { requireServerBin, startCluster, startRedis } from '../support/redis-server.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, onCleanup } from './fixtures.js'

/** All of the library from now on, by their codes. */
function recordWarnings(): string[] {
  const codes: string[] = []
  const listener = ({ name, code }: Error & { code?: string }): void => {
    if (name === 'RedelayedWarning') codes.push(code ?? '')
  }
  process.on('warning', listener)
  onCleanup(() => process.off('warning', listener))
  return codes
}

/** Node emits a warning in the turn after. */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

function makeReliable(client = makeClient()) {
  const name = uniqueName('warnings')
  forgetReliable(name)
  return { client, name, queue: client.getReliableQueue<string>(name, { codec: codecs.string() }) }
}

describe('a warning of the process', () => {
  afterEach(cleanUp)

  it('says that elements cannot be read with the codec', async () => {
    const warned = expectWarning(/REDELAYED_UNREADABLE/)
    const name = uniqueName('warnings')
    onCleanup(() => rawClient().unlink(name, `redelayed:quarantine:{${name}}`))
    const queue = makeClient().getBlockingQueue(name, { codec: codecs.json() })
    await rawClient().rpush(name, 'no JSON', 'neither', '"text"')
    expect(await queue.takeMany(3)).to.deep.equal(['text'])
    expect((await warned).message).to.match(/warnings.*json.*docs\/quarantine\.md.*this is said once/)
  })

  it('says that messages of a reliable queue cannot be read with the codec', async () => {
    const warned = expectWarning(/REDELAYED_UNREADABLE/)
    const { client, name, queue } = makeReliable()
    await queue.add('no JSON')
    expect(await client.getReliableQueue(name, { codec: codecs.json() }).poll()).to.equal(null)
    expect((await warned).message).to.include(name)
  })

  it('has the stack of a handler that fails', async () => {
    const warned = expectWarning(/REDELAYED_HANDLER_FAILED/)
    const { client, name, queue } = makeReliable()
    await queue.add('x')
    const worker = client.createWorker(queue, function sendMail() {
      throw new RangeError('mailbox full')
    })
    const warning = (await warned) as Error & { detail?: string }
    await worker.close()
    expect(warning.message).to.include(`queue "${name}": a handler failed at attempt 1`)
    expect(warning.detail).to.match(/^RangeError: mailbox full\n {4}at sendMail/)
  })

  for (const listens of ['client', 'queue', 'worker'] as const) {
    it(`is not given of a handler's failure that the ${listens} listens to`, async () => {
      const codes = recordWarnings()
      const { client, queue } = makeReliable()
      await queue.add('x')
      const outcomes: string[] = []
      const note = ({ outcome }: { outcome: string }): void => void outcomes.push(outcome)
      if (listens === 'client') client.on('settled', note)
      if (listens === 'queue') queue.on('settled', note)
      const worker = client.createWorker(queue, () => Promise.reject(new Error('failed')))
      if (listens === 'worker') worker.on('settled', note)
      await eventually(() => expect(outcomes).to.deep.equal(['failed']))
      await nextTurn()
      expect(codes).to.deep.equal([])
    })
  }

  it('is not given with warnings: false', async () => {
    const codes = recordWarnings()
    const { client, queue } = makeReliable(makeClient({ warnings: false }))
    const delay = Date.now()
    await queue.add('later', { delay })
    await queue.add('x')
    const worker = client.createWorker(queue, () => Promise.reject(new Error('failed')))
    await eventually(() => expect(worker.counts.failed).to.equal(1))
    await nextTurn()
    expect(codes).to.deep.equal([])
  })

  it('refuses another value of warnings', () => {
    expect(() => makeClient({ warnings: 'no' as never })).to.throw(/warnings: expected true or false/)
  })

  describe('about a delay that is a point in time', () => {
    it('is given once, and an event of each call', async () => {
      const codes = recordWarnings()
      const warned = expectWarning(/REDELAYED_TIMESTAMP_DELAY/)
      const { client, name, queue } = makeReliable()
      await queue.add('x', { delay: Date.now() + 5_000 })
      const today = new Date().toISOString().slice(0, 10)
      const { message } = await warned
      expect(message).to.include(`queue "${name}": a delay of`).and.include(`looks like the time ${today}`)
      expect(message).to.include('offerAt')
      const events: WarningEvent[] = []
      client.on('warning', (event) => events.push(event))
      await queue.add('y', { delay: Math.floor(Date.now() / 1_000) * 1_000 })
      await queue.add('z', { delay: 86_400_000 })
      await queue.add('z', { date: new Date(Date.now() + 86_400_000) })
      expect(events.map(({ code, queue: about }) => [code, about])).to.deep.equal([['REDELAYED_TIMESTAMP_DELAY', name]])
      await nextTurn()
      expect(codes).to.have.length(1)
    })

    it('is an event of every call that takes a delay', async () => {
      const { client, name, queue } = makeReliable()
      const delayed = client.getDelayedQueue(client.getQueue<string>(name, { codec: codecs.string() }))
      onCleanup(() => delayed.delete())
      const queues: unknown[] = []
      for (const source of [delayed, queue]) source.on('warning', ({ queue: about }) => queues.push(about))
      const delay = Date.now() + 60_000
      const ticket = await delayed.offer('a', delay)
      await delayed.offer('a', Math.floor(delay / 1_000), 'seconds')
      await delayed.offerAll([{ value: 'a', delay }])
      await delayed.reschedule(ticket, delay)
      const { id } = await queue.add('a')
      await queue.reschedule(id, delay)
      await queue.add('b')
      await (await queue.poll())?.negativeAcknowledge({ delay })
      // both queues have the same name, so each object gets all of them
      expect(queues).to.deep.equal(Array.from({ length: 12 }, () => name))
    })

    it('is given of the delay of retryIn', async () => {
      const warned = expectWarning(/REDELAYED_TIMESTAMP_DELAY/)
      const { client, queue } = makeReliable()
      await queue.add('x')
      client.createWorker(queue, () => retryIn(Date.now()))
      expect(await warned).to.have.property('code', 'REDELAYED_TIMESTAMP_DELAY')
    })
  })

  describe('about a server that deletes queues', () => {
    const args = ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru']

    async function start(more: string[]): Promise<number> {
      const server = await startRedis({ args: more })
      onCleanup(() => server.stop())
      return server.port
    }

    for (const owned of [true, false]) {
      it(`names its address, on a client of ${owned ? 'its own' : 'the user'}`, async function () {
        requireServerBin(this)
        const port = await start(args)
        const warned = expectWarning(/REDELAYED_EVICTION/)
        const redis = owned ? undefined : new Redis(port, '127.0.0.1', { lazyConnect: true })
        if (redis !== undefined) onCleanup(() => redis.disconnect())
        const client = makeClient(redis === undefined ? { host: '127.0.0.1', port } : { redis })
        await client.getQueue('x').size()
        expect((await warned).message).to.match(
          new RegExp(`the server at .*${port} has maxmemory-policy allkeys-lru: .*noeviction`),
        )
      })
    }

    it('is given of a cluster', async function () {
      requireServerBin(this)
      this.timeout(60_000)
      const cluster = await startCluster()
      onCleanup(() => cluster.stop())
      for (const { port } of cluster.servers) {
        const node = new Redis(port)
        await node.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lfu')
        node.disconnect()
      }
      const warned = expectWarning(/REDELAYED_EVICTION/)
      await makeClient({ cluster: cluster.nodes }).getQueue('x').size()
      expect((await warned).message).to.include('allkeys-lfu')
    })

    it('is not given to a listener, nor where the policy deletes no queue', async function () {
      requireServerBin(this)
      const codes = recordWarnings()
      const events: WarningEvent[] = []
      for (const [limit, policy] of [
        ['100mb', 'noeviction'],
        ['100mb', 'volatile-lru'],
        ['0', 'allkeys-lru'],
        ['100mb', 'allkeys-random'], // the last one: its event says that all answers are there
      ] as const) {
        const port = await start(['--maxmemory', limit, '--maxmemory-policy', policy])
        const client = makeClient({ host: '127.0.0.1', port })
        client.on('warning', (event) => events.push(event))
        await client.getQueue('x').size()
      }
      await eventually(() => expect(events.map(({ code }) => code)).to.deep.equal(['REDELAYED_EVICTION']))
      expect(events[0]!.message).to.include('allkeys-random')
      expect(codes).to.deep.equal([])
    })
  })
})
