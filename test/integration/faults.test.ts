import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { ConnectionError, OfferAllError, dueOf, type ReconnectingEvent } from '../../src/index.js'
import { eventually, once } from '../support/events.js'
import { requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { startProxy, type TcpProxy } from '../support/tcp-proxy.js'
import {
  cleanUp,
  connectionsNamed,
  makePair,
  numbers,
  onCleanup,
  rawTo,
  redisNow,
  rejection,
  takeAll,
  track,
  type Order,
} from './fixtures.js'

const NO_SWEEP = { sweepInterval: 3_600_000 }
const LATER = 600_000

describe('faults', function () {
  let server: RedisServer
  let plain: Redis

  before(function () {
    requireServerBin(this)
  })
  afterEach(cleanUp)

  async function start(...args: string[]): Promise<void> {
    server = await startRedis({ args })
    onCleanup(() => server.stop())
    plain = rawTo(server.port, { retryStrategy: () => 10 })
  }

  describe('of the server', () => {
    for (const [how, restart] of [
      ['restarts', () => server.restart()],
      ['is killed and comes back', () => server.kill().then(() => server.restart())],
    ] as const) {
      it(`${how} while takes wait: the same takes get later elements`, async () => {
        await start()
        const { queue, client, name } = makePair('redisson', { url: server.url })
        const waits = [queue.take(), queue.poll(20_000), queue.takeMany(5)].map((wait) => track<unknown>(wait))
        await eventually(async () => expect(await plain.info('clients')).to.match(/^blocked_clients:1\r?$/m))
        const lost = once<ReconnectingEvent>(client, 'reconnecting', ({ connection }) => connection === 'blocking')
        await restart()
        await lost
        expect(waits.map(({ settled }) => settled)).to.deep.equal([false, false, false])
        await plain.rpush(name, 'a', 'b', 'c')
        expect(await Promise.all(waits.map(({ promise }) => promise))).to.deep.equal(['a', 'b', ['c']])
      })

      it(`${how} with offers under way: every acknowledged one is there exactly once`, async () => {
        await start('--appendonly', 'yes', '--appendfsync', 'always')
        const { delayed, client, keys } = makePair('redisson', { url: server.url })
        const acknowledged: string[] = []
        const failed: [value: string, error: Error][] = []
        let next = 0
        let stop = false
        const worker = async (): Promise<void> => {
          while (!stop) {
            const value = String(next++)
            const error = await delayed.offer(value, LATER).then(
              () => undefined,
              (reason: Error) => reason,
            )
            if (error === undefined) acknowledged.push(value)
            else failed.push([value, error])
          }
        }
        const workers = numbers(8).map(worker)
        await eventually(() => expect(acknowledged.length).to.be.greaterThan(200))
        const lost = once<ReconnectingEvent>(client, 'reconnecting', ({ connection }) => connection === 'commands')
        await restart()
        await lost
        const soFar = acknowledged.length
        await eventually(() => expect(acknowledged.length).to.be.greaterThan(soFar + 200))
        stop = true
        await Promise.all(workers)

        for (const [value, error] of failed) expect(error, value).to.be.an.instanceOf(ConnectionError)
        const stored = await delayed.readAll()
        expect(new Set(stored).size, 'none twice').to.equal(stored.length)
        expect(
          acknowledged.filter((value) => !stored.includes(value)),
          'lost',
        ).to.deep.equal([])
        const notStored = failed.filter(([value]) => !stored.includes(value)).length
        expect(stored.length).to.equal(acknowledged.length + failed.length - notStored)
        expect(await plain.zcard(keys.timeouts)).to.equal(stored.length)
      })
    }

    it('a restart between offer and due time delays nothing and loses nothing', async () => {
      await start('--appendonly', 'yes', '--appendfsync', 'always')
      const { delayed, queue } = makePair('redisson', { url: server.url, ...NO_SWEEP })
      const tickets = await delayed.offerAll(numbers(100).map((value) => ({ value, delay: 600 + Number(value) * 5 })))
      const taken = takeAll(queue, 100)
      await server.restart()
      expect(await taken).to.deep.equal(numbers(100))
      expect((await redisNow(plain)) - dueOf(tickets[99]!)).to.be.within(0, 1_000)
    })
  })

  describe('of the network', () => {
    let proxy: TcpProxy

    async function startBehindProxy(...args: string[]): Promise<void> {
      await start(...args)
      proxy = await startProxy({ targetPort: server.port })
      onCleanup(() => proxy.stop())
    }
    const through = (layout: Order = 'redisson', options: Parameters<typeof makePair>[1] = {}) =>
      makePair(layout, { host: '127.0.0.1', port: proxy.port, ...NO_SWEEP, ...options })
    const lostOf = ({ client }: ReturnType<typeof through>, wanted: ReconnectingEvent['connection']) =>
      once<ReconnectingEvent>(client, 'reconnecting', ({ connection }) => connection === wanted, 8_000)

    it('a half-open subscriber connection is noticed by the ping and replaced', async () => {
      await startBehindProxy()
      const pair = through('redisson', { pingInterval: 100, commandTimeout: 60_000 })
      await pair.delayed.offer('settled', 0)
      await pair.queue.take()
      const lost = lostOf(pair, 'subscriber')
      const started = performance.now()
      proxy.blackhole(true)
      await lost
      expect(performance.now() - started).to.be.below(1_000)
      const again = once(pair.client, 'subscribed')
      proxy.blackhole(false)
      await again
    })

    for (const layout of ['redisson', 'compact'] as const) {
      it(`layout '${layout}': an offer into a half-open connection is repeated on the next, and added once`, async () => {
        await startBehindProxy()
        const pair = through(layout, { commandTimeout: 200 })
        await pair.delayed.offer('connected', LATER)
        proxy.blackhole(true)
        const lost = lostOf(pair, 'commands')
        const offered = pair.delayed.offer('half-open', LATER)
        await lost
        proxy.blackhole(false)
        expect(await pair.delayed.cancel(await offered)).to.equal(true)
        expect(await pair.delayed.readAll()).to.deep.equal(['connected'])
      })

      it(`layout '${layout}': an offer whose reply was lost is repeated, and added once`, async () => {
        await startBehindProxy()
        const pair = through(layout)
        await pair.delayed.offer('connected', LATER)
        await pair.delayed.offerAll([{ value: 'known', delay: LATER }]) // the server knows both scripts
        proxy.delay({ toClient: 60_000 })
        const offered = [
          pair.delayed.offer('one', LATER),
          pair.delayed.offerAll(numbers(300).map((value) => ({ value, delay: LATER }))),
        ] as const
        await eventually(async () => expect(await plain.zcard(pair.keys.timeouts)).to.be.at.least(253))
        proxy.delay(0)
        proxy.cut()
        const [one, many] = await Promise.all(offered)
        const all = await pair.delayed.readAll()
        expect(all.sort()).to.deep.equal(['connected', 'known', 'one', ...numbers(300)].sort())
        expect(await plain.zcard(pair.keys.timeouts)).to.equal(303)
        expect(new Set([one, ...many]).size).to.equal(301)
        for (const ticket of [one, many[0]!, many[299]!]) expect(await pair.delayed.cancel(ticket)).to.equal(true)
      })
    }

    it('an offer that may have been delivered is not repeated: its outcome is unknown', async () => {
      await startBehindProxy()
      const pair = through()
      await pair.delayed.offer('connected', LATER)
      proxy.delay({ toClient: 60_000 })
      const error = rejection(pair.delayed.offer('at once', 0))
      await eventually(async () => expect(await plain.zcard(pair.keys.timeouts)).to.equal(2))
      proxy.delay(0)
      proxy.cut()
      expect(await error)
        .to.be.an.instanceOf(ConnectionError)
        .with.property('outcome', 'unknown')
      expect(await pair.queue.poll(5_000)).to.equal('at once')
      expect(await pair.queue.poll()).to.equal(null)
    })

    it('nor one that was delivered while the repetition waited for its connection', async () => {
      await startBehindProxy()
      const pair = through()
      const other = makePair('redisson', { url: server.url, queueName: pair.name })
      await pair.delayed.offer('connected', LATER)
      proxy.delay({ toClient: 60_000 })
      const offers = [
        rejection(pair.delayed.offer('soon', 300)),
        rejection(pair.delayed.offerAt('at a date', new Date((await redisNow(plain)) + 300))),
      ]
      await eventually(async () => expect(await plain.zcard(pair.keys.timeouts)).to.equal(3))
      proxy.refuse(true)
      proxy.delay(0)
      proxy.cut()
      // both repetitions are under way now: the delays are not over
      const taken = [await other.queue.take(), await other.queue.take()]
      expect(taken.sort()).to.deep.equal(['at a date', 'soon'])
      proxy.refuse(false)
      for (const error of offers) {
        expect(await error)
          .to.be.an.instanceOf(ConnectionError)
          .with.property('outcome', 'unknown')
      }
      expect(await plain.zcard(pair.keys.timeouts)).to.equal(1)
    })

    for (const [where, isRepeated] of [
      ['one server', true],
      ['a server that another one may replace, with its own clock', false],
    ] as const) {
      const what = isRepeated ? 'is repeated' : 'is not repeated'
      it(`at ${where}, an offer that is due within a second ${what}`, async () => {
        await startBehindProxy()
        const [host, port] = ['127.0.0.1', proxy.port]
        const pair = makePair('redisson', {
          ...(isRepeated ? { host, port } : { replicated: [{ host, port }] }),
          ...NO_SWEEP,
        })
        await pair.delayed.offer('connected', LATER)
        const dueMs = 1_000
        proxy.delay({ toClient: 60_000 })
        const offered = [
          pair.delayed.offer('soon', dueMs),
          pair.delayed.offerAt('at a date', new Date((await redisNow(plain)) + dueMs)),
        ]
        const settled = Promise.allSettled(offered)
        await eventually(async () => expect(await plain.zcard(pair.keys.timeouts)).to.equal(3))
        // as at a master that has never got them, or has delivered them by a clock that is ahead
        await plain.multi().zremrangebyrank(pair.keys.timeouts, 0, 1).ltrim(pair.keys.order, 0, 0).exec()
        proxy.delay(0)
        proxy.cut()
        for (const outcome of await settled) {
          if (isRepeated) expect(outcome).to.have.property('value').that.is.a('string')
          else expect(outcome).to.have.nested.property('reason.outcome', 'unknown')
        }
      })
    }

    it('an offer whose repetition finds no connection has waited for it once', async () => {
      await startBehindProxy()
      const connectTimeout = 1_000
      const pair = through('redisson', { connectTimeout })
      pair.client.on('error', () => {})
      await pair.delayed.offer('connected', LATER)
      await pair.delayed.offerAll([{ value: 'known', delay: LATER }]) // the server knows both scripts
      proxy.delay({ toClient: 60_000 })
      const offers = [
        rejection(pair.delayed.offer('one', LATER)),
        rejection(pair.delayed.offerAll([{ value: 'many', delay: LATER }])).then((error) => {
          if (!(error instanceof OfferAllError)) throw error
          return error.failures[0]!.error
        }),
      ]
      await eventually(async () => expect(await plain.zcard(pair.keys.timeouts)).to.equal(4))
      proxy.refuse(true)
      proxy.delay(0)
      const started = performance.now()
      proxy.cut()
      for (const error of await Promise.all(offers)) {
        expect(error).to.be.an.instanceOf(ConnectionError).with.property('outcome', 'unknown')
      }
      expect(performance.now() - started).to.be.within(0.9 * connectTimeout, 1.7 * connectTimeout)
      proxy.refuse(false)
    })

    it('repeats reads and offers, but no other changing calls', async () => {
      await startBehindProxy()
      const pair = through()
      const ticket = await pair.delayed.offer('a', LATER)
      await pair.delayed.cancel(await pair.delayed.offer('b', LATER)) // the server knows the script now
      proxy.delay({ toClient: 60_000 })
      const cancelled = rejection(pair.delayed.cancel(ticket))
      const read = pair.delayed.readAll()
      await eventually(async () => expect(await plain.zcard(pair.keys.timeouts)).to.equal(0))
      proxy.delay(0)
      proxy.cut()
      expect(await cancelled)
        .to.be.an.instanceOf(ConnectionError)
        .with.property('outcome', 'unknown')
      expect(await read).to.deep.equal([])
    })

    it('a client whose subscriber cannot connect delivers its own offers', async () => {
      await startBehindProxy()
      const pair = through('redisson', { ioredis: { connectionName: 'deaf' } })
      await pair.delayed.offer('settled', 0)
      expect(await pair.queue.take()).to.equal('settled')
      const [subscriber] = (await connectionsNamed('deaf', plain)).filter((line) => / sub=1 /.test(line))
      const lost = lostOf(pair, 'subscriber')
      proxy.refuse(true)
      await plain.client('KILL', 'ID', /^id=(\d+)/.exec(subscriber!)![1]!)
      await lost
      const due = dueOf(await pair.delayed.offer('a', 60))
      expect(await pair.queue.poll(2_000)).to.equal('a')
      expect((await redisNow(plain)) - due).to.be.within(0, 500)
      proxy.refuse(false)
    })

    it('a drain that breaks between two pages returns the elements it took', async () => {
      await startBehindProxy()
      const pair = through()
      await pair.queue.addAll(numbers(3_000))
      expect(await pair.queue.drainTo(10)).to.deep.equal(numbers(10))
      proxy.delay({ toClient: 20 })
      const drained = pair.queue.drainTo()
      // the second page is taken at the server, so the reply with the first one has arrived
      await eventually(async () => expect(await plain.llen(pair.name)).to.be.below(1_000))
      proxy.delay(0)
      proxy.cut()
      const values = await drained
      expect(values.length).to.be.at.least(1_000)
      expect(values).to.deep.equal(numbers(values.length, 10))
    })

    it('with reset connections again and again, everything is delivered, once', async () => {
      await startBehindProxy()
      const pair = through()
      const offered: string[] = []
      const delivered: string[] = []
      pair.client.on('error', () => {})
      for (const round of numbers(5)) {
        const values = numbers(40, Number(round) * 40)
        // every offer is acknowledged, however often the connection breaks: it is due later than that takes
        const acknowledged = Promise.all(values.map((value) => pair.delayed.offer(value, 2_000)))
        proxy.cut()
        await acknowledged
        offered.push(...values)
      }
      delivered.push(...(await takeAll(pair.queue, offered.length)))
      expect(delivered.sort()).to.deep.equal(offered.sort())
      expect(await plain.exists(pair.keys.timeouts, pair.keys.order, pair.keys.destination)).to.equal(0)
    })

    it('a half-open blocking connection is replaced when its reply is overdue', async () => {
      // without CLIENT the wait at the server lasts one second instead of ten
      await startBehindProxy('--rename-command', 'CLIENT', '')
      const pair = through('redisson', { consumersDeliver: false })
      await pair.delayed.destroy()
      const waiting = track(pair.queue.take())
      await eventually(async () => expect(await plain.info('clients')).to.match(/^blocked_clients:1\r?$/m))
      const lost = lostOf(pair, 'blocking')
      proxy.blackhole(true)
      await lost
      proxy.blackhole(false)
      expect(waiting.settled).to.equal(false)
      await plain.rpush(pair.name, 'a')
      expect(await waiting.promise).to.equal('a')
    })
  })
}).timeout(20_000)
