import { javaCodecs } from '../../src/java/index.js'
import { expect } from 'chai'
import fc from 'fast-check'
import { MAX_DEPTH } from '../../src/codecs/codec.js'
import { type Codec } from '../../src/codecs/index.js'
import { java } from '../../src/java/kryo/java-values.js'
import { DecodeError, EncodeError } from '../../src/errors.js'
import { jacksonVectors, type JacksonVector } from './codec-jackson-vectors.js'
import { onlyDecodeErrors } from './fixtures/decoding.js'
import { cpuMsSince } from '../support/cpu.js'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

interface Format {
  readonly codec: Codec
  readonly exact: Codec
  readonly wire: (vector: JacksonVector) => string | undefined
  /** The values that Java writes without a class, which encoding them again adds. */
  readonly bare: readonly string[]
}

const bare = ['List.of', 'Map.of', 'int[]', 'long[]', 'String[]', 'double[]', 'Float 1.5', 'Order']
const formats: Record<string, Format> = {
  msgpackJackson: {
    codec: javaCodecs.msgpackJackson(),
    exact: javaCodecs.msgpackJackson({ exact: true }),
    wire: (vector) => vector.msgpack,
    bare,
  },
  cborJackson: {
    codec: javaCodecs.cborJackson(),
    exact: javaCodecs.cborJackson({ exact: true }),
    wire: (vector) => vector.cbor,
    bare: [...bare, 'map int key'],
  },
}

/** The values of the vectors that are equal in all formats. */
const values: Record<string, unknown> = {
  'String uni': 'a"bé\n\u2028\u001f\u007f😀',
  'Int -200': -200,
  'Int 70000': 70_000,
  'Int min': -(2 ** 31),
  'Long 1': 1,
  'Long max': 2n ** 63n - 1n,
  'Long min': -(2n ** 63n),
  'Double 1.5': 1.5,
  'Double nan': NaN,
  'Double -0': -0,
  'Boolean true': true,
  'Date now': new Date(1_732_094_086_123),
  'byte[] 1 2 255': Buffer.of(1, 2, 255),
  UUID: java.uuid('00000000-0000-0001-0000-000000000002'),
  'BigDecimal 1.5': java.bigDecimal('1.5'),
  'BigInteger 2^63': java.bigInteger(2n ** 63n),
  ArrayList: ['a', 1, 2],
  HashSet: new Set([1]),
  'List.of': ['a', 1],
  'Map.of': { k: 'v' },
  'map int key': { 5: 1 },
  'list null': [null],
  'Long[]': [1],
  'List<Float>': [1.5, 1, 2, 'c', java.of('com.x.Main$Color', 'RED')],
  Inner: { '@class': 'com.x.Main$Inner', z: 1 },
}

/** The values that both formats represent without loss. */
const value = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, false),
    fc.double().map((double) => (Number.isNaN(double) ? NaN : double)),
    fc.integer(),
    fc.maxSafeInteger(),
    fc.oneof(fc.bigInt({ min: 2n ** 53n, max: 2n ** 63n - 1n }), fc.bigInt({ min: -(2n ** 63n), max: -(2n ** 53n) })),
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: 'grapheme', minLength: 200, maxLength: 400 }),
    fc.date({ noInvalidDate: true }),
    fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }).map((big) => java.bigInteger(big)),
    fc.array(tie('value'), { maxLength: 20 }),
    fc.dictionary(
      fc.string({ unit: 'grapheme' }).filter((key) => key !== '@class'),
      tie('value'),
      { noNullPrototype: true, maxKeys: 20 },
    ),
  ),
})).value

for (const [name, { codec, exact, wire, bare }] of Object.entries(formats)) {
  describe(`${name} codec`, () => {
    const roundTrip = (given: unknown) => codec.decode(codec.encode(given))
    const vectors = Object.entries(jacksonVectors).flatMap(([what, vector]): [string, Buffer][] => {
      const bytes = wire(vector)
      return bytes === undefined ? [] : [[what, hex(bytes)]]
    })

    it('is frozen and has a name', () => {
      expect(codec.name).to.equal(name)
      expect(Object.isFrozen(codec)).to.equal(true)
    })

    for (const [what, bytes] of vectors) {
      it(`reads ${what} of Java, and gives back its bytes`, () => {
        const decoded = codec.decode(bytes)
        if (what in values) expect(decoded).to.deep.equal(values[what])
        if (!bare.includes(what))
          expect(exact.encode(exact.decode(bytes)).toString('hex')).to.equal(bytes.toString('hex'))
      })
    }

    it('returns each value that it accepts', () => {
      fc.assert(
        fc.property(value, (given) => {
          expect(roundTrip(given)).to.deep.equal(given)
        }),
        { numRuns: 500 },
      )
    })

    it('refuses values that it would change', () => {
      for (const bad of ['\ud800', { '\ud800': 1 }, undefined, 2n ** 63n, () => 1, new Date(NaN)]) {
        expect(() => codec.encode(bad)).to.throw(EncodeError)
      }
    })

    it('never touches a prototype', () => {
      const polluting = JSON.parse('{"__proto__":{"polluted":1},"constructor":2}') as object
      const again = roundTrip(polluting) as Record<string, unknown>
      expect(Object.keys(again)).to.deep.equal(['__proto__', 'constructor'])
      expect(Object.getPrototypeOf(again)).to.equal(Object.prototype)
      expect(again.polluted).to.equal(undefined)
    })

    it('takes as many levels as it reads, and no more', () => {
      let deep: unknown = 2n ** 60n
      for (let i = 0; i < MAX_DEPTH; i++) deep = i % 2 ? [deep] : { a: deep }
      expect(roundTrip(deep)).to.deep.equal(deep)
      expect(() => codec.encode([deep])).to.throw(EncodeError, /nests deeper/)
    })

    it('refuses every truncation, and bytes behind the value', () => {
      for (const [what, bytes] of vectors) {
        for (let length = 0; length < bytes.length; length++) {
          expect(() => codec.decode(bytes.subarray(0, length)), `${what}, ${length} bytes`).to.throw(DecodeError)
        }
        expect(() => codec.decode(Buffer.concat([bytes, hex('00')])), what).to.throw(DecodeError, /follow/)
      }
    })

    it('never fails in another way than with a DecodeError', () => {
      onlyDecodeErrors(codec, fc.constantFrom(...vectors.map(([, vector]) => Buffer.from(vector))))
    })
  })
}

describe('msgpackJackson codec, given odd bytes', () => {
  const codec = formats.msgpackJackson!.codec

  it('refuses lengths beyond the bytes, and deep nesting, at once', () => {
    const started = process.cpuUsage()
    const bombs = [
      'dd ffffffff',
      'df ffffffff',
      'dc ffff',
      'de ffff',
      'c6 ffffffff',
      'db ffffffff',
      'c5 ffff',
      '9f',
      '8f',
      'bf',
    ]
    for (const bomb of [...bombs, '91'.repeat(100_000), '81a161'.repeat(100_000), '92a5'.repeat(10)]) {
      for (const padding of [0, 1000]) {
        expect(() => codec.decode(Buffer.concat([hex(bomb), Buffer.alloc(padding)])), bomb.slice(0, 20)).to.throw(
          DecodeError,
        )
      }
    }
    expect(cpuMsSince(started)).to.be.below(2_000)
  })

  it('writes integers as short as they can be', () => {
    const shortest: [value: number, bytes: string][] = [
      [127, '7f'],
      [128, 'cc80'],
      [255, 'ccff'],
      [256, 'cd0100'],
      [65_535, 'cdffff'],
      [65_536, 'ce00010000'],
      [-32, 'e0'],
      [-33, 'd0df'],
      [-128, 'd080'],
      [-129, 'd1ff7f'],
      [-32_768, 'd18000'],
      [-32_769, 'd2ffff7fff'],
    ]
    for (const [value, bytes] of shortest) expect(codec.encode(value).toString('hex')).to.equal(bytes)
  })

  it('names the value that nests too deep', () => {
    expect(() => codec.decode(hex('91'.repeat(100_000)))).to.throw(DecodeError, /nest deeper than 257/)
  })

  for (const bytes of ['c1', 'd4 01 00', 'c7 00 ff', '81 90 01', 'a1 ff', '92 a1 61']) {
    it(`refuses ${bytes}`, () => expect(() => codec.decode(hex(bytes))).to.throw(DecodeError))
  }

  it('refuses a BigDecimal or BigInteger that MessagePack would round', () => {
    for (const value of [
      java.bigDecimal('12345678901234567890.1'),
      java.bigDecimal('1E400'),
      java.bigInteger(2n ** 64n),
    ]) {
      expect(() => codec.encode([value]))
        .to.throw(EncodeError, /MessagePack/)
        .with.property('path', '$[0]')
    }
    expect(codec.decode(codec.encode(java.bigDecimal('1.10')))).to.deep.equal(java.bigDecimal('1.1'))
    expect(codec.decode(codec.encode(java.bigDecimal('1E+3')))).to.deep.equal(java.bigDecimal('1000'))
  })
})

describe('cborJackson codec, given odd bytes', () => {
  const codec = formats.cborJackson!.codec

  it('refuses lengths beyond the bytes, and deep nesting, at once', () => {
    const started = process.cpuUsage()
    const bombs = [
      '9b ffffffffffffffff',
      'bb ffffffffffffffff',
      '9a ffffffff',
      'ba ffffffff',
      '5b 0000ffffffffffff',
      '7a ffffffff',
      '5f 5a ffffffff',
      '98 ff',
      'b8 ff',
    ]
    for (const bomb of [
      ...bombs,
      '9f'.repeat(100_000),
      'bf6161'.repeat(100_000),
      'd9d9f7'.repeat(100_000),
      '81'.repeat(100_000),
    ]) {
      for (const padding of [0, 1000]) {
        expect(() => codec.decode(Buffer.concat([hex(bomb), Buffer.alloc(padding)])), bomb.slice(0, 20)).to.throw(
          DecodeError,
        )
      }
    }
    expect(cpuMsSince(started)).to.be.below(2_000)
  })

  it('names the value that nests too deep', () => {
    for (const open of ['9f', '81', 'bf6161', 'd9d9f7']) {
      expect(() => codec.decode(hex(open.repeat(100_000)))).to.throw(DecodeError, /nest deeper than 257/)
    }
  })

  // from RFC 8949, appendix A: what Jackson may write, or another writer on the same queue
  const read: [bytes: string, value: unknown][] = [
    ['f9 3c00', 1],
    ['f9 7bff', 65_504],
    ['f9 0001', 5.960464477539063e-8],
    ['f9 7c00', Infinity],
    ['f9 7e00', NaN],
    ['fa 47c35000', 100_000],
    ['1b 0020000000000001', 2n ** 53n + 1n],
    ['3b 0020000000000001', -(2n ** 53n) - 2n],
    ['c2 49 010000000000000000', java.bigInteger(2n ** 64n)],
    ['c4 82 21 19 6ab3', java.bigDecimal('273.15')],
    ['5f 42 0102 43 030405 ff', Buffer.of(1, 2, 3, 4, 5)],
    ['7f 65 7374726561 64 6d696e67 ff', 'streaming'],
    ['82 01 82 02 03', [1, [2, 3]]],
    ['a2 61 61 01 61 62 82 02 03', { a: 1, b: [2, 3] }],
    ['d9d9f7 05', 5],
    ['f7', null],
  ]
  for (const [bytes, value] of read) {
    it(`reads ${bytes}`, () => expect(codec.decode(hex(bytes))).to.deep.equal(value))
  }

  it('reads and writes negative BigIntegers as Jackson does, not as the standard', () => {
    const big = java.bigInteger(-(2n ** 64n))
    expect(codec.encode(big).toString('hex')).to.contain('c349010000000000000000')
    expect(codec.decode(codec.encode(big))).to.deep.equal(big)
  })

  const bad = [
    'ff',
    '1c',
    'f8 ff',
    'e0',
    'c0 61 31',
    'c2 01',
    'c4 81 01',
    'c4 82 61 31 01',
    '5f 61 61 ff',
    '7f 7f ff ff',
    'a1 80 01',
    '61 ff',
    'bf 61 61 ff',
    `c2 59 0400 ${'ff'.repeat(1024)}`,
  ]
  for (const bytes of bad) {
    it(`refuses ${bytes.slice(0, 30)}`, () => expect(() => codec.decode(hex(bytes))).to.throw(DecodeError))
  }
})
