import { expect } from 'chai'
import {
  InvalidArgumentError,
  NoSuchElementError,
  codecs,
  type BlockingQueue,
  type Queue,
  type RedelayedError,
} from '../../src/index.js'
import { eventually } from '../support/events.js'
import { rawClient, uniqueName } from '../support/redis.js'
import {
  cleanUp,
  connectionsNamed,
  expectError,
  javaOffer,
  makeClient,
  numbers,
  rawKeys,
  redisNow,
  takeAll,
  track,
  untilBlocked,
  untilRedisClock,
} from './fixtures.js'

const string = { codec: codecs.string() }
const raw = rawClient

const kinds: [kind: string, make: (name: string) => Queue<string> | BlockingQueue<string>][] = [
  ['Queue', (name) => makeClient().getQueue(name, string)],
  ['BlockingQueue', (name) => makeClient().getBlockingQueue(name, string)],
]

for (const [kind, make] of kinds) {
  describe(kind, () => {
    let name: string
    let queue: Queue<string> | BlockingQueue<string>
    const stored = () => raw().lrange(name, 0, -1)

    beforeEach(() => {
      name = uniqueName()
      queue = make(name)
    })
    afterEach(cleanUp)

    it('offer and add append, poll takes from the front', async () => {
      expect(await queue.offer('a')).to.equal(true)
      expect(await queue.add('b')).to.equal(true)
      expect(await stored()).to.deep.equal(['a', 'b'])
      expect(await queue.poll()).to.equal('a')
      expect(await queue.poll()).to.equal('b')
      expect(await queue.poll()).to.equal(null)
    })

    it('addAll keeps the order, also of thousands', async () => {
      expect(await queue.addAll([])).to.equal(false)
      expect(await queue.addAll(new Set(numbers(2_500)))).to.equal(true)
      expect(await stored()).to.deep.equal(numbers(2_500))
    })

    it('addAll with one bad value adds none', async () => {
      const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: name, says: ['values[1]', 'null'] }
      await expectError([InvalidArgumentError, wanted], () => queue.addAll(['a', null as unknown as string]))
      expect(await stored()).to.deep.equal([])
    })

    it('size, isEmpty, peek, readAll and iterate take nothing', async () => {
      expect([await queue.size(), await queue.isEmpty(), await queue.peek(), await queue.readAll()]).to.deep.equal([
        0,
        true,
        null,
        [],
      ])
      await queue.addAll(numbers(250))
      expect([await queue.size(), await queue.isEmpty(), await queue.peek()]).to.deep.equal([250, false, '0'])
      expect(await queue.readAll()).to.deep.equal(numbers(250))
      for (const pageSize of [100, 125, 1_000]) {
        const seen: string[] = []
        for await (const value of queue.iterate({ pageSize })) seen.push(value)
        expect(seen, `pages of ${pageSize}`).to.deep.equal(numbers(250))
      }
      expect(await stored()).to.deep.equal(numbers(250))
    })

    it('contains and remove go by value', async () => {
      await queue.addAll([...numbers(1_500), 'twice', 'twice'])
      expect(await queue.contains('1499')).to.equal(true)
      expect(await queue.contains('1500')).to.equal(false)
      expect(await queue.remove('twice')).to.equal(true)
      expect(await queue.remove('1500')).to.equal(false)
      expect(await stored()).to.deep.equal([...numbers(1_500), 'twice'])
    })

    it('remove() takes the first, and rejects on an empty queue', async () => {
      await queue.offer('a')
      expect(await queue.remove()).to.equal('a')
      await expectError([NoSuchElementError, { code: 'ERR_NO_SUCH_ELEMENT', queue: name }], () => queue.remove())
    })

    it('drainTo takes up to max, or all', async () => {
      await queue.addAll(numbers(2_010))
      expect(await queue.drainTo(0)).to.deep.equal([])
      expect(await queue.drainTo(10)).to.deep.equal(numbers(10))
      expect(await queue.size()).to.equal(2_000)
      expect(await queue.drainTo()).to.deep.equal(numbers(2_000, 10))
      expect(await queue.drainTo()).to.deep.equal([])
    })

    it('clear and delete drop the elements', async () => {
      await queue.offer('a')
      expect(await queue.delete()).to.equal(true)
      expect(await queue.delete()).to.equal(false)
      await queue.offer('b')
      await queue.clear()
      expect(await raw().exists(name)).to.equal(0)
    })
  })
}

describe('Queue', () => {
  afterEach(cleanUp)

  it('poll(limit) takes so many', async () => {
    const queue = makeClient().getQueue<string>(uniqueName(), string)
    await queue.addAll(numbers(5))
    expect(await queue.poll(3)).to.deep.equal(['0', '1', '2'])
    expect(await queue.poll(0)).to.deep.equal([])
    expect(await queue.poll(9)).to.deep.equal(['3', '4'])
  })
})

describe('BlockingQueue waits', () => {
  let name: string
  let connection: string
  let queue: BlockingQueue<string>

  beforeEach(() => {
    name = uniqueName()
    connection = name.replaceAll(':', '-')
    queue = makeClient({ ioredis: { connectionName: connection } }).getBlockingQueue<string>(name, string)
  })
  afterEach(cleanUp)

  it('take and poll(timeout) get an element that is there, or comes', async () => {
    await queue.put('there')
    expect(await queue.take()).to.equal('there')
    await queue.put('there too')
    expect(await queue.poll(1, 'minutes')).to.equal('there too')
    for (const wait of [() => queue.take(), () => queue.poll(60_000)]) {
      const waiting = wait()
      await untilBlocked(connection)
      await raw().rpush(name, 'comes')
      expect(await waiting).to.equal('comes')
    }
  })

  it('poll(0) and poll() do not wait', async () => {
    expect(await queue.poll(0)).to.equal(null)
    await queue.put('a')
    expect(await queue.poll(0)).to.equal('a')
    expect(await connectionsNamed(connection), 'no blocking connection').to.have.lengthOf(1)
  })

  // Redis ends blocked commands at most `hz` times a second: the timeout must not be left to it
  for (const timeout of [1, 30, 150]) {
    it(`poll(${timeout}) ends on time`, async () => {
      await queue.poll(1) // the connections are open now
      const started = performance.now()
      expect(await queue.poll(timeout)).to.equal(null)
      const took = performance.now() - started
      expect(took).to.be.at.least(timeout - 1)
      expect(took).to.be.below(timeout + 60)
    })
  }

  it('an element that comes after the end of a poll stays', async () => {
    expect(await queue.poll(20)).to.equal(null)
    await raw().rpush(name, 'a')
    expect(await raw().lrange(name, 0, -1)).to.deep.equal(['a'])
    expect(await queue.poll(20)).to.equal('a')
  })

  it('the first to wait is the first to get', async () => {
    const waiting = [queue.take(), queue.poll(5_000), queue.take(), queue.take()]
    await untilBlocked(connection)
    await raw().rpush(name, 'a', 'b')
    expect(await Promise.all(waiting.slice(0, 2))).to.deep.equal(['a', 'b'])
    await untilBlocked(connection)
    await raw().rpush(name, 'c')
    expect(await waiting[2]).to.equal('c')
    await raw().rpush(name, 'd')
    expect(await waiting[3]).to.equal('d')
  })

  it('the async iterator takes one after the other', async () => {
    await queue.addAll(numbers(5))
    const seen: string[] = []
    for await (const value of queue) {
      expect(await queue.size(), 'not taken ahead').to.equal(4 - seen.length)
      seen.push(value)
      if (seen.length === 5) break
    }
    expect(seen).to.deep.equal(numbers(5))
  })

  it('3,000 waiting takes on 3,000 queues share a few connections', async () => {
    const client = makeClient({ blockingConnections: 2, ioredis: { connectionName: `${connection}-many` } })
    const names = numbers(3_000).map(() => uniqueName('many'))
    const takes = names.map((one) => client.getBlockingQueue<string>(one, string).take())
    const outcomes = Promise.allSettled(takes)
    await untilBlocked(`${connection}-many`, 2)
    await eventually(async () => expect(await raw().pubsub('NUMSUB', rawKeys(names[2_999]!).channel)).to.include(1))
    expect((await connectionsNamed(`${connection}-many`)).length).to.be.within(3, 4)

    const served = names.filter((_, index) => index % 6 === 0)
    const pipeline = raw().pipeline()
    for (const one of served) pipeline.rpush(one, one)
    await pipeline.exec()
    expect(await Promise.all(takes.filter((_, index) => index % 6 === 0))).to.deep.equal(served)
    expect((await connectionsNamed(`${connection}-many`)).length).to.be.within(3, 4)
    await client.shutdown()
    const rest = (await outcomes).map((outcome) => outcome.status === 'rejected' && (outcome.reason as RedelayedError))
    const wanted = names.map((one, index) => index % 6 !== 0 && ['ERR_SHUTDOWN', one])
    expect(rest.map((error) => error && [error.code, error.queue])).to.deep.equal(wanted)
  }).timeout(20_000)

  it('a queue that is never empty does not starve another on the same connection', async () => {
    const client = makeClient({ blockingConnections: 1, consumersDeliver: false })
    const [busy, quiet] = [uniqueName('busy'), uniqueName('quiet')].map((one) =>
      client.getBlockingQueue<string>(one, string),
    ) as [BlockingQueue<string>, BlockingQueue<string>]
    await busy.addAll(numbers(3_000))
    let taken = 0
    const flood = (async () => {
      for (; taken < 3_000; taken++) await busy.take()
    })()
    await eventually(() => expect(taken).to.be.greaterThan(10))
    await quiet.offer('a')
    expect(await quiet.take()).to.equal('a')
    expect(taken).to.be.below(2_000)
    await flood
  })

  describe('takeMany', () => {
    it('takes up to max of what is there in one command', async () => {
      await queue.addAll(numbers(7))
      expect(await queue.takeMany(5)).to.deep.equal(numbers(5))
      expect(await queue.takeMany(5)).to.deep.equal(['5', '6'])
    })

    it('waits for the first, and no longer than its timeout', async () => {
      const waiting = queue.takeMany(3, { timeout: 5_000 })
      await untilBlocked(connection)
      await raw().rpush(name, 'a', 'b')
      expect(await waiting).to.deep.equal(['a', 'b'])
      const started = performance.now()
      expect(await queue.takeMany(3, { timeout: 30 })).to.deep.equal([])
      expect(performance.now() - started).to.be.within(29, 95)
      expect(await queue.takeMany(3, { timeout: 0 })).to.deep.equal([])
    })

    it('shares what comes with others, in their order', async () => {
      const waiting = [queue.takeMany(2), queue.take(), queue.takeMany(3)]
      await untilBlocked(connection)
      await raw().rpush(name, ...numbers(6))
      expect(await Promise.all(waiting)).to.deep.equal([['0', '1'], '2', ['3', '4', '5']])
    })
  })

  describe('delivers what is due by itself', () => {
    it('without any DelayedQueue object in this process', async () => {
      const due = Math.floor(await redisNow()) + 100
      await javaOffer(name, 'first', due)
      const waiting = queue.take()
      await untilBlocked(connection)
      await javaOffer(name, 'before it', due - 50)
      expect(await waiting).to.equal('before it')
      expect(await takeAll(queue, 1)).to.deep.equal(['first'])
      expect((await redisNow()) - due).to.be.within(0, 100)
    })

    it('unless consumersDeliver is false', async () => {
      const offs = [
        makeClient({ consumersDeliver: false, sweepInterval: 100 }).getBlockingQueue<string>(name, string),
        makeClient({ sweepInterval: 100 }).getBlockingQueue<string>(name, { ...string, consumersDeliver: false }),
      ]
      const waiting = offs.map((off) => track(off.take()))
      const due = Math.floor(await redisNow()) + 50
      await javaOffer(name, 'a', due)
      await untilRedisClock(due + 250)
      expect(await raw().zcard(rawKeys(name).timeouts)).to.equal(1)
      expect(waiting.map(({ settled }) => settled)).to.deep.equal([false, false])

      const control = track(queue.take()) // the same, but it delivers
      await eventually(async () => expect(await raw().zcard(rawKeys(name).timeouts)).to.equal(0))
      await eventually(() => expect([...waiting, control].filter(({ settled }) => settled)).to.have.lengthOf(1))
      await Promise.all([cleanUp(), ...[...waiting, control].map(({ promise }) => promise.catch(() => {}))])
    })
  })
})
