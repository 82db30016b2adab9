import { expect } from 'chai'
import fc from 'fast-check'
import { OLD_ID_BYTES, ORDERED_ID_BYTES, UNORDERED_ID_BYTES } from '../../src/codecs/entry.js'
import { decodeTicket, dueOf, encodeTicket } from '../../src/codecs/ticket.js'
import { InvalidTicketError } from '../../src/errors.js'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const LENGTHS = [ORDERED_ID_BYTES, UNORDERED_ID_BYTES, OLD_ID_BYTES]
const ids = fc.constantFrom(...LENGTHS).chain((size) => fc.uint8Array({ minLength: size, maxLength: size }))
const names = fc.string({ unit: 'grapheme', minLength: 1 })

describe('tickets', () => {
  it('hold id and due time of any message', () => {
    fc.assert(
      fc.property(names, ids, fc.maxSafeNat(), (name, id, due) => {
        const ticket = encodeTicket(name, id, due)
        expect(decodeTicket(name, 'queue', ticket)).to.deep.equal({ id: Buffer.from(id), due })
        expect(dueOf(ticket)).to.equal(due)
      }),
      { numRuns: 500 },
    )
    for (const due of [0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER]) {
      expect(dueOf(encodeTicket('q', Buffer.alloc(8), due))).to.equal(due)
    }
  })

  it('are short and safe in URLs', () => {
    fc.assert(
      fc.property(names, ids, fc.maxSafeNat(), (name, id, due) => {
        const ticket = encodeTicket(name, id, due)
        expect(ticket).to.match(/^[\w-]+$/)
        expect(ticket).to.have.length(Math.ceil(((id.length + 10) / 3) * 4))
      }),
    )
    expect(encodeTicket('q', Buffer.alloc(8), 0)).to.have.length(24)
    expect(encodeTicket('q', Buffer.alloc(UNORDERED_ID_BYTES), 0)).to.have.length(20)
    expect(encodeTicket('q', Buffer.alloc(OLD_ID_BYTES), 0)).to.have.length(26)
  })

  it('keep their layout: id, due time big endian, checksum', () => {
    const bytes = Buffer.from(encodeTicket('orders', Buffer.from('ABCDEFGH'), 0x0102030405060), 'base64url')
    expect(bytes.subarray(0, 15).toString('hex')).to.equal('4142434445464748' + '00102030405060')
    expect(bytes).to.have.length(18)
  })

  // tickets are stored by users, so a later version must read those of an earlier one
  it('of earlier versions stay valid', () => {
    const due = 1_767_225_600_000
    expect(decodeTicket('orders', 'orders', 'QUJDREVGR0gAAZt22qgAztt_')).to.deep.equal({
      id: Buffer.from('ABCDEFGH'),
      due,
    })
    expect(decodeTicket('orders', 'orders', 'QUJDREUAAZt22qgAU4jY')).to.deep.equal({ id: Buffer.from('ABCDE'), due })
    expect(encodeTicket('orders', Buffer.from('ABCDEFGH'), due)).to.equal('QUJDREVGR0gAAZt22qgAztt_')
  })

  it('are refused after a change of any one character', () => {
    for (const size of LENGTHS) {
      const ticket = encodeTicket('orders', Buffer.from('ABCDEFGHI').subarray(0, size), 1_700_000_000_000)
      for (let at = 0; at < ticket.length; at++) {
        for (const char of ALPHABET) {
          if (char === ticket[at]) continue
          const damaged = ticket.slice(0, at) + char + ticket.slice(at + 1)
          expect(() => decodeTicket('orders', 'orders', damaged), damaged).to.throw(InvalidTicketError)
        }
      }
    }
  })

  it('are refused after two characters have changed places', () => {
    const ticket = encodeTicket('orders', Buffer.from('ABCDEFGH'), 1_700_000_000_000)
    for (let at = 0; at + 1 < ticket.length; at++) {
      const swapped = ticket.slice(0, at) + ticket[at + 1]! + ticket[at]! + ticket.slice(at + 2)
      if (swapped === ticket) continue
      expect(() => decodeTicket('orders', 'orders', swapped), swapped).to.throw(InvalidTicketError, /damaged/)
    }
  })

  it('are refused by another queue, with its name', () => {
    const ticket = encodeTicket('orders', Buffer.from('ABCDEFGH'), 5)
    for (const other of ['order', 'orders2', 'Orders', '{orders}', '', 'ordres']) {
      expect(() => decodeTicket(other, 'the other', ticket))
        .to.throw(InvalidTicketError, /queue "the other": this ticket was issued by another queue, or was damaged/)
        .that.includes({ code: 'ERR_INVALID_TICKET', queue: 'the other' })
    }
  })

  it('are distinguished from everything else', () => {
    const ticket = encodeTicket('orders', Buffer.from('ABCDEFGH'), 5)
    const others = [
      undefined,
      null,
      5,
      {},
      [ticket],
      Buffer.from(ticket),
      '',
      'ticket',
      `${ticket}A`,
      `${ticket}AAAA`,
      ticket.slice(1),
      ` ${ticket}`,
      `${ticket}\n`,
      `${ticket}==`,
      ticket.replace(/./, '+'),
      ticket.replace(/./, '/'),
      ticket.replace(/./, 'é'),
      'A'.repeat(10_000),
    ]
    for (const other of others) {
      for (const read of [() => decodeTicket('orders', 'orders', other), () => dueOf(other as string)]) {
        expect(read).to.throw(InvalidTicketError, /expected a ticket as returned by offer, got/)
      }
    }
  })

  it('never make the reader fail in another way', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.uint8Array({ minLength: 14, maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString('base64url')),
        ),
        (text) => {
          expect(() => decodeTicket('orders', 'orders', text)).to.throw(InvalidTicketError)
        },
      ),
      { numRuns: 1000 },
    )
  })
})
