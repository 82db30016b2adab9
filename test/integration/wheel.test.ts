import { expect } from 'chai'
import {
  InvalidArgumentError,
  UnsupportedOperationError,
  codecs,
  createClient,
  dueOf,
  type DelayedQueue,
  type WheelQueue,
} from '../../src/index.js'
import { readGauges } from '../../src/observability/measures.js'
import { createTestKit, type TestKit } from '../../src/testing/index.js'
import { keysOf, rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, expectError, makeClient, onCleanup } from './fixtures.js'

const string = { codec: codecs.string() }
const START = new Date('2100-01-01T00:00:00Z')
const HOUR = 3_600_000

describe("DelayedQueue, layout: 'wheel'", () => {
  afterEach(cleanUp)

  function make(options: { unguessableTickets?: boolean } = {}): WheelQueue<string> {
    const client = makeClient()
    const delayed = client.getDelayedQueue(client.getBlockingQueue<string>(uniqueName('wheel'), string), {
      layout: 'wheel',
      ...options,
    })
    onCleanup(() => delayed.delete())
    return delayed
  }

  async function open(): Promise<TestKit> {
    const kit = await createTestKit({ url: redisUrl(), startAt: START })
    onCleanup(() => kit.close())
    return kit
  }

  it('delivers messages whose minute another program has removed from the set of buckets', async () => {
    const client = makeClient({ sweepInterval: 1_000 })
    const queue = client.getBlockingQueue<string>(uniqueName('wheel'), string)
    const delayed = client.getDelayedQueue(queue, { layout: 'wheel' })
    onCleanup(() => delayed.delete())
    const minute = Math.floor(Date.now() / 60_000)
    await delayed.offerAt('a', new Date((minute + 5) * 60_000))
    const redis = rawClient()
    const bucket = (at: number): string => `redelayed:wheel-${at}:{${queue.getName()}}`
    await redis.rename(bucket(minute + 5), bucket(minute)) // as if five minutes had passed
    expect(await redis.del(`redelayed:wheel:{${queue.getName()}}`)).to.equal(1)
    expect(await queue.poll(8_000)).to.equal('a')
  })

  it('delivers each message when its time has come, in order', async () => {
    const kit = await open()
    const queue = kit.client.getBlockingQueue<string>(kit.uniqueName(), string)
    const delayed = kit.client.getDelayedQueue(queue, { layout: 'wheel' })
    const far = await delayed.offerAll([
      { value: 'day', delay: 24, unit: 'hours' },
      { value: 'hour', delay: HOUR },
      { value: 'late hour', date: new Date(START.getTime() + HOUR + 1) },
      { value: 'soon', delay: 1_000 },
    ])
    await delayed.offer('second hour', 2, 'hours')
    expect(far.map(dueOf)).to.deep.equal([24 * HOUR, HOUR, HOUR + 1, 1_000].map((ms) => START.getTime() + ms))
    expect(await delayed.size()).to.equal(5)
    await kit.advance(HOUR - 1)
    expect(await queue.readAll()).to.deep.equal(['soon'])
    await kit.advance(1)
    expect(await queue.readAll()).to.deep.equal(['soon', 'hour'])
    await kit.runAll()
    expect(await queue.readAll()).to.deep.equal(['soon', 'hour', 'late hour', 'second hour', 'day'])
    expect(kit.now.getTime()).to.equal(START.getTime() + 24 * HOUR)
    expect(await delayed.isEmpty()).to.equal(true)
  })

  it('is delivered by a consumer that knows of no layout', async () => {
    const kit = await open()
    const queue = kit.client.getBlockingQueue<string>(kit.uniqueName(), string)
    const taken = queue.take()
    await kit.client.getDelayedQueue(queue, { layout: 'wheel', deliver: false }).offer('x', HOUR)
    await kit.advance(HOUR)
    expect(await taken).to.equal('x')
  })

  it('cancels and reschedules by ticket, before and after its minute is near', async () => {
    const kit = await open()
    const queue = kit.client.getBlockingQueue<string>(kit.uniqueName(), string)
    const delayed = kit.client.getDelayedQueue(queue, { layout: 'wheel' })
    const tickets = await delayed.offerAll(['a', 'b', 'c', 'd'].map((value) => ({ value, delay: HOUR })))
    const [a, b, c, d] = tickets as [string, string, string, string]
    expect([await delayed.cancel(a), await delayed.cancel(a), await delayed.size()]).to.deep.equal([true, false, 3])
    const later = (await delayed.reschedule(b, 2, 'hours'))!
    expect(dueOf(later)).to.equal(START.getTime() + 2 * HOUR)
    expect([await delayed.reschedule(b, 5), await delayed.cancel(b)]).to.deep.equal([null, false])
    await kit.advance(HOUR - 10_000)
    expect(await delayed.cancel(c)).to.equal(true)
    const sooner = (await delayed.reschedule(d, 1_000))!
    await kit.advance(1_000)
    expect(await queue.readAll()).to.deep.equal(['d'])
    expect(await delayed.cancel(sooner)).to.equal(false)
    await kit.runAll()
    expect(await queue.readAll()).to.deep.equal(['d', 'b'])
    expect(await delayed.cancel(later)).to.equal(false)
    expect(await delayed.reschedule(later, Number.MAX_SAFE_INTEGER)).to.equal(null)
    const last = await delayed.offer('last', HOUR)
    await expectError([InvalidArgumentError, { code: 'ERR_INVALID_ARGUMENT', queue: delayed.name }], () =>
      delayed.reschedule(last, Number.MAX_SAFE_INTEGER),
    )
  })

  it('offers single messages of one turn together', async () => {
    const delayed = make()
    const tickets = await Promise.all(Array.from({ length: 300 }, (_, n) => delayed.offer(String(n), HOUR + n)))
    expect(new Set(tickets).size).to.equal(300)
    expect(await delayed.size()).to.equal(300)
    for (const ticket of tickets.slice(0, 10)) expect(await delayed.cancel(ticket)).to.equal(true)
    expect(await delayed.stats()).to.include({ pending: 290, overdue: 0 })
  })

  it('has tickets of a length of their own', async () => {
    expect(await make().offer('x', HOUR)).to.have.length(27)
    const unguessable = make({ unguessableTickets: true })
    const ticket = await unguessable.offer('x', HOUR)
    expect(ticket).to.have.length(34)
    expect(await unguessable.cancel(ticket)).to.equal(true)
  })

  it('shows the messages due soon in its schedule', async () => {
    const delayed = make()
    await delayed.offer('far', HOUR)
    const ticket = await delayed.offer('near', 30_000)
    expect(await delayed.schedule()).to.deep.include({ value: 'near', due: dueOf(ticket), ticket })
  })

  it("is counted by an object with layout 'compact', too", async () => {
    const wheel = make()
    const other = makeClient()
    const queue = other.getBlockingQueue<string>(wheel.destination.name, string)
    const compact = other.getDelayedQueue(queue, { layout: 'compact' })
    await wheel.offer('far', HOUR)
    expect([await compact.size(), await compact.isEmpty()]).to.deep.equal([1, false])
    await compact.offer('far too', HOUR)
    expect([await compact.size(), await wheel.size()]).to.deep.equal([2, 2])
  })

  it('is measured by metrics, and listens as a queue of its type', async () => {
    const delayed = make().on('error', (error) => expect.fail(error.message))
    await delayed.offer('far', HOUR)
    const readings = await readGauges([delayed])
    expect(readings.find(({ labels }) => labels['state'] === 'delayed')?.value).to.equal(1)
  })

  it('is deleted with all its buckets', async () => {
    const delayed = make()
    expect([await delayed.isExists(), await delayed.delete()]).to.deep.equal([false, false])
    await delayed.offerAll(Array.from({ length: 250 }, (_, n) => ({ value: String(n), delay: HOUR + n * 60_000 })))
    expect(await delayed.isExists()).to.equal(true)
    expect(await delayed.delete()).to.equal(true)
    expect([await delayed.isExists(), await delayed.size()]).to.deep.equal([false, 0])
    const left = await rawClient().keys(`*{${delayed.name}}*`)
    expect(left).to.deep.equal([`redelayed:horizon:{${delayed.name}}`])
    expect(keysOf(delayed.name)).to.include(left[0])
    await delayed.offer('again', HOUR)
    await delayed.clear()
    expect(await delayed.isEmpty()).to.equal(true)
  })

  it('refuses methods that read or take single pending messages, or act on all keys', async () => {
    const wheel = make()
    await wheel.offer('far', HOUR)
    const delayed = wheel as unknown as DelayedQueue<string> // as JavaScript, and a layout that is not known when it is compiled, can call it
    const refused: Record<
      Exclude<keyof DelayedQueue, keyof WheelQueue> | 'poll of many' | 'remove of one',
      () => Promise<unknown>
    > = {
      peek: () => delayed.peek(),
      element: () => delayed.element(),
      readAll: () => delayed.readAll(),
      toArray: () => delayed.toArray(),
      iterate: () => delayed.iterate().next(),
      contains: () => delayed.contains('far'),
      containsAll: () => delayed.containsAll(['far']),
      poll: () => delayed.poll(),
      'poll of many': () => delayed.poll(3),
      remove: () => delayed.remove(),
      'remove of one': () => delayed.remove('far'),
      removeAll: () => delayed.removeAll(['far']),
      retainAll: () => delayed.retainAll(['near']),
      pollLastAndOfferFirstTo: () => delayed.pollLastAndOfferFirstTo(delayed.name),
      touch: () => delayed.touch(),
      sizeInMemory: () => delayed.sizeInMemory(),
      expire: () => delayed.expire(HOUR),
      expireIfSet: () => delayed.expireIfSet(HOUR),
      expireIfNotSet: () => delayed.expireIfNotSet(HOUR),
      expireIfGreater: () => delayed.expireIfGreater(HOUR),
      expireIfLess: () => delayed.expireIfLess(HOUR),
      clearExpire: () => delayed.clearExpire(),
      remainTimeToLive: () => delayed.remainTimeToLive(),
      getExpireTime: () => delayed.getExpireTime(),
      rename: () => delayed.rename('x'),
      renamenx: () => delayed.renamenx('x'),
      copy: () => delayed.copy('x'),
      copyAndReplace: () => delayed.copyAndReplace('x'),
    }
    for (const [name, call] of Object.entries(refused)) {
      const error = await call().then(
        () => null,
        (thrown: unknown) => thrown,
      )
      expect(error, name).to.be.instanceOf(UnsupportedOperationError)
      expect((error as UnsupportedOperationError).message, name).to.include("layout 'compact'")
    }
    expect(await delayed.size()).to.equal(1)
  })

  it('is refused where ids have 8 bytes, or commands are sent again by a client of yours', async () => {
    const options = { layout: 'wheel' } as const
    const old = makeClient({ entryFormat: 'dLc0' })
    expect(() => old.getDelayedQueue(old.getBlockingQueue(uniqueName()), options)).to.throw(InvalidArgumentError)
    const borrowed = createClient({ redis: rawClient() })
    onCleanup(() => borrowed.shutdown())
    expect(() => borrowed.getDelayedQueue(borrowed.getBlockingQueue(uniqueName()), options)).to.throw(
      InvalidArgumentError,
      'autoResendUnfulfilledCommands',
    )
  })

  it('is a layout of sharded queues, too', async () => {
    const kit = await open()
    const sharded = kit.client.getShardedDelayedQueue<string>(kit.uniqueName(), {
      shards: 2,
      layout: 'wheel',
      ...string,
    })
    const tickets = await sharded.offerAll(['a', 'b', 'c', 'd'].map((value) => ({ value, delay: HOUR })))
    expect(await sharded.cancel(tickets[0]!)).to.equal(true)
    expect(await sharded.size()).to.equal(3)
    await kit.runAll()
    expect((await sharded.drainTo(10)).sort()).to.deep.equal(['b', 'c', 'd'])
  })
})
