import { expect } from 'chai'
import {
  codecs,
  ConnectionError,
  QueueFullError,
  RedelayedError,
  type Added,
  type ReliableQueue,
} from '../../src/index.js'
import { reliableKeys } from '../../src/keys.js'
import { eventually } from '../support/events.js'
import { uniqueName } from '../support/redis.js'
import { requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { nextTurn } from '../../src/timing/pause.js'
import { startProxy, type TcpProxy } from '../support/tcp-proxy.js'
import { cleanUp, makeClient, numbers, onCleanup, rawKeys, rawTo, redisNow, rejection } from './fixtures.js'

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
      // the server gets both scripts
      await Promise.all(numbers(2).map((value) => delayed.offer(value, LATER)))
      await delayed.offer('alone', LATER)
      let tickets: string[] = []
      const scripts = await scriptsOf(async () => {
        const offers = numbers(40).map((value) => delayed.offer(`o${value}`, LATER + Number(value)))
        tickets = await Promise.all(offers)
      })
      expect(scripts).to.equal(1)
      expect(new Set(tickets).size).to.equal(40)
      expect(await delayed.cancel(tickets[17]!)).to.equal(true)
      expect(await delayed.contains('o17')).to.equal(false)
      expect(await delayed.size()).to.equal(42)
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

  for (const layout of ['redisson', 'compact'] as const) {
    it(`keep their order, also of dates and delays and of many at once, layout '${layout}'`, async () => {
      const client = makeClient({ host: '127.0.0.1', port: server.port })
      const queue = client.getQueue<string>(`joined order ${layout}`, string)
      const delayed = client.getDelayedQueue(queue, { layout, deliver: false })
      const date = new Date((await redisNow(rawTo(server.port))) + LATER)
      const offers = [
        delayed.offer('a', LATER),
        delayed.offerAt('b', date),
        delayed.offer('c', LATER),
        delayed.offerAll([{ value: 'd', delay: LATER }]),
        ...numbers(1_200).map((value) => delayed.offer(value, LATER)),
      ]
      await nextTurn() // they are sent, and no reply can have come
      offers.push(delayed.offer('last', LATER))
      await Promise.all(offers)
      const values = await delayed.readAll()
      if (layout === 'redisson') expect(values).to.deep.equal(['a', 'b', 'c', 'd', ...numbers(1_200), 'last'])
      else expect(values.filter((value) => value !== 'b').at(-1)).to.equal('last')
      await delayed.clear()
    })
  }

  it('that the user has no right to make fail without the others', async () => {
    const admin = rawTo(server.port)
    await admin.acl('SETUSER', 'mute', 'on', '>secret', '~*', '+@all', 'resetchannels')
    onCleanup(() => admin.acl('DELUSER', 'mute'))
    const owner = makeClient({ host: '127.0.0.1', port: server.port })
    const name = 'joined rights'
    const head = owner.getDelayedQueue(owner.getQueue<string>(name, string), { deliver: false })
    await head.offer('head', LATER)
    const client = makeClient({ host: '127.0.0.1', port: server.port, username: 'mute', password: 'secret' })
    const delayed = client.getDelayedQueue(client.getQueue<string>(name, string), { deliver: false })
    const ended = await Promise.allSettled([
      delayed.offer('behind', 2 * LATER),
      delayed.offer('before', 1_000),
      delayed.offer('also before', 2_000),
    ])
    expect(ended.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'rejected'])
    const [, first, second] = ended as PromiseRejectedResult[]
    expect(first!.reason).to.be.instanceOf(RedelayedError).and.not.equal(second!.reason)
    expect(await head.readAll()).to.deep.equal(['head', 'behind'])
    await head.clear()
  })

  it('each get an error of their own when the connection breaks', async () => {
    const proxy = await startProxy({ targetPort: server.port })
    onCleanup(() => proxy.stop())
    const client = makeClient({ host: '127.0.0.1', port: proxy.port, commandTimeout: 500, connectTimeout: 500 })
    const delayed = client.getDelayedQueue(client.getQueue<string>('joined break', string), { deliver: false })
    const reliable = client.getReliableQueue<string>('joined break', string)
    await Promise.all([delayed.size(), reliable.size()])
    await proxy.stop()
    for (const add of [() => delayed.offer('a', 100), () => reliable.add('a')]) {
      const [first, second] = await Promise.all([rejection(add()), rejection(add())])
      expect(first).to.be.instanceOf(ConnectionError).and.not.equal(second)
      expect(second).to.be.instanceOf(ConnectionError)
    }
  })

  it('are carried out when a shutdown follows in the same turn', async () => {
    const client = makeClient({ host: '127.0.0.1', port: server.port })
    const delayed = client.getDelayedQueue(client.getQueue<string>('joined shutdown', string), { deliver: false })
    const reliable = client.getReliableQueue<string>('joined shutdown', string)
    await Promise.all([delayed.size(), reliable.size()])
    const calls = Promise.all([
      ...['a', 'b'].map((value) => delayed.offer(value, LATER)),
      ...['a', 'b'].map((payload) => reliable.add(payload)),
    ])
    await client.shutdown()
    await calls
    const raw = rawTo(server.port)
    expect(await raw.zcard('redisson_delay_queue_timeout:{joined shutdown}')).to.equal(2)
    expect(await raw.hlen('redelayed:reliable:messages:{joined shutdown}')).to.equal(2)
  })

  describe('whose reply is lost', () => {
    /** Resolves when the server has carried out a script whose reply does not reach the client; then the connection breaks. */
    async function lose(proxy: TcpProxy, calls: () => Promise<unknown>[], isDone: () => Promise<boolean>) {
      proxy.blackhole('toClient')
      const ended = Promise.allSettled(calls())
      await eventually(async () => expect(await isDone()).to.equal(true))
      proxy.blackhole(false)
      return ended
    }

    for (const layout of ['redisson', 'compact'] as const) {
      it(`are repeated, each for itself, and offered once, layout '${layout}'`, async () => {
        const proxy = await startProxy({ targetPort: server.port })
        onCleanup(() => proxy.stop())
        const name = uniqueName()
        const client = makeClient({ host: '127.0.0.1', port: proxy.port })
        const delayed = client.getDelayedQueue(client.getQueue<string>(name, string), { layout, deliver: false })
        await Promise.all(numbers(2).map(() => delayed.offer('first', LATER))) // the server has the script
        const { timeouts } = rawKeys(name)
        const raw = rawTo(server.port)
        const ended = await lose(
          proxy,
          () => numbers(40).map((value) => delayed.offer(value, LATER)),
          async () => (await raw.zcard(timeouts)) === 42,
        )
        expect(ended.filter(({ status }) => status === 'rejected')).to.deep.equal([])
        const tickets = (ended as PromiseFulfilledResult<string>[]).map(({ value }) => value)
        expect(new Set(tickets).size).to.equal(40)
        expect(await delayed.size()).to.equal(42)
        expect(await Promise.all(tickets.map((ticket) => delayed.cancel(ticket)))).to.not.include(false)
        expect(await delayed.readAll()).to.deep.equal(['first', 'first'])
        await delayed.clear()
      })
    }

    it('fail only for messages that may have been delivered', async () => {
      const proxy = await startProxy({ targetPort: server.port })
      onCleanup(() => proxy.stop())
      const client = makeClient({ host: '127.0.0.1', port: proxy.port })
      const name = uniqueName()
      const delayed = client.getDelayedQueue(client.getQueue<string>(name, string), { deliver: false })
      await Promise.all(numbers(2).map(() => delayed.offer('first', LATER)))
      const raw = rawTo(server.port)
      const ended = await lose(
        proxy,
        () => [delayed.offer('later', LATER), delayed.offer('soon', 1), delayed.offer('as soon', 1)],
        async () => (await raw.zcount(rawKeys(name).timeouts, 0, (await redisNow(raw)) - 1)) === 2, // both are due
      )
      const [later, ...soon] = ended
      expect(later?.status).to.equal('fulfilled')
      const errors = soon.map((each) => (each as PromiseRejectedResult).reason as ConnectionError)
      expect(errors.map((error) => error.outcome)).to.deep.equal(['unknown', 'unknown'])
      expect(errors[0]).to.be.instanceOf(ConnectionError).and.not.equal(errors[1])
      expect((await delayed.readAll()).sort()).to.deep.equal(['as soon', 'first', 'first', 'later', 'soon'])
      await delayed.clear()
    })

    it('are repeated, each for itself, and added once', async () => {
      const proxy = await startProxy({ targetPort: server.port })
      onCleanup(() => proxy.stop())
      const queue = makeClient({ host: '127.0.0.1', port: proxy.port }).getReliableQueue<string>(uniqueName(), string)
      onCleanup(() => queue.clear())
      await queue.addMany(numbers(2).map((payload) => ({ payload })))
      const raw = rawTo(server.port)
      const ended = await lose(
        proxy,
        () => [
          ...numbers(20).map((payload) => queue.add(payload, { delay: LATER })),
          ...numbers(20, 20).map((payload) => queue.add(payload, { id: payload, delay: LATER, group: 'g' })),
          queue.addMany(numbers(3, 40).map((payload) => ({ payload, delay: LATER }))),
        ],
        async () => (await raw.hlen(reliableKeys(queue.name).messages)) === 45,
      )
      expect(ended.filter(({ status }) => status === 'rejected')).to.deep.equal([])
      const added = (ended as PromiseFulfilledResult<Added | Added[]>[]).flatMap(({ value }) => value)
      expect(added.map(({ outcome }) => outcome)).to.deep.equal(Array.from({ length: 43 }, () => 'added'))
      expect(await queue.size()).to.equal(45)
      const found = await queue.getAll(added.map(({ id }) => id))
      expect(found.map((message) => message?.payload)).to.deep.equal(numbers(43))
    })

    it('reject, each with an error of its own, where they are not repeated', async () => {
      const proxy = await startProxy({ targetPort: server.port })
      onCleanup(() => proxy.stop())
      const queue = makeClient({ host: '127.0.0.1', port: proxy.port }).getReliableQueue<string>(uniqueName(), string)
      onCleanup(() => queue.clear())
      const postponed = { existing: 'postpone', delay: LATER } as const
      await Promise.all(['a', 'b'].map((id) => queue.add(id, { ...postponed, id, delay: 1_000 })))
      const raw = rawTo(server.port)
      const { due } = reliableKeys(queue.name)
      const ended = await lose(
        proxy,
        () => ['a', 'b'].map((id) => queue.add(id, { ...postponed, id })),
        async () => (await raw.zcount(due[0]!, (await redisNow(raw)) + LATER / 2, '+inf')) === 2,
      )
      const errors = ended.map((each) => (each as PromiseRejectedResult).reason as ConnectionError)
      expect(errors.map((error) => error.outcome)).to.deep.equal(['unknown', 'unknown'])
      expect(errors[0]).to.not.equal(errors[1])
      expect(await queue.size()).to.equal(2)
    })
  })

  for (const [who, options, args] of [
    ['of a user who may not ZMSCORE', { username: 'old', password: 'secret' }, []],
    ['at a server without ZMSCORE', {}, ['--rename-command', 'ZMSCORE', '']],
  ] as const) {
    it(`share a script when they offer, ${who}`, async () => {
      const old = await startRedis({ args: [...args] })
      onCleanup(() => old.stop())
      const admin = rawTo(old.port)
      await admin.acl('SETUSER', 'old', 'on', '>secret', '~*', '&*', '+@all', '-zmscore')
      const client = makeClient({ host: '127.0.0.1', port: old.port, ...options })
      for (const layout of ['redisson', 'compact'] as const) {
        const queue = client.getQueue<string>(layout, string)
        const delayed = client.getDelayedQueue(queue, { layout, deliver: false })
        await Promise.all(numbers(2).map(() => delayed.offer('first', LATER)))
        await admin.config('RESETSTAT')
        const ended = await Promise.allSettled([
          ...numbers(40).map((value) => delayed.offer(value, LATER)),
          delayed.offer('too late', Number.MAX_SAFE_INTEGER),
        ])
        expect(await admin.info('commandstats')).to.match(/^cmdstat_evalsha:calls=1,/m)
        expect(ended.map(({ status }) => status)).to.deep.equal([...numbers(40).map(() => 'fulfilled'), 'rejected'])
        const tickets = ended.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
        expect(await delayed.readAll()).to.deep.equal(['first', 'first', ...numbers(40)])
        expect(await Promise.all(tickets.map((ticket) => delayed.cancel(ticket)))).to.not.include(false)
        expect(await delayed.size()).to.equal(2)
      }
    })
  }

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

    it('take scripts of their own with a policy for existing messages', async () => {
      const scripts = await scriptsOf(async () => {
        const answers = await Promise.all([
          queue.add('a', { id: 'a' }),
          queue.add('b', { id: 'a', existing: 'replace' }),
          queue.add('c', { id: 'c' }),
        ])
        expect(answers.map(({ outcome }) => outcome)).to.deep.equal(['added', 'replaced', 'added'])
      })
      expect(scripts).to.equal(3)
    })

    it('keep their order, whatever they say of a message that is there, and into the next turn', async () => {
      await queue.clear()
      const adds = [
        queue.add('first', { group: 'g' }),
        queue.add('second', { group: 'g', existing: 'replace' }),
        ...numbers(600).map((payload) => queue.add(payload, { group: 'g' })),
      ]
      await nextTurn() // they are sent, and no reply can have come
      adds.push(queue.add('last', { group: 'g' }))
      await Promise.all(adds)
      const polled: string[] = []
      while (polled.length < 603) {
        const messages = await queue.pollMany({ count: 250 })
        polled.push(...messages.map(({ payload }) => payload))
        await queue.acknowledge(...messages)
      }
      expect(polled.filter((_, at) => at < 2)).to.deep.equal(['first', 'second'])
      expect(polled.at(-1)).to.equal('last')
    })

    it('keep their order into the next turn, also where they are too large for one script', async () => {
      await queue.clear()
      const large = numbers(40).map((payload) => payload.padEnd(300_000))
      const adds = large.map((payload) => queue.add(payload, { group: 'g' }))
      await nextTurn() // they are sent, and no reply can have come
      adds.push(queue.add('last', { group: 'g' }))
      await Promise.all(adds)
      const polled: string[] = []
      while (polled.length < 41) {
        const messages = await queue.pollMany({ count: 250 })
        polled.push(...messages.map(({ payload }) => payload))
        await queue.acknowledge(...messages)
      }
      expect(polled.at(-1)).to.equal('last')
    })

    it('fail alone if one of them needs a key of another type', async function () {
      const key = `redelayed:reliable:once:{${queue.name}}`
      await rawTo(server.port).set(key, 'no set')
      onCleanup(() => rawTo(server.port).del(key))
      const [plain, marked, other] = await Promise.allSettled([
        queue.add('plain', { id: 'plain' }),
        queue.add('marked', { id: 'marked', deduplicate: { by: 'id', forMs: LATER } }),
        queue.add('other', { id: 'other' }),
      ])
      expect([plain, marked, other].map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled'])
      expect((await queue.pollMany({ count: 9 })).map(({ payload }) => payload)).to.include.members(['plain', 'other'])
    })

    it('fail each for itself when the queue is full', async () => {
      await queue.setConfig({ maxSize: 3 })
      const [first, second] = [queue.add('a'), rejection(queue.add('b'))]
      expect((await first).outcome).to.equal('added')
      expect(await second).to.be.instanceOf(QueueFullError)
    })
  })
})
