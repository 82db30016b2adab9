/**
 * What Redisson's RDelayedQueue offers beside offering, polling and removing one message; after RedissonDelayedQueueTest. With
 * both layouts, and with entries of both formats.
 */
import { expect } from 'chai'
import {
  InvalidArgumentError,
  InvalidTicketError,
  NoSuchElementError,
  ShutdownError,
  UnsupportedOperationError,
  codecs,
  dueOf,
  type BlockingQueue,
  type DelayedQueue,
  type RedelayedClient,
} from '../../src/index.js'
import { rawClient, uniqueName } from '../support/redis.js'
import {
  cleanUp,
  expectError,
  javaEntry,
  javaOffer,
  makeClient,
  numbers,
  rawKeys,
  redisNow,
  takeAll,
  type Keys,
} from './fixtures.js'

const string = { codec: codecs.string() }
const raw = rawClient
const HOUR = 3_600_000

const layouts = [
  { layout: 'redisson', entryFormat: 'Bc0Lc0' },
  { layout: 'compact', entryFormat: 'Bc0Lc0' },
  { layout: 'redisson', entryFormat: 'dLc0' },
] as const

for (const { layout, entryFormat } of layouts) {
  describe(`DelayedQueue with layout '${layout}' and entries ${entryFormat}`, () => {
    let name: string
    let client: RedelayedClient
    let queue: BlockingQueue<string>
    let delayed: DelayedQueue<string>
    let keys: Keys

    beforeEach(() => {
      name = uniqueName()
      client = makeClient({ entryFormat })
      queue = client.getBlockingQueue<string>(name, string)
      delayed = client.getDelayedQueue(queue, { layout: layout })
      keys = rawKeys(name)
    })
    afterEach(cleanUp)

    const pending = async () => [await raw().zcard(keys.timeouts), await raw().llen(keys.order)]
    const both = (count: number) => [count, layout === 'redisson' ? count : 0]
    /** Offered in this order, due in another one. */
    const offerAll = (...values: string[]) =>
      delayed.offerAll(values.map((value, index) => ({ value, delay: HOUR - index * 60_000 })))
    /** In offer order with a list, else the next due first: the last offered. */
    const inOrder = (...values: string[]) => (layout === 'redisson' ? values : values.reverse())

    it('containsAll: each value once is enough, an unknown value makes it false', async () => {
      expect([await delayed.containsAll([]), await delayed.containsAll(['1'])]).to.deep.equal([true, false])
      await offerAll('3', '1', '2', '1')
      expect(await delayed.containsAll(['1', '2', '1', '1'])).to.equal(true)
      expect(await delayed.containsAll(['1', '2', '3', '4'])).to.equal(false)
      expect([await delayed.contains('1'), await delayed.contains('4')]).to.deep.equal([true, false])
      expect(await pending()).to.deep.equal(both(4))
    })

    it('removeAll removes every match from both keys', async () => {
      await offerAll('3', '1', '2', '1')
      expect([await delayed.removeAll([]), await delayed.removeAll(['7'])]).to.deep.equal([false, false])
      expect(await delayed.removeAll(['1', '2'])).to.equal(true)
      expect(await delayed.readAll()).to.deep.equal(['3'])
      expect(await pending()).to.deep.equal(both(1))
      expect(await delayed.removeAll(['3', '4'])).to.equal(true)
      expect(await pending()).to.deep.equal([0, 0])
    })

    it('retainAll removes the rest from both keys, so that it is not delivered', async () => {
      await offerAll('3', '1', '2')
      expect(await delayed.retainAll(['1', '2', '3', '4'])).to.equal(false)
      expect(await delayed.retainAll(['1', '2', '3'])).to.equal(false)
      expect(await delayed.retainAll(['1', '2'])).to.equal(true)
      expect(await delayed.readAll()).to.deep.equal(inOrder('1', '2'))
      expect(await pending()).to.deep.equal(both(2))
      expect([await delayed.retainAll([]), await delayed.retainAll([])]).to.deep.equal([true, false])
      expect(await pending()).to.deep.equal([0, 0])

      // both are due, and no client delivers them before the take
      const due = client.getBlockingQueue<string>(uniqueName('due'), string)
      const idle = client.getDelayedQueue(due, { layout: layout, deliver: false })
      await idle.offer('dropped', 0)
      await idle.offer('kept', 0)
      expect(await idle.retainAll(['kept'])).to.equal(true)
      expect(await due.take()).to.equal('kept')
      expect([await due.poll(), await idle.size()]).to.deep.equal([null, 0])
    })

    it('containsAll, retainAll and removeAll over thousands, in pages', async () => {
      await delayed.offerAll(
        numbers(2_000).map((value) => ({ value, delay: HOUR + ((Number(value) * 7_919) % 2_000) })),
      )
      const even = numbers(2_000).filter((value) => Number(value) % 2 === 0)
      expect(await delayed.containsAll(numbers(2_000))).to.equal(true)
      expect(await delayed.retainAll(even)).to.equal(true)
      expect((await delayed.readAll()).sort()).to.deep.equal(even.sort())
      expect(await pending()).to.deep.equal(both(1_000))
      expect(await delayed.removeAll(even)).to.equal(true)
      expect(await pending()).to.deep.equal([0, 0])
    })

    it('retainAll during offers and cancels: no other message stays that was pending at the start', async () => {
      const tickets = await delayed.offerAll(
        numbers(1_500).map((value) => ({ value: Number(value) % 3 === 0 ? 'keep' : `drop ${value}`, delay: HOUR })),
      )
      const changing = (async () => {
        for (let i = 0; i < 300; i++) {
          await delayed.cancel(tickets[i * 3]!)
          await delayed.offer('keep', HOUR - 1_000_000)
        }
      })()
      expect(await delayed.retainAll(['keep'])).to.equal(true)
      await changing
      expect(new Set(await delayed.readAll())).to.deep.equal(new Set(['keep']))
    })

    it('element and toArray; element rejects when nothing is pending', async () => {
      await expectError([NoSuchElementError, { code: 'ERR_NO_SUCH_ELEMENT', queue: name }], () => delayed.element())
      await offerAll('a', 'b')
      expect(await delayed.element()).to.equal(inOrder('a', 'b')[0])
      expect(await delayed.toArray()).to.deep.equal(inOrder('a', 'b'))
      expect(delayed.getName()).to.equal(name)
      expect(delayed.getCodec()).to.equal(queue.codec)
    })

    it('pollLastAndOfferFirstTo puts the last pending one in front of another queue', async () => {
      const other = uniqueName('other')
      expect(await delayed.pollLastAndOfferFirstTo(other)).to.equal(null)
      await raw().rpush(other, 'x')
      await offerAll('3', '1', '2')
      expect(await delayed.pollLastAndOfferFirstTo(other)).to.equal(inOrder('3', '1', '2').at(-1))
      expect(await raw().lrange(other, 0, -1)).to.deep.equal([inOrder('3', '1', '2').at(-1), 'x'])
      expect(await pending()).to.deep.equal(both(2))
    })

    it('isExists, touch, sizeInMemory, delete and unlink mean the pending messages, not the destination', async () => {
      await queue.offer('delivered')
      expect([await delayed.isExists(), await delayed.touch(), await delayed.sizeInMemory()]).to.deep.equal([
        false,
        false,
        0,
      ])
      for (const call of ['delete', 'unlink'] as const) {
        await offerAll('a', 'b')
        expect([await delayed.isExists(), await delayed.touch()]).to.deep.equal([true, true])
        const sizes = await Promise.all([keys.timeouts, keys.order].map((key) => raw().memory('USAGE', key)))
        expect(await delayed.sizeInMemory()).to.equal((sizes[0] ?? 0) + (sizes[1] ?? 0))
        expect([await delayed[call](), await delayed[call]()]).to.deep.equal([true, false])
      }
      expect(await queue.readAll()).to.deep.equal(['delivered'])
    })

    it('rename moves the pending messages to another queue, which is delivered at once by its own', async () => {
      const other = uniqueName('renamed')
      const target = client.getBlockingQueue<string>(other, string)
      const otherDelayed = client.getDelayedQueue(target, { layout: layout })
      await expectError([NoSuchElementError, { code: 'ERR_NO_SUCH_ELEMENT', queue: name }], () => delayed.rename(other))
      await queue.offer('stays')
      await delayed.destroy() // so that no client delivers before the rename
      const idle = client.getDelayedQueue(queue, { layout: layout, deliver: false })
      const due = dueOf(await idle.offer('a', 100))
      await otherDelayed.offer('replaced', HOUR)
      expect(await idle.renamenx(other)).to.equal(false)
      const from = Math.max(due, await redisNow())
      await idle.rename(other)
      expect(await idle.isExists()).to.equal(false)
      expect(await target.take()).to.equal('a')
      expect(await redisNow()).to.be.within(due, from + 500)
      expect(await otherDelayed.size()).to.equal(0)
      expect(await queue.readAll()).to.deep.equal(['stays'])
      await idle.offer('b', HOUR)
      expect(await idle.renamenx(other)).to.equal(true)
      expect(await otherDelayed.readAll()).to.deep.equal(['b'])
    })

    it('copy makes the same messages pending for another queue too', async () => {
      const other = uniqueName('copied')
      const otherDelayed = client.getDelayedQueue(client.getQueue<string>(other, string), {
        layout: layout,
        deliver: false,
      })
      expect(await delayed.copy(other)).to.equal(false)
      await offerAll('a', 'b')
      expect([await delayed.copy(other), await delayed.copy(other)]).to.deep.equal([true, false])
      expect(await otherDelayed.readAll()).to.deep.equal(inOrder('a', 'b'))
      await delayed.remove('a')
      expect(await delayed.copyAndReplace(other)).to.equal(true)
      expect([await otherDelayed.readAll(), await delayed.readAll(), await raw().exists(other)]).to.deep.equal([
        ['b'],
        ['b'],
        0,
      ])
    })

    it('the methods that Redisson refuses too, and all after destroy()', async () => {
      await expectError([UnsupportedOperationError, { code: 'ERR_UNSUPPORTED_OPERATION', queue: name }], () =>
        delayed.add(),
      )
      await delayed.destroy()
      const wanted = { code: 'ERR_SHUTDOWN', queue: name }
      for (const call of [
        () => delayed.containsAll(['a']),
        () => delayed.removeAll(['a']),
        () => delayed.retainAll(['a']),
        () => delayed.pollLastAndOfferFirstTo('x'),
        () => delayed.expire(5),
        () => delayed.rename('x'),
        () => delayed.isExists(),
        () => delayed.delete(),
      ]) {
        await expectError([ShutdownError, wanted], call)
      }
    })

    it('Java’s entries of both formats are seen, removed and kept as our own', async () => {
      const old = javaEntry('old').subarray(1)
      await raw().multi().zadd(keys.timeouts, 9e12, old).rpush(keys.order, old).exec()
      await javaOffer(name, 'new', 9e12)
      await delayed.offer('ours', HOUR)
      expect(await delayed.containsAll(['old', 'new', 'ours'])).to.equal(true)
      expect(await delayed.removeAll(['new'])).to.equal(true)
      expect(await delayed.retainAll(['old', 'ours'])).to.equal(false)
      expect(await delayed.retainAll(['ours'])).to.equal(true)
      expect(await raw().zcard(keys.timeouts)).to.equal(1)
    })
  })
}

describe("entryFormat 'dLc0'", () => {
  let name: string
  let client: RedelayedClient
  let queue: BlockingQueue<string>
  let delayed: DelayedQueue<string>
  let keys: Keys

  beforeEach(() => {
    name = uniqueName()
    client = makeClient({ entryFormat: 'dLc0' })
    queue = client.getBlockingQueue<string>(name, string)
    delayed = client.getDelayedQueue(queue)
    keys = rawKeys(name)
  })
  afterEach(cleanUp)

  it('writes what Redisson before 3.21.1 unpacks: a double, the length, the payload', async () => {
    await delayed.offer('"hi"', HOUR)
    const [entry] = await raw().zrangeBuffer(keys.timeouts, '0', '-1')
    expect(await raw().lrangeBuffer(keys.order, 0, -1)).to.deep.equal([entry])
    expect(entry!.subarray(8).toString('hex')).to.equal('040000000000000022686922')
    const script = "local id, value = struct.unpack('dLc0', ARGV[1]) return {tostring(id), value}"
    const [id, value] = (await raw().eval(script, 0, entry!)) as [string, string]
    expect(value).to.equal('"hi"')
    expect(Number(id)).to.be.within(2 ** 63, 2 ** 64)
  })

  it('is delivered in the order of one millisecond, once each, beside entries of the other format', async () => {
    const at = new Date(Math.floor(await redisNow()) + 300)
    for (const value of numbers(100)) await delayed.offerAt(value, at)
    await javaOffer(name, 'new', at.getTime() + 1)
    expect(await takeAll(queue, 101)).to.deep.equal([...numbers(100), 'new'])
    expect(await raw().exists(keys.timeouts, keys.order)).to.equal(0)
  })

  it('tickets cancel and reschedule, from every client', async () => {
    const modern = makeClient()
    const same = modern.getDelayedQueue(modern.getBlockingQueue<string>(name, string))
    const ticket = await delayed.offer('a', HOUR)
    expect(ticket).to.match(/^[\w-]{26}$/)
    const later = await same.reschedule(ticket, 2 * HOUR)
    expect(dueOf(later!)).to.be.greaterThan(dueOf(ticket))
    expect(await delayed.cancel(ticket)).to.equal(false)
    expect(await delayed.cancel(later!)).to.equal(true)
    expect(await raw().exists(keys.timeouts, keys.order)).to.equal(0)

    const soon = await delayed.offer('b', HOUR)
    expect(await delayed.reschedule(soon, 20)).to.be.a('string')
    expect(await queue.take()).to.equal('b')
    const damaged = `${ticket.slice(0, -1)}${ticket.endsWith('A') ? 'Q' : 'A'}`
    await expectError([InvalidTicketError, { code: 'ERR_INVALID_TICKET', queue: name }], () => delayed.cancel(damaged))
  })

  it('poll, find and schedule work on them', async () => {
    const [, second] = await delayed.offerAll(['a', 'b', 'c'].map((value) => ({ value, delay: HOUR })))
    expect((await delayed.schedule()).map(({ value, ticket }) => [value, ticket === second])).to.deep.equal([
      ['a', false],
      ['b', true],
      ['c', false],
    ])
    expect(await delayed.remove('c')).to.equal(true)
    expect([await delayed.poll(), await delayed.poll(), await delayed.poll()]).to.deep.equal(['a', 'b', null])
  })

  it("is refused with layout 'compact', and nothing but the two formats is taken", async () => {
    await expectError([InvalidArgumentError, { code: 'ERR_INVALID_ARGUMENT', queue: name, says: ['dLc0'] }], () =>
      client.getDelayedQueue(queue, { layout: 'compact' }),
    )
    await expectError([InvalidArgumentError, { code: 'ERR_INVALID_ARGUMENT', says: ['entryFormat', 'Bc0Lc0'] }], () =>
      makeClient({ entryFormat: 'dLC0' as 'dLc0' }),
    )
  })
})
