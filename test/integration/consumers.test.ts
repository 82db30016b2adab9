import { expect } from 'chai'
import {
  DecodeError,
  InvalidArgumentError,
  codecs,
  type BlockingQueue,
  type QuarantinedEvent,
  type RedelayedClient,
  type RedelayedError,
} from '../../src/index.js'
import { eventually, once } from '../support/events.js'
import { requireServerBin, startRedis } from '../support/redis-server.js'
import { rawClient, uniqueName } from '../support/redis.js'
import {
  cleanUp,
  expectError,
  makeClient,
  makePair,
  numbers,
  onCleanup,
  rawKeys,
  rawTo,
  untilBlocked,
} from './fixtures.js'

const string = { codec: codecs.string() }
const raw = rawClient

describe('subscribeOnElements', () => {
  let name: string
  let connection: string
  let client: RedelayedClient
  let queue: BlockingQueue<string>

  beforeEach(() => {
    name = uniqueName()
    connection = name.replaceAll(':', '-')
    client = makeClient({ ioredis: { connectionName: connection } })
    queue = client.getBlockingQueue<string>(name, string)
  })
  afterEach(cleanUp)

  it('gives each element to the consumer, the next one when its promise has settled', async () => {
    const seen: string[] = []
    let running = 0
    queue.subscribeOnElements(async (value) => {
      expect(++running, 'at once').to.equal(1)
      await new Promise((resolve) => setImmediate(resolve))
      running--
      seen.push(value)
    })
    await raw().rpush(name, ...numbers(50))
    await eventually(() => expect(seen).to.deep.equal(numbers(50)))
  })

  it('several consumers share the elements', async () => {
    const seen: [by: number, value: string][] = []
    for (const by of [1, 2]) queue.subscribeOnElements((value) => seen.push([by, value]))
    await untilBlocked(connection)
    await raw().rpush(name, ...numbers(20))
    await eventually(() => expect(seen.map(([, value]) => value).sort()).to.deep.equal(numbers(20).sort()))
    expect(new Set(seen.map(([by]) => by)).size).to.equal(2)
  })

  it('unsubscribe ends it: later elements stay', async () => {
    const seen: string[] = []
    const id = queue.subscribeOnElements((value) => seen.push(value))
    await raw().rpush(name, 'a')
    await eventually(() => expect(seen).to.deep.equal(['a']))
    expect(queue.unsubscribe(id)).to.equal(true)
    expect(queue.unsubscribe(id)).to.equal(false)
    expect(queue.unsubscribe(id + 1)).to.equal(false)
    // the next take of the same object gets it, and not the consumer that is gone
    const next = queue.take()
    await raw().rpush(name, 'b')
    expect(await next).to.equal('b')
    expect(seen).to.deep.equal(['a'])
  })

  it('the same function cannot be subscribed twice, but again after its end', async () => {
    const seen: string[] = []
    const consumer = (value: string): void => void seen.push(value)
    const id = queue.subscribeOnElements(consumer)
    const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: name, says: ['consumer', 'not subscribed yet'] }
    await expectError([InvalidArgumentError, wanted], () => queue.subscribeOnElements(consumer))
    queue.unsubscribe(id)
    queue.subscribeOnElements(consumer)
    await raw().rpush(name, 'a')
    await eventually(() => expect(seen).to.deep.equal(['a']))
    const other = { code: 'ERR_INVALID_ARGUMENT', queue: name, says: ['a function', '5'] }
    await expectError([InvalidArgumentError, other], () => queue.subscribeOnElements(5 as unknown as () => void))
  })

  it('a consumer that throws or rejects is reported, and gets the next element', async () => {
    const errors: RedelayedError[] = []
    client.on('error', (error) => errors.push(error))
    const seen: string[] = []
    queue.subscribeOnElements((value) => {
      seen.push(value)
      if (value === '1') throw new Error('thrown')
      if (value === '2') return Promise.reject(new Error('rejected'))
      return undefined
    })
    await raw().rpush(name, ...numbers(4))
    await eventually(() => expect(seen).to.deep.equal(numbers(4)))
    expect(errors.map(({ code, queue: about }) => [code, about])).to.deep.equal([
      ['ERR_CONSUMER', name],
      ['ERR_CONSUMER', name],
    ])
    expect(errors.map(({ cause }) => (cause as Error).message)).to.deep.equal(['thrown', 'rejected'])
  })

  it('continues after an error of the server', async () => {
    const seen: string[] = []
    await raw().set(name, 'not a list')
    queue.subscribeOnElements((value) => seen.push(value))
    // the transfer of the same queue does not fail on it: nothing is due
    expect(await once<RedelayedError>(client, 'error')).to.include({ code: 'ERR_WRONG_TYPE', queue: name })
    await raw().multi().del(name).rpush(name, 'a').exec()
    await eventually(() => expect(seen).to.deep.equal(['a']))
  })
})

describe('an element that cannot be decoded', () => {
  const bad = Buffer.from([0xc1, 0x00, 0xff]) // 0xc1 starts nothing in MessagePack
  let name: string
  let client: RedelayedClient
  let queue: BlockingQueue

  beforeEach(() => {
    name = uniqueName()
    client = makeClient()
    queue = client.getBlockingQueue(name)
  })
  afterEach(cleanUp)

  const takes: [what: string, take: () => Promise<unknown>, gives: unknown][] = [
    ['take', () => queue.take(), 'good'],
    ['poll()', () => queue.poll(), 'good'],
    ['poll(timeout)', () => queue.poll(5_000), 'good'],
    ['takeMany', () => queue.takeMany(10), ['good']],
    ['drainTo', () => queue.drainTo(), ['good']],
    ['remove()', () => queue.remove(), 'good'],
    ['elements', async () => (await queue.elements().next()).value, 'good'],
    ['Queue.poll(limit)', () => client.getQueue(name).poll(10), ['good']],
  ]
  for (const [what, take, gives] of takes) {
    it(`${what} quarantines it, emits an event, and gives the next one`, async () => {
      const heard: QuarantinedEvent[] = []
      client.on('quarantined', (event) => heard.push(event))
      const before = Date.now()
      await raw().rpush(name, bad)
      await queue.offer('good')

      expect(await take()).to.deep.equal(gives)
      expect(heard.map(({ queue: about, reason, count }) => ({ about, reason, count }))).to.deep.equal([
        { about: name, reason: 'undecodable', count: 1 },
      ])
      expect(heard[0]?.error).to.have.property('code', 'ERR_DECODE')
      expect(await queue.size()).to.equal(0)

      const [entry, ...others] = await queue.readQuarantine()
      expect(others).to.deep.equal([])
      expect(entry?.reason).to.equal('undecodable')
      expect(entry?.bytes).to.deep.equal(bad)
      expect(entry?.at.getTime()).to.be.within(before, Date.now())
      expect(await raw().llen(rawKeys(name).quarantine)).to.equal(1)
      expect(await queue.clearQuarantine()).to.equal(true)
      expect(await queue.clearQuarantine()).to.equal(false)
      expect(await queue.readQuarantine()).to.deep.equal([])
    })
  }

  it('a wait that meets only such elements keeps waiting', async () => {
    const waiting = queue.poll(10_000)
    await raw().rpush(name, bad)
    await once(client, 'quarantined')
    await queue.offer('good')
    expect(await waiting).to.equal('good')
  })

  it('one that cannot be set aside does not withhold the elements taken with it', async () => {
    await raw().set(rawKeys(name).quarantine, 'not a list')
    const failed = once<RedelayedError>(client, 'error')
    await raw().rpush(name, bad)
    await queue.addAll(['good', 'better'])
    expect(await queue.takeMany(10)).to.deep.equal(['good', 'better'])
    expect(await failed).to.include({ code: 'ERR_WRONG_TYPE', queue: name })
  })

  it('peek, readAll and iterate leave it where it is', async () => {
    const errors: RedelayedError[] = []
    client.on('error', (error) => errors.push(error))
    await raw().rpush(name, bad)
    await queue.offer('good')
    const wanted = { code: 'ERR_DECODE', queue: name, says: ['msgpack'] }
    await expectError([DecodeError, wanted], () => queue.peek())
    expect(await queue.readAll()).to.deep.equal(['good'])
    for await (const value of queue.iterate()) expect(value).to.equal('good')
    expect(errors.map(({ code }) => code)).to.deep.equal(['ERR_DECODE', 'ERR_DECODE'])
    expect(await queue.size()).to.equal(2)
  })

  it('DelayedQueue.poll sets aside payload and entry', async () => {
    const delayed = client.getDelayedQueue(queue)
    const { timeouts, order } = rawKeys(name)
    const unreadable = Buffer.from('no entry')
    await raw().multi().zadd(timeouts, 9e15, unreadable).rpush(order, unreadable).exec()
    await delayed.offer('good', 600_000)
    expect(await delayed.poll(2)).to.deep.equal(['good'])
    expect((await delayed.readQuarantine()).map(({ bytes }) => bytes)).to.deep.equal([unreadable])
    expect(await raw().exists(timeouts, order)).to.equal(0)
  })
})

describe('a server without BLMPOP', function () {
  before(function () {
    requireServerBin(this)
  })
  afterEach(cleanUp)

  it('serves take and takeMany by BLPOP, in order and in few round trips', async () => {
    const server = await startRedis({ args: ['--rename-command', 'BLMPOP', ''] })
    onCleanup(() => server.stop())
    const { queue, client, name } = makePair('redisson', { url: server.url })
    const plain = rawTo(server.port)
    await plain.rpush(name, ...numbers(500))
    expect(await queue.take()).to.equal('0')
    expect(await queue.takeMany(300)).to.deep.equal(numbers(300, 1))
    expect(await Promise.all([queue.take(), queue.takeMany(2)])).to.deep.equal(['301', ['302', '303']])
    const calls = /cmdstat_blpop:calls=(\d+)/.exec(await plain.info('commandstats'))?.[1]
    expect(Number(calls)).to.be.within(2, 5)
    await client.shutdown()
  })
})
