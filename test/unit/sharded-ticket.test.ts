import { expect } from 'chai'
import fc from 'fast-check'
import { joinTicket, splitTicket } from '../../src/codecs/sharded-ticket.js'
import { dueOf, encodeTicket } from '../../src/codecs/ticket.js'
import { InvalidTicketError } from '../../src/errors.js'

const inner = encodeTicket('orders:7:0', Buffer.from('ABCDE'), 1_767_225_600_000)

describe('tickets of sharded queues', () => {
  it('have both parts, are safe in URLs, and contain the due time', () => {
    for (let shard = 0; shard < 256; shard++) {
      const ticket = joinTicket(shard, inner)
      expect(ticket).to.equal(`${shard}.${inner}`)
      expect(encodeURIComponent(ticket)).to.equal(ticket)
      expect(splitTicket(ticket)).to.deep.equal({ shard, ticket: inner })
      expect(dueOf(ticket)).to.equal(1_767_225_600_000)
    }
  })

  const others: unknown[] = [inner, `256.${inner}`, `1000.${inner}`, `07.${inner}`, `00.${inner}`, `-1.${inner}`]
  others.push(
    `1e1.${inner}`,
    ` 7.${inner}`,
    `７.${inner}`,
    `.${inner}`,
    `7,${inner}`,
    '',
    '7',
    undefined,
    null,
    7,
    {},
    [],
  )
  for (const other of others) {
    it(`${JSON.stringify(other) ?? 'undefined'} is none`, () => {
      expect(() => splitTicket(other)).to.throw(
        InvalidTicketError,
        /ticket as returned by offer of a sharded queue, got/,
      )
      if (other !== inner) expect(() => dueOf(other as string)).to.throw(InvalidTicketError)
    })
  }

  it('dueOf refuses what follows the shard when it is no ticket', () => {
    for (const rest of ['', 'garbage', `8.${inner}`, `${inner}=`, inner.slice(1)]) {
      expect(() => dueOf(`7.${rest}`), rest).to.throw(InvalidTicketError)
    }
  })

  it('nothing makes the reader fail in another way', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => `7.${text}`),
        ),
        (text) => {
          try {
            expect(splitTicket(text).shard).to.be.within(0, 255)
          } catch (error) {
            expect(error).to.be.an.instanceOf(InvalidTicketError)
          }
        },
      ),
    )
  })
})
