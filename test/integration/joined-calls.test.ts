import { expect } from 'chai'
import { codecs, QueueFullError, type ReliableQueue } from '../../src/index.js'
import { requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { cleanUp, makeClient, numbers, onCleanup, rawTo, rejection } from './fixtures.js'

const LATER = 600_000
const string = { codec: codecs.string() }

describe('Calls of one turn of the event loop', () => {
  let server: RedisServer
  before(async function () {
    requireServerBin(this)
    server = await startRedis()
  })
  after(() => server.stop())
  afterEach(cleanUp)

  /** How many scripts the server runs during an action. */
  async function scriptsOf(action: () => Promise<unknown>): Promise<number> {
    const raw = rawTo(server.port)
    const read = async (): Promise<number> => {
      const stats = await raw.info('commandstats')
      return [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce(
        (sum, [, calls]) => sum + Number(calls),
        0,
      )
    }
    const before = await read()
    await action()
    return (await read()) - before
  }

  for (const layout of ['redisson', 'compact'] as const) {
    it(`share a script when they offer, layout '${layout}', and each has its own ticket`, async () => {
      const client = makeClient({ host: '127.0.0.1', port: server.port })
      const queue = client.getQueue<string>(`joined ${layout}`, string)
      const delayed = client.getDelayedQueue(queue, { layout, deliver: false })
      await Promise.all(numbers(2).map((value) => delayed.offer(value, LATER))) // the server gets the script
      let tickets: string[] = []
      const scripts = await scriptsOf(async () => {
        const offers = numbers(40).map((value) => delayed.offer(`o${value}`, LATER + Number(value)))
        tickets = await Promise.all(offers)
      })
      expect(scripts).to.equal(1)
      expect(new Set(tickets).size).to.equal(40)
      expect(await delayed.cancel(tickets[17]!)).to.equal(true)
      expect(await delayed.contains('o17')).to.equal(false)
      expect(await delayed.size()).to.equal(41)
      expect(
        await scriptsOf(() => Promise.all([delayed.offer('a', LATER), delayed.offerAt('b', new Date(2 ** 45))])),
      ).to.equal(2)
      await delayed.clear()
    })
  }

  it('fail each for itself', async () => {
    const client = makeClient({ host: '127.0.0.1', port: server.port })
    const delayed = client.getDelayedQueue(client.getQueue<string>('joined failures', string), { deliver: false })
    const [good, tooLate, bad, other] = await Promise.allSettled([
      delayed.offer('good', LATER),
      delayed.offer('too late', Number.MAX_SAFE_INTEGER),
      delayed.offer('bad', -1),
      delayed.offer('other', LATER),
    ])
    expect([good, tooLate, bad, other].map(({ status }) => status)).to.deep.equal([
      'fulfilled',
      'rejected',
      'rejected',
      'fulfilled',
    ])
    expect(await delayed.readAll()).to.deep.equal(['good', 'other'])
    await delayed.clear()
  })

  it('are carried out when a shutdown follows in the same turn', async () => {
    const client = makeClient({ host: '127.0.0.1', port: server.port })
    const delayed = client.getDelayedQueue(client.getQueue<string>('joined shutdown', string), { deliver: false })
    const reliable = client.getReliableQueue<string>('joined shutdown', string)
    await Promise.all([delayed.size(), reliable.size()])
    const calls = Promise.all([delayed.offer('a', LATER), reliable.add('b')])
    await client.shutdown()
    await calls
    const raw = rawTo(server.port)
    expect(await raw.zcard('redisson_delay_queue_timeout:{joined shutdown}')).to.equal(1)
    expect(await raw.hlen('redelayed:reliable:messages:{joined shutdown}')).to.equal(1)
  })

  describe('of a reliable queue', () => {
    let queue: ReliableQueue<string>
    beforeEach(async function () {
      queue = makeClient({ host: '127.0.0.1', port: server.port }).getReliableQueue<string>(
        `joined ${this.currentTest!.title}`,
        string,
      )
      await queue.addMany(numbers(2).map((payload) => ({ payload }))) // the server gets the script
      onCleanup(() => queue.clear())
    })

    it('share a script when they add, and each has its own answer', async () => {
      const scripts = await scriptsOf(async () => {
        const adding = [
          ...numbers(40).map((payload) => queue.add(payload, { id: `id ${payload}` })),
          queue.add('again', { id: 'id 7' }),
          queue.addMany([
            { payload: 'x', id: 'x' },
            { payload: 'y', id: 'y' },
          ]),
        ]
        const added = (await Promise.all(adding)).flat()
        expect(added.map(({ id }) => id)).to.deep.equal([...numbers(40).map((n) => `id ${n}`), 'id 7', 'x', 'y'])
        expect(added.filter(({ outcome }) => outcome !== 'added')).to.deep.equal([{ id: 'id 7', outcome: 'kept' }])
      })
      expect(scripts).to.equal(1)
      expect(await queue.size()).to.equal(44)
    })

    it('take scripts of their own where they say what becomes of a message that is there', async () => {
      const scripts = await scriptsOf(async () => {
        const answers = await Promise.all([
          queue.add('a', { id: 'a' }),
          queue.add('b', { id: 'a', existing: 'replace' }),
          queue.add('c', { id: 'c' }),
        ])
        expect(answers.map(({ outcome }) => outcome)).to.deep.equal(['added', 'replaced', 'added'])
      })
      expect(scripts).to.equal(2)
    })

    it('fail each for itself when the queue is full', async () => {
      await queue.setConfig({ maxSize: 3 })
      const [first, second] = [queue.add('a'), rejection(queue.add('b'))]
      expect((await first).outcome).to.equal('added')
      expect(await second).to.be.instanceOf(QueueFullError)
    })
  })
})
