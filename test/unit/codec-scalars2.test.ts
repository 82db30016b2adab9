import { javaCodecs } from '../../src/java/index.js'
import { expect } from 'chai'
import fc from 'fast-check'
import { codecs, type Codec } from '../../src/codecs/index.js'
import { DecodeError, EncodeError, InvalidArgumentError } from '../../src/errors.js'

/** Encodes what the types do not allow. */
const encodeAny = <T>(codec: Codec<T>, value: unknown) => codec.encode(value as T)

describe('long codec', () => {
  const codec = javaCodecs.long()

  const vectors: [text: string, value: number | bigint][] = [
    ['5', 5],
    ['-1', -1],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['9007199254740992', 2n ** 53n],
    ['9007199254740993', 2n ** 53n + 1n],
    ['-9007199254740993', -(2n ** 53n) - 1n],
    ['9223372036854775807', 2n ** 63n - 1n],
    ['-9223372036854775808', -(2n ** 63n)],
  ]
  for (const [text, value] of vectors) {
    it(`writes and reads ${text}`, () => {
      expect(codec.encode(value).toString()).to.equal(text)
      expect(codec.decode(Buffer.from(text))).to.equal(value)
    })
  }

  it('takes small bigints, and gives numbers where they are exact', () => {
    expect(codec.encode(5n).toString()).to.equal('5')
    expect(codec.decode(Buffer.from('+5'))).to.equal(5)
  })

  it('gives back every integer of 64 bits', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
        expect(BigInt(codec.decode(codec.encode(value)))).to.equal(value)
      }),
    )
  })

  it('refuses a value that is not an integer of 64 bits', () => {
    for (const value of [1.5, NaN, Infinity, 2 ** 53, '5', null, undefined, 2n ** 63n, -(2n ** 63n) - 1n]) {
      expect(() => encodeAny(codec, value), String(value)).to.throw(EncodeError, /bigint of 64 bits/)
    }
    for (const text of ['', '-', '1.0', ' 1', '1e3', '0x10', '9223372036854775808', '1'.repeat(2000), '\ud83d']) {
      expect(() => codec.decode(Buffer.from(text)), text).to.throw(DecodeError)
    }
  })
})

describe('integer codec', () => {
  const codec = javaCodecs.integer()

  it('writes and reads decimal text of 32 bits', () => {
    for (const value of [0, 5, -1, 2 ** 31 - 1, -(2 ** 31)]) {
      expect(codec.encode(value).toString()).to.equal(String(value))
      expect(codec.decode(codec.encode(value))).to.equal(value)
    }
  })

  it('refuses a value that has more bits or is not an integer', () => {
    for (const value of [2 ** 31, -(2 ** 31) - 1, 1.5, NaN, 5n, '5']) {
      expect(() => encodeAny(codec, value)).to.throw(EncodeError, /32 bits/)
    }
    for (const text of ['2147483648', '-2147483649', '', '1.0', 'x']) {
      expect(() => codec.decode(Buffer.from(text)), text).to.throw(DecodeError)
    }
  })
})

describe('double codec', () => {
  const codec = javaCodecs.double()

  // from Double.toString of a JVM
  const vectors: [value: number, text: string][] = [
    [1, '1.0'],
    [100, '100.0'],
    [1.5, '1.5'],
    [-0, '-0.0'],
    [0, '0.0'],
    [1e21, '1.0E21'],
    [0.001, '0.001'],
    [0.00099, '9.9E-4'],
    [9_999_999, '9999999.0'],
    [1e7, '1.0E7'],
    [123_456.789, '123456.789'],
    [0.1 + 0.2, '0.30000000000000004'],
    [Number.MAX_VALUE, '1.7976931348623157E308'],
    [2.2250738585072014e-308, '2.2250738585072014E-308'],
    [Number.MIN_VALUE, '4.9E-324'],
    [2e-323, '2.0E-323'],
    [5e-5, '5.0E-5'],
    [-1_234_567.5, '-1234567.5'],
    [NaN, 'NaN'],
    [Infinity, 'Infinity'],
    [-Infinity, '-Infinity'],
  ]
  for (const [value, text] of vectors) {
    it(`writes and reads ${text}`, () => {
      expect(codec.encode(value).toString()).to.equal(text)
      expect(Object.is(codec.decode(Buffer.from(text)), value)).to.equal(true)
    })
  }

  it('gives back every double, with a decimal point', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const bytes = codec.encode(value)
        expect(bytes.toString()).to.match(/^-?\d+\.\d+(E-?\d+)?$/)
        expect(Object.is(codec.decode(bytes), value)).to.equal(true)
      }),
      { numRuns: 1000 },
    )
  })

  it('reads other forms that Java reads', () => {
    for (const text of ['1', '+1', '1.', '.5', '1e3', '1E+3']) {
      expect(codec.decode(Buffer.from(text)), text).to.equal(Number(text))
    }
  })

  it('refuses a value that is not a number', () => {
    for (const value of ['1', 1n, null, undefined]) expect(() => encodeAny(codec, value)).to.throw(EncodeError)
    for (const text of ['', '.', 'e5', 'Inf', '1.0x', '0x1p3', '1e999', '1 ', 'nan', '9'.repeat(2000)]) {
      expect(() => codec.decode(Buffer.from(text)), text).to.throw(DecodeError)
    }
  })
})

describe('byteArray codec', () => {
  it('is the bytes codec', () => {
    expect(javaCodecs.byteArray).to.equal(codecs.bytes)
  })
})

describe('composite codec', () => {
  it('leaves the elements to the codec of the values', () => {
    const codec = javaCodecs.composite({ value: javaCodecs.long(), key: codecs.json() })
    expect(codec.name).to.equal('composite(long)')
    expect(codec.encode(7n).toString()).to.equal('7')
    expect(codec.decode(Buffer.from('7'))).to.equal(7)
    expect(Object.isFrozen(codec)).to.equal(true)
  })

  it('refuses values that are not codecs', () => {
    for (const parts of [{}, { value: {} }, { value: javaCodecs.long }, { value: javaCodecs.long(), key: 5 }, null]) {
      expect(() => javaCodecs.composite(parts as never)).to.throw(InvalidArgumentError)
    }
    expect(() => javaCodecs.composite({ value: javaCodecs.long(), map: javaCodecs.long() } as never)).to.throw(
      /composite.map/,
    )
  })
})
