import { expect } from 'chai'
import fc from 'fast-check'
import { isUtf8 } from 'node:buffer'
import { MAX_DEPTH } from '../../src/codecs/codec.js'
import { codecs } from '../../src/codecs/index.js'
import { DecodeError, EncodeError } from '../../src/errors.js'
import { onlyDecodeErrors } from './fixtures/decoding.js'
import { cpuMsSince } from '../support/cpu.js'

const codec = codecs.msgpack()
const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
const roundTrip = (value: unknown) => codec.decode(codec.encode(value))

/** The values that the codec represents without loss. */
export const encodable = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(null, true, false),
    fc.double().map((number) => (number === 0 ? 0 : number)),
    fc.integer(),
    fc.maxSafeInteger(),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: 'grapheme', minLength: 60, maxLength: 300 }),
    fc.date({ noInvalidDate: true }),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    fc.array(tie('value'), { maxLength: 20 }),
    fc.dictionary(
      fc.string({ unit: 'grapheme' }).filter((key) => key !== '__proto__'),
      tie('value'),
      { noNullPrototype: true, maxKeys: 20 },
    ),
  ),
})).value

describe('msgpack codec', () => {
  it('is frozen and has a name', () => {
    expect(codec.name).to.equal('msgpack')
    expect(Object.isFrozen(codec)).to.equal(true)
  })

  it('gives back everything that it takes', () => {
    fc.assert(
      fc.property(encodable, (value) => {
        expect(roundTrip(value)).to.deep.equal(value)
      }),
      { numRuns: 500 },
    )
  })

  it('reads texts of all lengths, in whichever form they were written', () => {
    for (const length of [0, 1, 31, 32, 255, 256, 65_535, 65_536]) {
      const text = 'é'.repeat(Math.floor(length / 2)) + 'x'.repeat(length % 2)
      expect(roundTrip(text), `${length} bytes`).to.equal(text)
    }
    for (const written of ['a2 6869', 'd9 02 6869', 'da 0002 6869', 'db 00000002 6869']) {
      expect(codec.decode(hex(written)), written).to.equal('hi')
      expect(() => codec.decode(hex(`${written} c0`)), written).to.throw(DecodeError)
      expect(() => codec.decode(hex(written).subarray(0, -1)), written).to.throw(DecodeError)
    }
    for (const cut of ['d9', 'da', 'da 00', 'db 0000']) expect(() => codec.decode(hex(cut)), cut).to.throw(DecodeError)
  })

  it('does not depend on earlier values', () => {
    fc.assert(
      fc.property(fc.array(encodable, { minLength: 2, maxLength: 4 }), (values) => {
        const bytes = values.map((value) => Buffer.from(codec.encode(value)))
        const again = values.toReversed().map((value) => codec.encode(value))
        expect(again.reverse()).to.deep.equal(bytes)
        expect(bytes.map((each) => codecs.msgpack().decode(each))).to.deep.equal(values)
      }),
      { numRuns: 100 },
    )
  })

  // written by hand from the MessagePack specification, so that other libraries read and write the same
  const vectors: [text: string, value: unknown][] = [
    ['c0', null],
    ['c2', false],
    ['c3', true],
    ['00', 0],
    ['7f', 127],
    ['e0', -32],
    ['cc ff', 255],
    ['cd 0100', 256],
    ['ce ffffffff', 4_294_967_295],
    ['cf ffffffffffffffff', 2n ** 64n - 1n],
    ['d0 80', -128],
    ['d1 8000', -32_768],
    ['d2 80000000', -2_147_483_648],
    ['d3 8000000000000000', -(2n ** 63n)],
    ['d3 0000000000000005', 5n],
    ['ca 3fc00000', 1.5],
    ['cb 3ff8000000000000', 1.5],
    ['cb 7ff0000000000000', Infinity],
    ['a0', ''],
    ['a3 e282ac', '€'],
    ['d9 02 6869', 'hi'],
    ['da 0002 6869', 'hi'],
    ['db 00000002 6869', 'hi'],
    ['c4 02 00ff', Buffer.of(0, 255)],
    ['c5 0002 00ff', Buffer.of(0, 255)],
    ['c6 00000002 00ff', Buffer.of(0, 255)],
    ['90', []],
    ['92 01 c0', [1, null]],
    ['dc 0001 01', [1]],
    ['dd 00000001 01', [1]],
    ['80', {}],
    ['82 a161 01 a162 92 c2 c3', { a: 1, b: [false, true] }],
    ['de 0001 a161 01', { a: 1 }],
    ['df 00000001 a161 01', { a: 1 }],
    ['81 05 a161', { 5: 'a' }],
    ['d6ff 00000001', new Date(1000)],
    ['d7ff 003d0900 00000001', new Date(1001)],
    ['c70cff 000f4240 ffffffffffffffff', new Date(-999)],
    ['c8 000c ff 000f4240 ffffffffffffffff', new Date(-999)],
    ['c9 0000000c ff 000f4240 ffffffffffffffff', new Date(-999)],
    ['d40000', undefined],
    ['92 d5 00 0101 05', [undefined, 5]],
    ['92 d8 00 01010101010101010101010101010101 05', [undefined, 5]],
  ]
  for (const [text, value] of vectors) {
    it(`reads ${text}`, () => {
      expect(codec.decode(hex(text))).to.deep.equal(value)
    })
  }

  it('writes values that other libraries read', () => {
    expect(codec.encode({ a: 1, b: [true, null, 'x'] })).to.deep.equal(hex('82 a161 01 a162 93 c3 c0 a178'))
    expect(codec.encode(5n)).to.deep.equal(hex('d3 0000000000000005'))
    expect(codec.encode(Buffer.of(1))).to.deep.equal(hex('c4 01 01'))
    expect(codec.encode(new Date(1000))).to.deep.equal(hex('d6ff 00000001'))
  })

  it('keeps 64-bit integers exact', () => {
    for (const value of [0n, -1n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n, -(2n ** 63n)]) {
      expect(roundTrip({ value })).to.deep.equal({ value })
    }
    for (const value of [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2 ** 32, -(2 ** 31) - 1]) {
      expect(roundTrip(value)).to.equal(value)
    }
  })

  it('leaves undefined properties out', () => {
    expect(roundTrip({ a: undefined, b: { c: undefined, d: 1 } })).to.deep.equal({ b: { d: 1 } })
    expect(codec.encode({ a: undefined })).to.deep.equal(hex('80'))
  })

  it('takes instances of classes for their properties', () => {
    class Order {
      readonly id = 7
      readonly #secret = 1
      get secret() {
        return this.#secret
      }
    }
    expect(roundTrip(new Order())).to.deep.equal({ id: 7 })
    expect(roundTrip(Object.assign(Object.create(null) as object, { a: 1 }))).to.deep.equal({ a: 1 })
  })

  const unencodable: [what: string, value: unknown, path: string, message: RegExp][] = [
    ['undefined', undefined, '$', /undefined/],
    ['a function', { a: [1, () => 1] }, '$.a[1]', /a function/],
    ['a symbol', { a: Symbol('s') }, '$.a', /a symbol/],
    ['a Map', { 'two words': new Map() }, '$["two words"]', /an object \(Map\)/],
    ['a Set', [new Set()], '$[0]', /an object \(Set\)/],
    ['a Promise', Promise.resolve(), '$', /an object \(Promise\)/],
    ['a RegExp', /x/, '$', /an object \(RegExp\)/],
    ['an Error', { e: new Error('x') }, '$.e', /an object \(Error\)/],
    ['a hole', [1, , 3], '$[1]', /undefined/], // eslint-disable-line no-sparse-arrays
    ['an invalid date', { at: new Date(NaN) }, '$.at', /an invalid Date/],
    ['a bigint of more than 64 bits', { n: 2n ** 64n }, '$.n', /18446744073709551616n/],
    ['a bigint below 64 bits', { n: -(2n ** 63n) - 1n }, '$.n', /-9223372036854775809n/],
    ['a typed array of other elements', new Float64Array(1), '$', /an object \(Float64Array\)/],
    ['an ArrayBuffer', new ArrayBuffer(1), '$', /an object \(ArrayBuffer\)/],
    ['a method', { toJSON: () => 1 }, '$.toJSON', /a function/],
    ['an odd key', { a: { 'x"y': [[() => 1]] } }, '$.a["x\\"y"][0][0]', /a function/],
  ]
  for (const [what, value, path, message] of unencodable) {
    it(`refuses ${what} and names its path`, () => {
      expect(() => codec.encode(value))
        .to.throw(EncodeError, message)
        .that.includes({ path, code: 'ERR_ENCODE' })
    })
  }

  it('refuses cycles', () => {
    const cycle: Record<string, unknown> = {}
    cycle.self = [cycle]
    expect(() => codec.encode(cycle)).to.throw(EncodeError, /nests deeper than 128 levels or contains itself/)
  })

  it('takes as many levels as it reads, and no more', () => {
    let deep: unknown = 1
    for (let i = 0; i < MAX_DEPTH; i++) deep = i % 2 ? [deep] : { a: deep }
    expect(roundTrip(deep)).to.deep.equal(deep)
    expect(() => codec.encode([deep])).to.throw(EncodeError, /nests deeper/)
    expect(() => codec.decode(Buffer.concat([hex('91'), codec.encode(deep)]))).to.throw(DecodeError, /nests deeper/)
  })

  describe('with bytes that are not a value', () => {
    const sample = codec.encode({
      text: 'héllo',
      long: 'x'.repeat(300),
      list: [1, -1, 300, 70_000, 2 ** 33, 1.5, 5n, null, true],
      bytes: Buffer.alloc(300, 7),
      at: new Date(1),
      nested: { a: [{ b: [[]] }] },
    })

    it('refuses every truncation', () => {
      for (let length = 0; length < sample.length; length++) {
        expect(() => codec.decode(sample.subarray(0, length)), `${length} bytes`).to.throw(DecodeError)
      }
      expect(codec.decode(sample)).to.have.property('text', 'héllo')
    })

    it('refuses bytes behind the value', () => {
      expect(() => codec.decode(Buffer.concat([sample, hex('00')]))).to.throw(DecodeError, /1 bytes follow the value/)
    })

    it('refuses no bytes', () => {
      expect(() => codec.decode(Buffer.alloc(0))).to.throw(DecodeError)
    })

    const bad: [what: string, bytes: Buffer, message: RegExp][] = [
      ['a byte that is never used', hex('c1'), /byte 0xc1 at 0 starts no value/],
      ['such a byte inside', hex('92 01 c1'), /byte 0xc1 at 2 starts no value/],
      ['an unknown extension', hex('d4 01 00'), /extension type 1 is not supported/],
      ['an extension of msgpackr that names a class', hex('d5 65 0000'), /extension type 101 is not supported/],
      ['a record definition of msgpackr', hex('d4 72 40 91 a161 01'), /extension type 114 is not supported/],
      ['an extension in a map key', hex('81 c7 01 73 00 01'), /extension type 115 is not supported/],
      ['a negative extension', hex('d4 fe 00'), /extension type -2 is not supported/],
    ]
    for (const [what, bytes, message] of bad) {
      it(`refuses ${what}`, () => {
        expect(() => codec.decode(bytes)).to.throw(DecodeError, message)
      })
    }

    it('refuses lengths beyond the bytes before anything is built', () => {
      const bombs = [
        'dd ffffffff',
        'df ffffffff',
        'dc ffff',
        'de ffff',
        'c6 ffffffff',
        'db ffffffff',
        'c5 ffff',
        'da ffff',
        'c9 ffffffff ff',
        'c8 ffff ff',
        'c4 ff',
        'd9 ff',
        '9f',
        '8f',
        'bf',
      ]
      const before = process.memoryUsage()
      const started = process.cpuUsage()
      for (let i = 0; i < 100; i++) {
        for (const bomb of bombs) {
          for (const bytes of [
            hex(bomb),
            Buffer.concat([hex('92 01'), hex(bomb)]),
            Buffer.concat([hex('81 a161'), hex(bomb), hex('c0')]),
          ]) {
            expect(() => codec.decode(bytes)).to.throw(DecodeError, /exceeds the bytes that follow|within a value/)
          }
        }
      }
      const after = process.memoryUsage()
      expect(after.external + after.arrayBuffers - before.external - before.arrayBuffers).to.be.below(50_000_000)
      expect(cpuMsSince(started), 'building one of them takes a second').to.be.below(20_000)
    }).timeout(60_000)

    it('refuses lengths that are used more than once', () => {
      // each level takes all bytes that are left for itself
      const nested = Buffer.concat([...Array.from({ length: 100 }, () => hex('dd 00000064')), Buffer.alloc(100)])
      expect(() => codec.decode(nested)).to.throw(DecodeError)
    })

    it('refuses deep nesting at once', () => {
      const started = process.cpuUsage()
      for (const open of ['91', '81 a161', '81', 'dc 0001', 'df 00000001 c0']) {
        expect(() => codec.decode(Buffer.concat(Array.from({ length: 200_000 }, () => hex(open))))).to.throw(
          DecodeError,
        )
      }
      expect(cpuMsSince(started)).to.be.below(5_000)
    })

    it('never fails in another way than with a DecodeError', () => {
      onlyDecodeErrors(
        codec,
        encodable.map((value) => codec.encode(value)),
        { numRuns: 5000, atLeast: 100 },
      )
    })
  })

  it('sets no prototype', () => {
    const polluting = hex('82 a9 5f5f70726f746f5f5f 81 a8706f6c6c75746564 c3 ab636f6e7374727563746f72 01')
    const value = codec.decode(polluting) as Record<string, unknown>
    expect(Object.getPrototypeOf(value)).to.equal(Object.prototype)
    expect(value.polluted).to.equal(undefined)
    expect(Object.hasOwn(value, 'constructor')).to.equal(true)
    expect(({} as Record<string, unknown>).polluted).to.equal(undefined)
  })

  it('gives every call its own bytes', () => {
    const first = codec.encode('first value')
    const copy = Buffer.from(first)
    for (let i = 0; i < 5000; i++) codec.encode(`another value ${i}`)
    expect(first).to.deep.equal(copy)
  })
})

describe('msgpack codec, bytes of texts', () => {
  const codec = codecs.msgpack()
  const text = (bytes: Buffer): Buffer => Buffer.concat([Buffer.of(0x91, 0xd9, bytes.length), bytes])
  /** Whether the text is read, and is then what Node reads. */
  const isRead = (bytes: Buffer): boolean => {
    try {
      const [read] = codec.decode(text(bytes)) as string[]
      if (read !== bytes.toString()) throw new Error(`${bytes.toString('hex')} became another text`)
      return true
    } catch (thrown) {
      if (thrown instanceof DecodeError) return false
      throw thrown
    }
  }
  const wrong: string[] = []
  const compare = (bytes: Buffer): void => {
    if (isRead(bytes) !== isUtf8(bytes)) wrong.push(bytes.toString('hex'))
  }

  it('are taken exactly where they are UTF-8: every sequence of four bytes at the borders of what each place allows', () => {
    const borders = [0x41, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5]
    for (const a of borders)
      for (const b of borders) for (const c of borders) for (const d of borders) compare(Buffer.of(a, b, c, d))
    expect(wrong).to.deep.equal([])
  }).timeout(60_000)

  it('are taken exactly where they are UTF-8: a good or bad character at every place of texts of every length', () => {
    for (let length = 1; length <= 140; length++) {
      for (let at = 0; at < length; at += length > 24 ? 3 : 1) {
        for (const character of ['ff', '80', 'c3', 'c3bc', 'eda080', 'e282ac', 'f09f909d', 'f0808080']) {
          const bytes = Buffer.alloc(length, 'a')
          bytes.write(character, at, 'hex') // and cut off at the end
          compare(bytes)
        }
      }
    }
    expect(wrong).to.deep.equal([])
  }).timeout(60_000)
})

describe('msgpack codec, texts it would change', () => {
  const codec = codecs.msgpack()
  for (const [what, value, path] of [
    ['half of a surrogate pair', 'a\ud800', '$'],
    ['half of a pair in a property', { a: ['\udc00'] }, '$.a[0]'],
    ['half of a pair in a name', { 'x\ud800': 1 }, '$'],
    ['a property called __proto__', { nested: JSON.parse('{"__proto__": 1}') as unknown }, '$.nested'],
  ] as const) {
    it(`refuses ${what}`, () => {
      expect(() => codec.encode(value))
        .to.throw(EncodeError)
        .with.property('path', path)
    })
  }

  it('takes whole pairs', () => {
    expect(codec.decode(codec.encode({ '😀': '😀' }))).to.deep.equal({ '😀': '😀' })
  })
})
