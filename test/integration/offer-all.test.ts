import { expect } from 'chai'
import { OfferAllError, dueOf, type DelayedQueue, type OfferItem } from '../../src/index.js'
import { rawClient } from '../support/redis.js'
import { ORDERS, cleanUp, makePair, numbers, rawState, rejection, takeAll, type Pair } from './fixtures.js'

/** Long enough to stay pending for the whole test. */
const LATER = 600_000
const raw = rawClient

for (const layout of ORDERS) {
  describe(`offerAll, layout: '${layout}'`, () => {
    let pair: Pair
    let delayed: DelayedQueue<string>

    beforeEach(() => {
      pair = makePair(layout)
      delayed = pair.delayed
    })
    afterEach(cleanUp)

    async function offerAllError(items: OfferItem<string>[]): Promise<OfferAllError> {
      const error = await rejection(delayed.offerAll(items))
      if (!(error instanceof OfferAllError)) throw error
      return error
    }

    it('offerAll sends 5,000 in order, and each can be cancelled', async () => {
      const tickets = await delayed.offerAll(numbers(5_000).map((value) => ({ value, delay: 600, unit: 'seconds' })))
      expect(new Set(tickets).size).to.equal(5_000)
      expect(await raw().zcard(pair.keys.timeouts)).to.equal(5_000)
      expect(await raw().llen(pair.keys.order)).to.equal(layout === 'redisson' ? 5_000 : 0)
      expect(await delayed.readAll()).to.deep.equal(numbers(5_000))
      expect(await delayed.cancel(tickets[4_321]!)).to.equal(true)
      expect(await delayed.contains('4321')).to.equal(false)
      expect(await delayed.offerAll([])).to.deep.equal([])
    })

    it('offerAll with an invalid item sends nothing and names it', async () => {
      const items = numbers(600).map((value) => ({ value, delay: LATER }))
      items[3] = { value: '3', delay: -1 }
      items[599] = { value: null as unknown as string, delay: 5 }
      const error = await offerAllError(items)
      expect(error.failures.map(({ index, error: { code } }) => [index, code])).to.deep.equal([
        [3, 'ERR_INVALID_ARGUMENT'],
        [599, 'ERR_INVALID_ARGUMENT'],
      ])
      expect(error.failures[0]?.error.message).to.include('items[3].delay').and.include('-1')
      expect(error.tickets).to.deep.equal(items.map(() => null))
      expect(await rawState(pair.name)).to.deep.equal([null, null, null, null])
    })

    it('offerAll with items that the server refuses sends the others', async () => {
      const refused = [0, 250, 299]
      const items = numbers(300).map((value, index) => ({
        value,
        delay: refused.includes(index) ? Number.MAX_SAFE_INTEGER : LATER,
      }))
      const error = await offerAllError(items)
      expect(error.code).to.equal('ERR_OFFER_ALL')
      expect(error.queue).to.equal(pair.name)
      expect(error.failures.map(({ index }) => index)).to.deep.equal(refused)
      error.tickets.forEach((ticket, index) => expect(ticket === null).to.equal(refused.includes(index)))
      expect(await delayed.readAll()).to.deep.equal(numbers(300).filter((_, index) => !refused.includes(index)))
      expect(await delayed.cancel(error.tickets[1]!)).to.equal(true)
    })

    it('offerAll keeps the order of one delay', async () => {
      await delayed.offerAll(numbers(1_500).map((value) => ({ value, delay: 50 })))
      expect(await takeAll(pair.queue, 1_500)).to.deep.equal(numbers(1_500))
    })

    it('offerAll takes dates and delays side by side, each in few scripts, and their ids are in the order given', async () => {
      const { commands } = Reflect.get(pair.queue, 'list').handle.context
      const call = commands.call.bind(commands)
      let scripts = 0
      commands.call = (command, ...others) => {
        if (command.startsWith('EVAL')) scripts++
        return call(command, ...others)
      }
      const date = new Date(Date.now() + LATER)
      const items: OfferItem<string>[] = numbers(600).map((value, index) =>
        index % 3 === 0 ? { value, date } : { value, delay: LATER },
      )
      const tickets = await delayed.offerAll(items)
      expect(scripts, 'three, and some that look for due messages').to.be.at.most(20)
      expect(tickets.filter((_, index) => index % 3 === 0).map(dueOf)).to.deep.equal(Array(200).fill(date.getTime()))
      expect(dueOf(tickets[1]!)).to.be.closeTo(date.getTime(), 5_000)
      const ids = tickets.map((ticket) => Buffer.from(ticket, 'base64url').subarray(0, 5).toString('hex'))
      expect(ids).to.deep.equal(ids.toSorted())
      const pending = await delayed.readAll()
      expect(pending).to.have.members(numbers(600))
      for (const isDate of [true, false]) {
        const ofKind = (value: string) => (Number(value) % 3 === 0) === isDate
        expect(pending.filter(ofKind)).to.deep.equal(numbers(600).filter(ofKind))
      }
      for (const ticket of [tickets[0]!, tickets[1]!, tickets[599]!])
        expect(await delayed.cancel(ticket)).to.equal(true)
    })

    it('offerAll refuses an item with both or with an invalid date, and sends nothing', async () => {
      const date = new Date(Date.now() + LATER)
      const error = await offerAllError([
        { value: 'a', delay: 5, date } as unknown as OfferItem<string>,
        { value: 'b', date: new Date(NaN) },
        { value: 'c', date: 5 as unknown as Date },
        { value: 'd', date, unit: 'seconds' } as unknown as OfferItem<string>,
        { value: 'e', date },
      ])
      expect(error.failures.map(({ index, error: { code } }) => [index, code])).to.deep.equal(
        [0, 1, 2, 3].map((index) => [index, 'ERR_INVALID_ARGUMENT']),
      )
      expect(error.failures[1]?.error.message).to.include('items[1].date')
      expect(await rawState(pair.name)).to.deep.equal([null, null, null, null])
    })

    it('offerAll draws a new id for an entry whose bytes are there already', async () => {
      // the counter of ids as another process with the same start would have it
      const { ids } = Reflect.get(pair.queue, 'list').handle.context
      const next = ids.next.bind(ids)
      const [first] = await delayed.offerAll([{ value: 'same', delay: LATER }])
      const taken = Buffer.from(first!, 'base64url').subarray(0, -10)
      let drawn = 0
      ids.next = (length) => (drawn++ === 1 ? Buffer.from(taken) : next(length))
      const tickets = await delayed.offerAll(['x', 'same', 'y'].map((value) => ({ value, delay: LATER })))
      expect(drawn).to.equal(4)
      expect(new Set([first, ...tickets]).size).to.equal(4)
      expect((await delayed.readAll()).sort()).to.deep.equal(['same', 'same', 'x', 'y'])
    })

    it('offerAll takes any iterable, and large values in several pipelines', async () => {
      const large = 'x'.repeat(300_000)
      const items = new Set(numbers(12).map((value) => ({ value: value + large, delay: LATER })))
      expect(await delayed.offerAll(items)).to.have.lengthOf(12)
      expect((await delayed.readAll()).map((value) => value.replace(large, ''))).to.deep.equal(numbers(12))
    })
  })
}
