import { expect } from 'chai'
import {
  InvalidTicketError,
  NoSuchElementError,
  UnsupportedOperationError,
  codecs,
  dueOf,
  type DelayedQueue,
  type TimeUnit,
} from '../../src/index.js'
import { once } from '../support/events.js'
import { rawClient, uniqueName } from '../support/redis.js'
import {
  ORDERS,
  cleanUp,
  expectError,
  makePair,
  numbers,
  rawState,
  redisNow,
  takeAll,
  untilRedisClock,
  type Pair,
} from './fixtures.js'

/** Long enough to stay pending for the whole test. */
const LATER = 600_000

for (const layout of ORDERS) {
  describe(`DelayedQueue, layout: '${layout}'`, () => {
    let pair: Pair
    let delayed: DelayedQueue<string>
    const raw = rawClient

    beforeEach(() => {
      pair = makePair(layout)
      delayed = pair.delayed
    })
    afterEach(cleanUp)

    async function expectNothingPending(): Promise<void> {
      expect(await raw().exists(pair.keys.timeouts, pair.keys.order)).to.equal(0)
    }

    const units: [delay: number, unit: TimeUnit | undefined, ms: number][] = [
      [90_000, undefined, 90_000],
      [90_000, 'milliseconds', 90_000],
      [90, 'seconds', 90_000],
      [1.5, 'seconds', 1_500],
      [3, 'minutes', 180_000],
      [2, 'hours', 7_200_000],
      [365, 'days', 31_536_000_000],
    ]
    for (const [delay, unit, ms] of units) {
      it(`offer(value, ${delay}, ${unit}) is due ${ms} ms after now by the Redis clock`, async () => {
        const before = await redisNow()
        const ticket = await delayed.offer('x', delay, unit)
        const after = await redisNow()

        expect(dueOf(ticket)).to.be.within(Math.floor(before) + ms, Math.floor(after) + ms)
        const [entry, score] = await raw().zrangeBuffer(pair.keys.timeouts, 0, '-1', 'WITHSCORES')
        expect(String(score)).to.equal(String(dueOf(ticket)))
        expect(entry?.[0]).to.equal(layout === 'redisson' ? 8 : 5)
        expect(await raw().lrangeBuffer(pair.keys.order, 0, -1)).to.deep.equal(layout === 'redisson' ? [entry] : [])
      })
    }

    it('offer with a delay of 0 delivers at once', async () => {
      await delayed.offer('now', 0)
      expect(await pair.queue.poll(2000)).to.equal('now')
      await expectNothingPending()
    })

    it('offerAt is due at the date, also a past one, which is delivered at once', async () => {
      const soon = Math.floor(await redisNow()) + 60
      const tickets = [
        await delayed.offerAt('long ago', new Date(-5)),
        await delayed.offerAt('past', new Date(soon - 100_000)),
        await delayed.offerAt('soon', new Date(soon)),
      ]
      expect(tickets.map(dueOf)).to.deep.equal([0, soon - 100_000, soon])
      expect(await takeAll(pair.queue, 3)).to.deep.equal(['long ago', 'past', 'soon'])
      expect(await redisNow()).to.be.at.least(soon)
    })

    it('delivers in the order of due times', async () => {
      const offers: [value: string, due: number][] = []
      for (const delay of [160, 40, 120, 80]) {
        const value = `after ${delay}`
        offers.push([value, dueOf(await delayed.offer(value, delay))]) // each counts from an offer of its own
      }
      offers.sort((a, b) => a[1] - b[1])
      expect(await takeAll(pair.queue, 4)).to.deep.equal(offers.map(([value]) => value))
      await expectNothingPending()
    })

    it('keeps the order of 500 messages of one millisecond', async () => {
      const date = new Date(Math.floor(await redisNow()) + 300)
      const tickets = await Promise.all(numbers(500).map((value) => delayed.offerAt(value, date)))
      expect(new Set(tickets.map(dueOf))).to.deep.equal(new Set([date.getTime()]))
      expect(await takeAll(pair.queue, 500)).to.deep.equal(numbers(500))
    })

    it('keeps equal values with different delays apart (testDealyedQueue)', async () => {
      await delayed.destroy() // so that nothing is delivered before all are offered
      const idle = pair.client.getDelayedQueue(pair.queue, { layout: layout, deliver: false })
      const start = Math.floor(await redisNow())
      const offers: [value: string, after: number][] = [
        ['3', 180],
        ['1', 60],
        ['2', 120],
        ['2', 300],
        ['4', 240],
      ]
      for (const [value, after] of offers) await idle.offerAt(value, new Date(start + after))
      for (const [value, after] of [...offers].sort((a, b) => a[1] - b[1])) {
        expect(await pair.queue.poll(2000)).to.equal(value)
        expect(await redisNow()).to.be.at.least(start + after)
      }
      expect(await pair.queue.size()).to.equal(0)
      await expectNothingPending()
    })

    it('cancel removes a pending message, once', async () => {
      const kept = await delayed.offer('kept', LATER)
      const ticket = await delayed.offer('gone', LATER)
      expect(await delayed.cancel(ticket)).to.equal(true)
      expect(await delayed.cancel(ticket)).to.equal(false)
      expect(await delayed.readAll()).to.deep.equal(['kept'])
      expect(await delayed.cancel(kept)).to.equal(true)
      await expectNothingPending()
    })

    it('cancel and reschedule find nothing after the delivery', async () => {
      const ticket = await delayed.offer('x', 20)
      expect(await pair.queue.poll(2000)).to.equal('x')
      expect(await delayed.cancel(ticket)).to.equal(false)
      expect(await delayed.reschedule(ticket, 50)).to.equal(null)
      await expectNothingPending()
    })

    it('cancel finds the one among many of one millisecond', async () => {
      const date = new Date(Math.floor(await redisNow()) + LATER)
      const tickets = await Promise.all(numbers(100).map((value) => delayed.offerAt(value, date)))
      for (const index of [0, 99, 50, 49]) expect(await delayed.cancel(tickets[index]!)).to.equal(true)
      const left = numbers(100).filter((value) => !['0', '99', '50', '49'].includes(value))
      expect(await delayed.readAll()).to.deep.equal(left)
    })

    it('reschedule moves a message in both directions and gives a new ticket', async () => {
      const early = await delayed.offer('was early', 600) // pending for some round trips more
      const late = await delayed.offer('was late', LATER)
      const before = await redisNow()
      const later = await delayed.reschedule(early, 10, 'minutes')
      const sooner = await delayed.reschedule(late, 60)
      const after = await redisNow()

      expect(dueOf(later!)).to.be.within(Math.floor(before) + 600_000, Math.floor(after) + 600_000)
      expect(dueOf(sooner!)).to.be.within(Math.floor(before) + 60, Math.floor(after) + 60)
      expect(await pair.queue.poll(2000)).to.equal('was late')
      expect(await redisNow()).to.be.at.least(dueOf(sooner!))
      await untilRedisClock(dueOf(early) + 20)
      expect(await pair.queue.poll()).to.equal(null)
      expect(await delayed.cancel(early), 'the old ticket').to.equal(false)
      expect(await delayed.reschedule(early, 5)).to.equal(null)
      expect(await delayed.cancel(later!)).to.equal(true)
      await expectNothingPending()
    })

    it('a message that is rescheduled to an earlier time is delivered then, without any other wake-up', async () => {
      const quiet = makePair(layout, { sweepInterval: 3_600_000, consumersDeliver: false })
      const ticket = await quiet.delayed.offer('x', LATER)
      expect(await quiet.queue.poll(20)).to.equal(null)
      const sooner = await quiet.delayed.reschedule(ticket, 50)
      expect(await quiet.queue.poll(2_000)).to.equal('x')
      expect(await redisNow()).to.be.at.least(dueOf(sooner!))
    })

    it('a ticket works on any object of its queue, and on no other queue', async () => {
      const ticket = await delayed.offer('x', LATER)
      const other = makePair(layout)
      const code = { code: 'ERR_INVALID_TICKET', queue: other.name, says: ['another queue'] }
      await expectError([InvalidTicketError, code], () => other.delayed.cancel(ticket))
      await expectError([InvalidTicketError, code], () => other.delayed.reschedule(ticket, 5))
      const twin = makePair(layout === 'redisson' ? 'compact' : 'redisson', { queueName: pair.name })
      expect(await twin.delayed.cancel(ticket)).to.equal(true)
      await expectNothingPending()
    })

    describe('with five pending', () => {
      const offered = ['c', 'a', 'e', 'b', 'd']
      const expected = layout === 'redisson' ? offered : [...offered].sort()

      beforeEach(async () => {
        for (const value of offered) await delayed.offer(value, LATER + value.charCodeAt(0) * 1000)
      })

      it('size, isEmpty, peek and readAll change nothing', async () => {
        const before = await rawState(pair.name)
        expect(await delayed.size()).to.equal(5)
        expect(await delayed.isEmpty()).to.equal(false)
        expect(await delayed.peek()).to.equal(expected[0])
        expect(await delayed.readAll()).to.deep.equal(expected)
        for (const pageSize of [1, 2, 5, 100]) {
          const seen: string[] = []
          for await (const value of delayed.iterate({ pageSize })) seen.push(value)
          expect(seen, `pages of ${pageSize}`).to.deep.equal(expected)
        }
        expect(await rawState(pair.name)).to.deep.equal(before)
      })

      it('poll takes one after the other, which are not delivered any more', async () => {
        for (const value of expected) expect(await delayed.poll()).to.equal(value)
        expect(await delayed.poll()).to.equal(null)
        await expectNothingPending()
        expect(await pair.queue.isEmpty()).to.equal(true)
      })

      it('poll(limit) takes so many', async () => {
        expect(await delayed.poll(0)).to.deep.equal([])
        expect(await delayed.poll(3)).to.deep.equal(expected.slice(0, 3))
        expect(await delayed.poll(10)).to.deep.equal(expected.slice(3))
        expect(await delayed.poll(2)).to.deep.equal([])
        await expectNothingPending()
      })

      it('contains and remove go by value', async () => {
        expect(await delayed.contains('d')).to.equal(true)
        expect(await delayed.contains('dd')).to.equal(false)
        expect(await delayed.remove('d')).to.equal(true)
        expect(await delayed.remove('d')).to.equal(false)
        expect(await delayed.contains('d')).to.equal(false)
        expect(await delayed.readAll()).to.deep.equal(expected.filter((value) => value !== 'd'))
        expect(await raw().zcard(pair.keys.timeouts)).to.equal(4)
      })

      it('remove() takes the first and rejects on an empty queue', async () => {
        expect(await delayed.remove()).to.equal(expected[0])
        await delayed.clear()
        const wanted = { code: 'ERR_NO_SUCH_ELEMENT', queue: pair.name }
        await expectError([NoSuchElementError, wanted], () => delayed.remove())
      })

      it('clear and delete drop only pending messages', async () => {
        await pair.queue.offer('delivered')
        expect(await delayed.delete()).to.equal(true)
        expect(await delayed.delete()).to.equal(false)
        await delayed.clear()
        await expectNothingPending()
        expect(await delayed.isEmpty()).to.equal(true)
        expect(await delayed.peek()).to.equal(null)
        expect(await pair.queue.poll()).to.equal('delivered')
      })
    })

    it('walks thousands page by page', async () => {
      const values = numbers(1_800)
      await delayed.offerAll(values.map((value) => ({ value, delay: LATER })))
      expect(await delayed.contains('1799')).to.equal(true)
      expect(await delayed.remove('1234')).to.equal(true)
      const rest = values.filter((value) => value !== '1234')
      const seen: string[] = []
      for await (const value of delayed.iterate()) seen.push(value)
      expect(seen).to.deep.equal(rest)
      expect(await delayed.poll(10_000)).to.deep.equal(rest)
      await expectNothingPending()
    })

    it('add is not possible, as in Redisson', async () => {
      const wanted = { code: 'ERR_UNSUPPORTED_OPERATION', queue: pair.name, says: ['offer(value, delay)'] }
      await expectError([UnsupportedOperationError, wanted], () => delayed.add())
    })

    it('emits transfers to the listeners of the queue and of the client, not of other queues', async () => {
      const other = pair.client.getDelayedQueue(pair.client.getQueue<string>(uniqueName(), { codec: codecs.string() }))
      const elsewhere: unknown[] = []
      other.on('transferred', (event) => elsewhere.push(event))
      const heard = [once(delayed, 'transferred'), once(pair.client, 'transferred')]
      await delayed.offer('x', 10)
      for (const event of await Promise.all(heard)) {
        expect(event).to.include({ queue: pair.name, count: 1 })
        expect(event).to.have.property('maxLatenessMs').that.is.within(0, 1000)
      }
      expect(elsewhere).to.deep.equal([])
    })
  })
}
