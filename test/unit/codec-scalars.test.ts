import { expect } from 'chai'
import fc from 'fast-check'
import { codecs } from '../../src/codecs/index.js'
import { DecodeError, EncodeError } from '../../src/errors.js'

describe('string codec', () => {
  const codec = codecs.string()

  it('is frozen and has a name', () => {
    expect(codec.name).to.equal('string')
    expect(Object.isFrozen(codec)).to.equal(true)
  })

  it('writes the bare text in UTF-8', () => {
    expect(codec.encode('h€😀')).to.deep.equal(Buffer.from('68e282acf09f9880', 'hex'))
    expect(codec.encode('')).to.deep.equal(Buffer.alloc(0))
  })

  it('gives back every text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        fc.pre(!/\p{Surrogate}/u.test(text))
        expect(codec.decode(codec.encode(text))).to.equal(text)
      }),
      { numRuns: 500 },
    )
    for (const text of ['\ufeffwith a byte order mark', 'a\ufffdb', '\0', '\uffff', '\u{10ffff}']) {
      expect(codec.decode(codec.encode(text))).to.equal(text)
    }
  })

  it('refuses half of a surrogate pair', () => {
    for (const text of ['\ud800', 'a\udc00b', '\ude00\ud83d', '\ufffd\ud800']) {
      expect(() => codec.encode(text))
        .to.throw(EncodeError, /lone surrogate/)
        .with.property('path', '$')
    }
  })

  it('refuses a value that is not a string', () => {
    for (const value of [5, null, undefined, Buffer.from('x'), ['x'], Object('x') as unknown]) {
      expect(() => codec.encode(value as string)).to.throw(EncodeError, /expected a string, got/)
    }
  })

  it('refuses bytes that are not UTF-8', () => {
    for (const bytes of ['ff', 'c080', 'eda080', 'e282', 'f09f98', 'f4908080', '61ff62', '80']) {
      expect(() => codec.decode(Buffer.from(bytes, 'hex'))).to.throw(DecodeError, /not valid UTF-8/)
    }
  })

  it('reads all valid UTF-8, and fails on other bytes with a DecodeError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 20 }), (bytes) => {
        try {
          expect(codec.encode(codec.decode(Buffer.from(bytes)))).to.deep.equal(Buffer.from(bytes))
        } catch (error) {
          expect(error).to.be.instanceOf(DecodeError)
        }
      }),
      { numRuns: 1000 },
    )
  })
})

describe('bytes codec', () => {
  const codec = codecs.bytes()

  it('is frozen and has a name', () => {
    expect(codec.name).to.equal('bytes')
    expect(Object.isFrozen(codec)).to.equal(true)
  })

  it('gives back all bytes as a Buffer', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const decoded = codec.decode(codec.encode(bytes))
        expect(decoded).to.be.instanceOf(Buffer)
        expect(decoded).to.deep.equal(Buffer.from(bytes))
      }),
    )
  })

  it('copies in both directions', () => {
    const mine = Buffer.from('abc')
    const encoded = codec.encode(mine)
    const decoded = codec.decode(encoded)
    mine[0] = 0
    encoded[1] = 0
    expect(decoded.toString()).to.equal('abc')
    expect(encoded[0]).to.equal(0x61)
  })

  it('takes part of a larger array', () => {
    expect(codec.encode(new Uint8Array([1, 2, 3, 4]).subarray(1, 3))).to.deep.equal(Buffer.of(2, 3))
  })

  it('refuses a value that is not bytes', () => {
    for (const value of [
      'text',
      [1, 2],
      new ArrayBuffer(2),
      new Uint16Array(1),
      new DataView(new ArrayBuffer(1)),
      null,
      undefined,
      5,
    ]) {
      expect(() => codec.encode(value as unknown as Uint8Array)).to.throw(
        EncodeError,
        /expected a Buffer or Uint8Array, got/,
      )
    }
  })
})
