import { expect } from 'chai'
import { codecs, type BlockingQueue, type RedelayedError } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { rawClient, uniqueName } from '../support/redis.js'
import {
  cleanUp,
  connectionsNamed,
  javaOffer,
  makeClient,
  numbers,
  rawKeys,
  rejection,
  redisNow,
  track,
  untilBlocked,
  untilRedisClock,
} from './fixtures.js'

const string = { codec: codecs.string() }
const raw = rawClient

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

  it('a timeout longer than a Node timer can be is waited for', async () => {
    const polled = queue.poll(30, 'days')
    await untilRedisClock((await redisNow()) + 50) // a timer that long fires at once
    await queue.put('late')
    expect(await polled).to.equal('late')
  })

  it('poll(0) and poll() do not wait', async () => {
    expect(await queue.poll(0)).to.equal(null)
    await queue.put('a')
    expect(await queue.poll(0)).to.equal('a')
    expect(await connectionsNamed(connection), 'no blocking connection').to.have.lengthOf(1)
  })

  // Redis ends blocked commands at most `hz` times a second: the timeout must not be left to it
  for (const timeout of [1, 30, 150]) {
    it(`poll(${timeout}) ends on time, and takeMany too`, async () => {
      for (const take of [() => queue.poll(timeout), () => queue.takeMany(3, { timeout })]) {
        const took: number[] = []
        for (let i = 0; i < 5; i++) {
          const started = performance.now()
          expect(await take()).to.satisfy((result: string | string[] | null) => !result?.length)
          took.push(performance.now() - started)
        }
        // a timer of Node counts from when the turn of the event loop began, and so is early by the time of a long turn
        expect(Math.max(...took)).to.be.at.least(timeout - 2)
        expect(Math.min(...took)).to.be.within(timeout - 50, timeout + 60)
      }
    })
  }

  it('an element that comes after the end of a poll stays', async () => {
    expect(await queue.poll(20)).to.equal(null)
    await raw().rpush(name, 'a')
    expect(await raw().lrange(name, 0, -1)).to.deep.equal(['a'])
    expect(await queue.poll(5_000)).to.equal('a')
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

  it('a take that joins a connection which waits for others is served at once', async () => {
    const client = makeClient({
      blockingConnections: 1,
      consumersDeliver: false,
      ioredis: { connectionName: connection },
    })
    const others = numbers(3).map(() => client.getBlockingQueue<string>(uniqueName(), string))
    const waits = others.map((other) => rejection(other.take()))
    await untilBlocked(connection)
    const joining = client.getBlockingQueue<string>(name, string).take()
    await raw().rpush(name, 'a')
    const started = performance.now()
    expect(await joining).to.equal('a')
    expect(performance.now() - started).to.be.below(1_000)
    await client.shutdown()
    for (const error of await Promise.all(waits)) expect(error).to.have.property('code', 'ERR_SHUTDOWN')
  })

  it('a queue that is never empty does not starve another on the same connection', async () => {
    const client = makeClient({ blockingConnections: 1, consumersDeliver: false })
    const [busy, quiet] = [uniqueName('busy'), uniqueName('quiet')].map((one) =>
      client.getBlockingQueue<string>(one, string),
    ) as [BlockingQueue<string>, BlockingQueue<string>]
    await busy.addAll(numbers(3_000))
    // one that wants a single element and gets none: so the command asks for one at a time
    const idle = rejection(client.getBlockingQueue<string>(uniqueName('idle'), string).take())
    let taken = 0
    // several takes at a time, so that there is always one waiting when another is served
    const flood = Promise.all(
      numbers(4).map(async () => {
        for (let i = 0; i < 750; i++) {
          await busy.take()
          taken++
        }
      }),
    )
    await eventually(() => expect(taken).to.be.greaterThan(10))
    await quiet.offer('a')
    expect(await quiet.take()).to.equal('a')
    expect(taken).to.be.below(2_000)
    await flood
    await client.shutdown()
    expect(await idle).to.have.property('code', 'ERR_SHUTDOWN')
  })

  describe('takeMany', () => {
    it('takes up to max existing elements in one command', async () => {
      await queue.addAll(numbers(7))
      expect(await queue.takeMany(5)).to.deep.equal(numbers(5))
      expect(await queue.takeMany(5)).to.deep.equal(['5', '6'])
    })

    it('waits for the first, and no longer than its timeout', async () => {
      const waiting = queue.takeMany(3, { timeout: 5_000 })
      await untilBlocked(connection)
      await raw().rpush(name, 'a', 'b')
      expect(await waiting).to.deep.equal(['a', 'b'])
      expect(await queue.takeMany(3, { timeout: 30 })).to.deep.equal([])
      expect(await queue.takeMany(3, { timeout: 0 })).to.deep.equal([])
    })

    it('shares new elements with other takes, in their order', async () => {
      const waiting = [queue.takeMany(2), queue.take(), queue.takeMany(3)]
      await untilBlocked(connection)
      await raw().rpush(name, ...numbers(6))
      expect(await Promise.all(waiting)).to.deep.equal([['0', '1'], '2', ['3', '4', '5']])
    })
  })

  describe('delivers due messages by itself', () => {
    it('without any DelayedQueue object in this process', async () => {
      const due = Math.floor(await redisNow()) + 100
      await javaOffer(name, 'first', due)
      expect(await queue.take()).to.equal('first')
      expect((await redisNow()) - due).to.be.within(0, 500)
      await javaOffer(name, 'much later', due + 3_600_000)
      const waiting = queue.take()
      await untilBlocked(connection)
      const sooner = Math.floor(await redisNow()) + 50
      await javaOffer(name, 'before it', sooner)
      expect(await waiting).to.equal('before it')
      expect((await redisNow()) - sooner).to.be.within(0, 500)
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
