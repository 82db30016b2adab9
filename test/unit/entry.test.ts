import { expect } from 'chai'
import fc from 'fast-check'
import {
  ORDERED_ID_BYTES,
  UNORDERED_ID_BYTES,
  encodeEntry,
  entryPrefix,
  entryId,
  payloadOf,
} from '../../src/codecs/entry.js'
import { EntryIds } from '../../src/codecs/entry-id.js'
import { DecodeError } from '../../src/errors.js'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

/** An entry of the old format whose payload has the length of the new one where an id of so many bytes would end. */
function oldThatLooksNew(idBytes: number): { entry: Buffer; payload: Buffer } {
  const payload = Buffer.concat([Buffer.alloc(idBytes - 15, 'x'), hex('0500000000000000'), Buffer.from('hello')])
  const entry = Buffer.concat([hex('00e97df41022b143 0000000000000000'), payload])
  entry[0] = idBytes
  entry.writeUInt32LE(payload.length, 8)
  return { entry, payload }
}

describe('entry bytes', () => {
  // section 1.2 of the protocol notes, as unpacked by Redisson's own scripts
  const redisson = hex('08 4142434445464748 0400000000000000 22686922')
  const redissonOld = hex('81e97df41022b143 0400000000000000 22686922')

  it('are those of Redisson', () => {
    expect(ORDERED_ID_BYTES).to.equal(8)
    expect(encodeEntry(Buffer.from('ABCDEFGH'), Buffer.from('"hi"'))).to.deep.equal(redisson)
  })

  it('say by the length of the id that the entry is in no order list', () => {
    expect(UNORDERED_ID_BYTES).to.not.equal(8)
    const id = Buffer.from('ABCDEFGHI').subarray(0, UNORDERED_ID_BYTES)
    const expected = Buffer.concat([Buffer.of(UNORDERED_ID_BYTES), id, hex('0200000000000000'), Buffer.from('hi')])
    expect(encodeEntry(id, Buffer.from('hi'))).to.deep.equal(expected)
  })

  it('are read in both formats of Redisson', () => {
    expect(payloadOf(redisson).toString()).to.equal('"hi"')
    expect(payloadOf(redissonOld).toString()).to.equal('"hi"')
    expect(payloadOf(hex('08 4142434445464748 0000000000000000'))).to.have.length(0)
    expect(payloadOf(hex('81e97df41022b143 0000000000000000'))).to.have.length(0)
  })

  it('are read in the old format whatever its first byte is', () => {
    for (let first = 0; first < 256; first++) {
      const entry = Buffer.from(redissonOld)
      entry[0] = first
      expect(payloadOf(entry).toString()).to.equal('"hi"')
    }
  })

  it('hold any payload', () => {
    const id = (size: number) => fc.uint8Array({ minLength: size, maxLength: size })
    fc.assert(
      fc.property(
        fc.oneof(id(8), id(UNORDERED_ID_BYTES), id(10)),
        fc.uint8Array({ maxLength: 600 }),
        (bytes, payload) => {
          const entry = encodeEntry(bytes, payload)
          expect(entry[0]).to.equal(bytes.length)
          expect(entry).to.have.length(9 + bytes.length + payload.length)
          expect(payloadOf(entry)).to.deep.equal(Buffer.from(payload))
        },
      ),
    )
    const large = encodeEntry(Buffer.alloc(8), Buffer.alloc(70_000, 1))
    expect(large.subarray(9, 17)).to.deep.equal(hex('7011010000000000'))
    expect(payloadOf(large)).to.have.length(70_000)
  })

  it('are read in the old format if a payload looks like the end of a header', () => {
    for (const idBytes of [15, 16, 24, 100, 255]) {
      const { entry, payload } = oldThatLooksNew(idBytes)
      expect(payloadOf(entry), `${idBytes}`).to.deep.equal(payload)
      expect(entryId(entry)).to.deep.equal(Buffer.concat([Buffer.from('d'), entry.subarray(0, 8)]))
    }
  })

  it('are read in the new format with a long id, unless it has the old length at its place', () => {
    for (const idBytes of [13, 15, 16, 24, 255]) {
      const entry = encodeEntry(Buffer.alloc(idBytes, 'x'), Buffer.from('payload'))
      expect(payloadOf(entry).toString()).to.equal('payload')
    }
  })

  it('are refused at every other length', () => {
    for (const entry of [redisson, redissonOld]) {
      for (let length = 0; length < entry.length; length++) {
        expect(() => payloadOf(entry.subarray(0, length)), `${length} bytes`).to.throw(DecodeError)
      }
      expect(() => payloadOf(Buffer.concat([entry, hex('00')]))).to.throw(DecodeError)
    }
  })

  it('are refused with a wrong or huge length', () => {
    for (const length of [
      '0300000000000000',
      '0500000000000000',
      'ffffffffffffffff',
      '0400000001000000',
      '0400000000000080',
    ]) {
      expect(() => payloadOf(hex(`08 4142434445464748 ${length} 22686922`))).to.throw(DecodeError)
      expect(() => payloadOf(hex(`81e97df41022b143 ${length} 22686922`))).to.throw(DecodeError)
    }
  })

  it('never make the reader fail in another way than with a DecodeError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        try {
          payloadOf(Buffer.from(bytes))
        } catch (error) {
          expect(error).to.be.instanceOf(DecodeError)
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('give their id, in the old format with a mark before it', () => {
    expect(entryId(redisson)?.toString()).to.equal('ABCDEFGH')
    const id = Buffer.alloc(UNORDERED_ID_BYTES, 'x')
    expect(entryId(encodeEntry(id, Buffer.from('p')))).to.deep.equal(id)
    expect(entryId(redissonOld)).to.deep.equal(Buffer.concat([Buffer.from('d'), redissonOld.subarray(0, 8)]))
    const otherLength = Buffer.concat([Buffer.of(3, 1, 2, 3, 1), Buffer.alloc(7), Buffer.from('x')])
    expect(entryId(otherLength)).to.equal(null)
    expect(entryId(redisson.subarray(0, 20))).to.equal(null)
    expect(entryId(Buffer.alloc(0))).to.equal(null)
    const looksNew = Buffer.from(redissonOld)
    looksNew[0] = 8
    expect(entryId(looksNew)).to.deep.equal(Buffer.concat([Buffer.from('d'), looksNew.subarray(0, 8)]))
  })
})

describe('entries of the old format', () => {
  it('are an 8-byte double, the length, the payload, and give back their id', () => {
    const id = new EntryIds(0x0102030405).nextOld()
    const entry = encodeEntry(id, Buffer.from('"hi"'))
    expect(entry.toString('hex')).to.match(/^000102030405e[0-9a-f]43040000000000000022686922$/)
    expect(Number.isFinite(entry.readDoubleLE(0))).to.equal(true)
    expect(entryId(entry)).to.deep.equal(id)
    expect(entryPrefix(id)).to.deep.equal(entry.subarray(0, 8))
    expect(entryPrefix(Buffer.from('ABCDE')).toString('latin1')).to.equal('\x05ABCDE')
  })

  it('are never taken for the new one, whatever the payload is', () => {
    const ids = new EntryIds()
    const tricky = fc
      .array(fc.constantFrom(0, 1, 5, 8, 9, 67, 255), { maxLength: 40 })
      .map((bytes) => Buffer.from(bytes))
    fc.assert(
      fc.property(fc.oneof(tricky, fc.uint8Array({ maxLength: 600 })), (payload) => {
        const entry = encodeEntry(ids.nextOld(), payload)
        expect(entry).to.have.length(16 + payload.length)
        expect(payloadOf(entry)).to.deep.equal(Buffer.from(payload))
      }),
      { numRuns: 2000 },
    )
  })

  it('rise with each offer, also where the counter carries', () => {
    const ids = new EntryIds(0xfffe)
    let last = ids.nextOld()
    for (let i = 0; i < 1_000; i++) {
      const next = ids.nextOld()
      expect(Buffer.compare(last, next)).to.equal(-1)
      last = next
    }
  })
})

describe('entry ids', () => {
  const LENGTHS = [ORDERED_ID_BYTES, UNORDERED_ID_BYTES]

  it('have the length asked for', () => {
    const ids = new EntryIds()
    for (const length of LENGTHS) expect(ids.next(length)).to.have.length(length)
  })

  for (const length of LENGTHS) {
    it(`of ${length} bytes rise with each call`, () => {
      const ids = new EntryIds()
      let last = ids.next(length)
      for (let i = 0; i < 20_000; i++) {
        const next = ids.next(length)
        if (Buffer.compare(last, next) >= 0) expect.fail(`${next.toString('hex')} comes after ${last.toString('hex')}`)
        last = next
      }
    })
  }

  it('rise beyond four bytes of counting', () => {
    const ids = new EntryIds(2 ** 32 - 2)
    const heads = Array.from({ length: 4 }, () => ids.next(8).subarray(0, 5).toString('hex'))
    expect(heads).to.deep.equal(['00fffffffe', '00ffffffff', '0100000000', '0100000001'])
  })

  it('continue at the end of the range', () => {
    const ids = new EntryIds(2 ** 40 - 1)
    expect(ids.next(8).subarray(0, 5).toString('hex')).to.equal('ffffffffff')
    expect(ids.next(8).subarray(0, 5).toString('hex')).to.equal('0000000000')
  })

  it('start at random, in the lower half of the range', () => {
    const starts = Array.from({ length: 200 }, () => new EntryIds().next(5))
    expect(new Set(starts.map((id) => id.toString('hex'))).size).to.equal(200)
    expect(Math.max(...starts.map((id) => id[0]!))).to.be.within(64, 127)
  })

  it('end with random bytes that do not repeat', () => {
    const ids = new EntryIds(0)
    const tails = new Set<string>()
    const values = new Set<number>()
    // more than one pool of random bytes holds; about one pair in 5,000 of 2^24 is expected to be equal
    for (let i = 0; i < 5000; i++) {
      const tail = ids.next(8).subarray(5)
      tails.add(tail.toString('hex'))
      for (const byte of tail) values.add(byte)
    }
    expect(tails.size).to.be.greaterThan(4980)
    expect(values.size).to.equal(256)
  })

  it('are not changed by later ones', () => {
    const ids = new EntryIds()
    const first = ids.next(8)
    const copy = Buffer.from(first)
    for (let i = 0; i < 5000; i++) ids.next(8)
    expect(first).to.deep.equal(copy)
  })
})
