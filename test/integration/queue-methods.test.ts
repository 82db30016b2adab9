/** The methods of Redisson's RQueue and RObject besides offering and taking, on all four kinds of queue. */
import { expect } from 'chai'
import {
  CrossSlotError,
  DecodeError,
  InvalidArgumentError,
  NoSuchElementError,
  codecs,
  type Codec,
  type QuarantinedEvent,
  type RedelayedClient,
} from '../../src/index.js'
import { requireServerBin, startCluster, type ClusterSetup } from '../support/redis-server.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, expectError, makeClient, numbers, rawKeys, untilBlocked } from './fixtures.js'

const string = { codec: codecs.string() }
const raw = rawClient
const stored = (name: string) => raw().lrange(name, 0, -1)

const kinds = {
  Queue: (client: RedelayedClient, name: string) => client.getQueue<string>(name, string),
  BlockingQueue: (client: RedelayedClient, name: string) => client.getBlockingQueue<string>(name, string),
  Deque: (client: RedelayedClient, name: string) => client.getDeque<string>(name, string),
  BlockingDeque: (client: RedelayedClient, name: string) => client.getBlockingDeque<string>(name, string),
}

for (const [kind, make] of Object.entries(kinds)) {
  describe(`${kind}: the methods of RQueue`, () => {
    let name: string
    let other: string
    let client: RedelayedClient
    let queue: ReturnType<typeof make>

    beforeEach(() => {
      name = uniqueName()
      other = uniqueName('other')
      client = makeClient()
      queue = make(client, name)
    })
    afterEach(cleanUp)

    it('element gives the first, and rejects on an empty queue', async () => {
      await expectError([NoSuchElementError, { code: 'ERR_NO_SUCH_ELEMENT', queue: name }], () => queue.element())
      await queue.addAll(['a', 'b'])
      expect(await queue.element()).to.equal('a')
      expect(await queue.toArray()).to.deep.equal(['a', 'b'])
    })

    it('indexOf counts from the front, over pages', async () => {
      await queue.addAll([...numbers(1_500), '7'])
      expect(await queue.indexOf('0')).to.equal(0)
      expect(await queue.indexOf('7')).to.equal(7)
      expect(await queue.indexOf('1499')).to.equal(1_499)
      expect(await queue.indexOf('1500')).to.equal(-1)
    })

    it('containsAll wants each value once, over pages', async () => {
      expect(await queue.containsAll([])).to.equal(true)
      expect(await queue.containsAll(['1'])).to.equal(false)
      await queue.addAll(numbers(2_500))
      expect(await queue.containsAll(numbers(2_500))).to.equal(true)
      expect(await queue.containsAll(['1', '1', '2499', '0'])).to.equal(true)
      expect(await queue.containsAll(['1', '2500'])).to.equal(false)
      expect(await queue.size()).to.equal(2_500)
    })

    it('removeAll removes all that equal one of the values', async () => {
      await queue.addAll(['a', 'b', 'a', 'c', 'd'])
      expect(await queue.removeAll([])).to.equal(false)
      expect(await queue.removeAll(['x'])).to.equal(false)
      expect(await queue.removeAll(['a', 'x', 'd'])).to.equal(true)
      expect(await stored(name)).to.deep.equal(['b', 'c'])
    })

    it('retainAll keeps the elements that equal one of the values, in order, over pages', async () => {
      await queue.addAll(['a', 'b', 'a', 'c'])
      expect(await queue.retainAll(['c', 'b', 'a', 'x'])).to.equal(false)
      expect(await queue.retainAll(['c', 'a'])).to.equal(true)
      expect(await stored(name)).to.deep.equal(['a', 'a', 'c'])
      expect(await queue.retainAll([])).to.equal(true)
      expect(await queue.retainAll([])).to.equal(false)

      await queue.addAll(numbers(3_500).map((value) => String(Number(value) % 100)))
      expect(await queue.retainAll(['5', '99'])).to.equal(true)
      expect(await stored(name)).to.deep.equal(Array.from({ length: 70 }, (_, i) => (i % 2 === 0 ? '5' : '99')))
    })

    it('retainAll during takes from the front and appends: no other element stays that was there at the start', async () => {
      await queue.addAll(numbers(6_000).map((value) => (Number(value) % 2 === 0 ? 'keep' : `drop ${value}`)))
      const taking = (async () => {
        for (let i = 0; i < 200; i++) {
          await raw().lpop(name)
          await raw().rpush(name, 'new')
        }
      })()
      expect(await queue.retainAll(['keep'])).to.equal(true)
      await taking
      expect((await stored(name)).filter((value) => value.startsWith('drop'))).to.deep.equal([])
    })

    it('retainAll refuses more than 10,000 values', async () => {
      const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: name, says: ['values', '10000'] }
      await expectError([InvalidArgumentError, wanted], () => queue.retainAll(numbers(10_001)))
    })

    it('the methods by value refuse null', async () => {
      const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: name, says: ['values[1]', 'null'] }
      for (const call of ['containsAll', 'removeAll', 'retainAll'] as const) {
        await expectError([InvalidArgumentError, wanted], () => queue[call](['a', null as unknown as string]))
      }
    })

    it('pollLastAndOfferFirstTo moves the last to the front of another', async () => {
      expect(await queue.pollLastAndOfferFirstTo(other)).to.equal(null)
      await queue.addAll(['a', 'b', 'c'])
      expect(await queue.pollLastAndOfferFirstTo(other)).to.equal('c')
      expect(await queue.pollLastAndOfferFirstTo(other)).to.equal('b')
      expect([await stored(name), await stored(other)]).to.deep.equal([['a'], ['b', 'c']])
    })

    it('an undecodable element is moved, and the call rejects', async () => {
      const refusing: Codec<string> = {
        ...codecs.string(),
        decode: () => {
          throw new Error('unreadable')
        },
      }
      const picky = client.getQueue<string>(name, { codec: refusing })
      await raw().rpush(name, 'a')
      await expectError([DecodeError, { code: 'ERR_DECODE', queue: name, says: ['unreadable'] }], () =>
        picky.pollLastAndOfferFirstTo(other),
      )
      expect(await stored(other)).to.deep.equal(['a'])
    })

    it('move takes from the front to the end of another, so many or exactly so many', async () => {
      await queue.addAll(numbers(6))
      await raw().rpush(other, 'x')
      expect(await queue.move({ to: other })).to.deep.equal(['0'])
      expect(await queue.move({ to: other, count: 2 })).to.deep.equal(['1', '2'])
      expect(await queue.move({ to: other, count: 4, exactly: true })).to.deep.equal([])
      expect(await queue.move({ to: other, count: 3, exactly: true })).to.deep.equal(['3', '4', '5'])
      expect(await queue.move({ to: other })).to.deep.equal([])
      expect(await stored(other)).to.deep.equal(['x', ...numbers(6)])
      for (const [options, says] of [
        [{ to: other, count: 0 }, 'count'],
        [{ to: '' }, 'name'],
        [{ to: other, exactly: 1 }, 'exactly'],
        [{ to: other, many: 1 }, 'options.many'],
      ] as const) {
        const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: name, says: [says] }
        await expectError([InvalidArgumentError, wanted], () => queue.move(options as { to: string }))
      }
    })

    it('other queues are named as the application names them', async () => {
      const mapper = { map: (one: string) => `${name}:${one}`, unmap: (one: string) => one.slice(name.length + 1) }
      const mapped = make(makeClient({ nameMapper: mapper }), 'one')
      await mapped.addAll(['a', 'b', 'c'])
      await mapped.pollLastAndOfferFirstTo('two')
      await mapped.move({ to: 'two' })
      expect(await stored(`${name}:two`)).to.deep.equal(['c', 'a'])
      await mapped.rename('three')
      expect(await stored(`${name}:three`)).to.deep.equal(['b'])
      await raw().del(`${name}:two`, `${name}:three`)
    })
  })

  describe(`${kind}: the methods of RObject`, () => {
    let name: string
    let other: string
    let queue: ReturnType<typeof make>

    beforeEach(() => {
      name = uniqueName()
      other = uniqueName('other')
      queue = make(makeClient(), name)
    })
    afterEach(cleanUp)

    it('getName, getCodec, isExists, touch, sizeInMemory', async () => {
      expect([queue.getName(), queue.getCodec().name]).to.deep.equal([name, 'string'])
      expect([await queue.isExists(), await queue.touch(), await queue.sizeInMemory()]).to.deep.equal([false, false, 0])
      await queue.addAll(numbers(100))
      expect([await queue.isExists(), await queue.touch()]).to.deep.equal([true, true])
      expect(await queue.sizeInMemory()).to.equal(await raw().memory('USAGE', name))
    })

    it('delete, unlink and clear delete the list, and leave the pending messages of a delayed queue', async () => {
      const { timeouts } = rawKeys(name)
      await raw().zadd(timeouts, 1, 'pending')
      for (const call of ['delete', 'unlink'] as const) {
        await queue.offer('a')
        expect([await queue[call](), await queue[call]()]).to.deep.equal([true, false])
      }
      await queue.offer('a')
      expect(await queue.clear()).to.equal(undefined)
      expect([await raw().exists(name), await raw().exists(timeouts)]).to.deep.equal([0, 1])
    })

    it('rename moves everything and replaces existing content; the object keeps its name', async () => {
      const wanted = { code: 'ERR_NO_SUCH_ELEMENT', queue: name }
      await expectError([NoSuchElementError, wanted], () => queue.rename(other))
      await expectError([NoSuchElementError, wanted], () => queue.renamenx(other))
      await queue.addAll(['a', 'b'])
      await raw().rpush(other, 'x')
      expect(await queue.renamenx(other)).to.equal(false)
      expect(await queue.rename(other)).to.equal(undefined)
      expect([await queue.readAll(), await stored(other), queue.name]).to.deep.equal([[], ['a', 'b'], name])
      await queue.offer('c')
      await raw().del(other)
      expect(await queue.renamenx(other)).to.equal(true)
      expect(await stored(other)).to.deep.equal(['c'])
    })

    it('copy and copyAndReplace leave the queue as it is', async () => {
      expect(await queue.copy(other)).to.equal(false)
      await queue.addAll(['a', 'b'])
      expect([await queue.copy(other), await queue.copy(other)]).to.deep.equal([true, false])
      await raw().rpush(other, 'x')
      expect(await queue.copyAndReplace(other)).to.equal(true)
      expect([await queue.readAll(), await stored(other)]).to.deep.equal([
        ['a', 'b'],
        ['a', 'b'],
      ])
      await expectError([InvalidArgumentError, { code: 'ERR_INVALID_ARGUMENT', queue: name }], () => queue.copy(''))
    })
  })
}

describe('Redisson’s RedissonBlockingQueueTest.testSingleCharAsKeyName', () => {
  afterEach(cleanUp)

  it('names of one character, with an expiry', async () => {
    const mapper = { map: (one: string) => `${prefix}${one}`, unmap: (one: string) => one }
    const prefix = uniqueName('single')
    const client = makeClient({ nameMapper: mapper })
    for (const name of numbers(10)) {
      const queue = client.getBlockingQueue<string>(name, string)
      await queue.add(`value ${name}`)
      expect(await queue.expire(1, 'minutes')).to.equal(true)
      expect(await queue.poll()).to.equal(`value ${name}`)
    }
  })

  it('an element of another queue that cannot be decoded goes to that queue’s quarantine', async () => {
    const [own, other] = [uniqueName('own'), uniqueName('other')]
    const connection = own.replaceAll(':', '-')
    const client = makeClient({ ioredis: { connectionName: connection } })
    const heard: QuarantinedEvent[] = []
    client.on('quarantined', (event) => heard.push(event))
    const queue = client.getBlockingQueue(own, { codec: codecs.json() })
    await raw().rpush(other, '{', '{"ok":true}')
    expect(await queue.pollFromAnyWithName(500, 'milliseconds', other)).to.deep.equal({
      name: other,
      value: { ok: true },
    })
    const waiting = queue.pollFromAnyWithName(5, 'seconds', other)
    await untilBlocked(connection)
    await raw().rpush(other, '[', '2')
    expect(await waiting).to.deep.equal({ name: other, value: 2 })
    expect(heard.map((event) => event.queue)).to.deep.equal([other, other])
    expect(await raw().llen(rawKeys(other).quarantine)).to.equal(2)
  })
})

describe('RQueue methods in a cluster', function () {
  let setup: ClusterSetup

  before(async function () {
    this.timeout(30_000)
    requireServerBin(this)
    setup = await startCluster()
  })
  after(() => setup?.stop())
  afterEach(cleanUp)

  it('act within one slot, and refuse two', async () => {
    const client = makeClient({ cluster: setup.nodes })
    const tag = uniqueName()
    const queue = client.getDeque<string>(`one{${tag}}`, string)
    const delayed = client.getDelayedQueue(queue, { deliver: false })
    await queue.addAll(['a', 'b', 'c', 'd'])
    expect(await queue.pollLastAndOfferFirstTo(`two{${tag}}`)).to.equal('d')
    expect(await queue.move({ to: `two{${tag}}` })).to.deep.equal(['a'])
    expect(await queue.copy(`three{${tag}}`)).to.equal(true)
    expect(await queue.sizeInMemory()).to.be.greaterThan(0)
    await delayed.offer('later', 60_000)
    await delayed.rename(`two{${tag}}`)

    const away = uniqueName('away')
    const wanted = { code: 'ERR_CROSS_SLOT', queue: queue.name }
    for (const call of [
      () => queue.pollLastAndOfferFirstTo(away),
      () => queue.move({ to: away }),
      () => queue.move({ from: 'first', to: away, at: 'last' }),
      () => queue.rename(away),
      () => queue.copy(away),
      () => client.getBlockingQueue<string>(queue.name, string).takeLastAndOfferFirstTo(away),
    ]) {
      await expectError([CrossSlotError, wanted], call)
    }
    expect(await queue.readAll()).to.deep.equal(['b', 'c'])
  }).timeout(20_000)
})
