import { expect } from 'chai'
import { codecs, createClient, InvalidArgumentError } from '../../src/index.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, rawKeys, takeAll } from './fixtures.js'

describe('unguessable tickets', () => {
  afterEach(cleanUp)

  const layouts = [
    { layout: 'compact', characters: 31, randomBytes: 8 },
    { layout: 'redisson', characters: 35, randomBytes: 11 },
  ] as const
  for (const { layout, characters, randomBytes } of layouts) {
    it(`layout ${layout}: ${randomBytes} random bytes; they keep the order of a millisecond, cancel and reschedule`, async () => {
      const name = uniqueName()
      const client = makeClient()
      const queue = client.getBlockingQueue<string>(name, { codec: codecs.string() })
      const delayed = client.getDelayedQueue(queue, { layout: layout, unguessableTickets: true })
      const date = new Date(Date.now() + 60_000)
      const values = Array.from({ length: 50 }, (_, n) => String(n))
      const tickets = await delayed.offerAll(values.map((value) => ({ value, date })))
      for (const ticket of tickets) expect(ticket).to.have.length(characters)
      const random = tickets.map((ticket) => Buffer.from(ticket, 'base64url').toString('hex', 5, 5 + randomBytes))
      expect(new Set(random).size).to.equal(50)
      for (let at = 0; at < 2 * randomBytes; at++) {
        expect(new Set(random.map((hex) => hex[at])).size).to.be.greaterThan(1)
      }
      expect(await delayed.readAll()).to.deep.equal(values)
      expect(await delayed.cancel(tickets[0] ?? '')).to.equal(true)
      expect(await delayed.cancel(tickets[0] ?? '')).to.equal(false)
      expect(await delayed.reschedule(tickets[1] ?? '', 10))
        .to.be.a('string')
        .with.length(characters)
      expect(await takeAll(queue, 1)).to.deep.equal(['1'])
      const { timeouts, order: list } = rawKeys(name)
      expect(await rawClient().zcard(timeouts)).to.equal(48)
      expect(await rawClient().llen(list)).to.equal(layout === 'redisson' ? 48 : 0)
      await delayed.clear()
    })

    it(`layout ${layout}: of a sharded queue`, async () => {
      const sharded = makeClient().getShardedDelayedQueue(uniqueName(), {
        shards: 2,
        layout: layout,
        unguessableTickets: true,
      })
      const tickets = await sharded.offerAll([1, 2, 3, 4].map((value) => ({ value, delay: 60_000 })))
      for (const ticket of tickets) expect(ticket.replace(/^\d+\./, '')).to.have.length(characters)
      expect(await Promise.all(tickets.map((ticket) => sharded.cancel(ticket)))).to.deep.equal([true, true, true, true])
    })
  }

  it('are refused if ids are doubles, and if the option is not a boolean', async () => {
    const client = createClient({ url: redisUrl(), entryFormat: 'dLc0' })
    const options = { unguessableTickets: true }
    expect(() => client.getDelayedQueue(client.getQueue(uniqueName()), options)).to.throw(InvalidArgumentError, /dLc0/)
    await client.shutdown()
    const wrong = { shards: 2, unguessableTickets: 'yes' as unknown as boolean }
    expect(() => makeClient().getShardedDelayedQueue(uniqueName(), wrong)).to.throw(InvalidArgumentError, /unguessable/)
  })
})
