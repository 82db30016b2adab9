import { javaCodecs } from '../../src/java/index.js'
import { expect } from 'chai'
import fc from 'fast-check'
import { MAX_DEPTH } from '../../src/codecs/codec.js'
import { type Codec } from '../../src/codecs/index.js'
import { JavaValue, java } from '../../src/java/kryo/java-values.js'
import { DecodeError, EncodeError, InvalidArgumentError } from '../../src/errors.js'
import { jacksonVectors } from './codec-jackson-vectors.js'
import { onlyDecodeErrors } from './fixtures/decoding.js'
import { cpuMsSince } from '../support/cpu.js'

const codec = javaCodecs.jsonJackson()
const text = (value: unknown, by: Codec = codec) => by.encode(value).toString()
const parse = (json: string, by: Codec = codec) => by.decode(Buffer.from(json))
const decimal = (digits: string) => java.bigDecimal(digits)

describe('jsonJackson codec', () => {
  it('is frozen and has a name', () => {
    expect(codec.name).to.equal('jsonJackson')
    expect(Object.isFrozen(codec)).to.equal(true)
  })

  // what Java wrote, as it is read; and where JavaScript has the value, what is written
  const both: [json: string, value: unknown][] = [
    ['"hello"', 'hello'],
    ['"a\\"bé\\n/\u2028"', 'a"bé\n/\u2028'],
    ['1', 1],
    ['["java.lang.Long",3000000000]', 3_000_000_000],
    ['1.5', 1.5],
    ['1.0E21', 1e21],
    ['-0.0', -0],
    ['true', true],
    ['["java.util.Date",0]', new Date(0)],
    ['["[B","AQL/"]', Buffer.of(1, 2, 255)],
    ['["java.util.UUID","00000000-0000-0001-0000-000000000002"]', java.uuid('00000000-0000-0001-0000-000000000002')],
    ['["java.math.BigDecimal",1.10]', decimal('1.10')],
    ['["java.math.BigInteger",123456789012345678901]', java.bigInteger(123_456_789_012_345_678_901n)],
    ['["java.util.ArrayList",["a",1,["java.lang.Long",3000000000]]]', ['a', 1, 3_000_000_000]],
    ['["java.util.ArrayList",[]]', []],
    ['["java.util.ArrayList",[null]]', [null]],
    ['["java.util.HashSet",[1]]', new Set([1])],
    ['{"@class":"java.util.LinkedHashMap","k":"v"}', { k: 'v' }],
    ['{"@class":"java.util.LinkedHashMap"}', {}],
    ['{"@class":"java.util.LinkedHashMap","k":null}', { k: null }],
    ['{"@class":"J$Inner","z":4}', { '@class': 'J$Inner', z: 4 }],
    ['{"@class":"com.x.A","id":3000000000}', { '@class': 'com.x.A', id: 3_000_000_000 }],
    ['["com.x.Color","RED"]', new JavaValue('com.x.Color', 'RED')],
    ['["com.x.Ids",[1,["java.lang.Long",3000000000]]]', new JavaValue('com.x.Ids', [1, 3_000_000_000])],
    ['["java.sql.Timestamp",1580515200000]', new JavaValue('java.sql.Timestamp', 1_580_515_200_000)],
  ]
  for (const [json, value] of both) {
    it(`reads and writes ${json}`, () => {
      expect(parse(json)).to.deep.equal(value)
      expect(text(value, javaCodecs.jsonJackson({ plainClasses: true }))).to.equal(json)
    })
  }

  const readOnly: [json: string, value: unknown][] = [
    ['["java.lang.Long",1]', 1],
    ['5000000000', 5_000_000_000],
    ['100.0', 100],
    ['"AQL/"', 'AQL/'],
    ['"RED"', 'RED'],
    ['["java.util.Arrays$ArrayList",["a",1]]', ['a', 1]],
    ['["java.util.LinkedList",[1]]', [1]],
    ['["java.util.Collections$EmptyList",[]]', []],
    ['["java.util.ImmutableCollections$List12",["x"]]', ['x']],
    ['["java.util.LinkedHashSet",[1]]', new Set([1])],
    ['["java.util.EnumSet<com.x.Color>",["RED"]]', new Set(['RED'])],
    ['{"@class":"java.util.TreeMap","k":1}', { k: 1 }],
    ['{"@class":"java.util.Collections$EmptyMap"}', {}],
    ['{"@class":"java.util.EnumMap<com.x.Color,java.lang.Object>","RED":1}', { RED: 1 }],
    ['["java.util.LinkedHashMap",{"a":1}]', { a: 1 }],
    ['{"z":4,"@class":"java.util.HashMap"}', { z: 4 }],
    ['{"z":4,"@class":"J$Inner"}', { z: 4, '@class': 'J$Inner' }],
    ['["[Ljava.lang.Long;",[["java.lang.Long",1]]]', [1]],
    ['["[D",[1.0,"NaN"]]', [1, NaN]],
    ['["[[I",[[1],[2]]]', [[1], [2]]],
    [
      '["java.util.ArrayList",[["java.lang.Short",1],["java.lang.Float",1.5],["java.lang.Character","c"]]]',
      [1, 1.5, 'c'],
    ],
    // what Redisson itself cannot read back
    ['["a",1]', ['a', 1]],
    ['{"k":"v"}', { k: 'v' }],
    ['[1,2]', [1, 2]],
    ['["foo.txt","bar"]', ['foo.txt', 'bar']],
  ]
  for (const [json, value] of readOnly) {
    it(`reads ${json}`, () => expect(parse(json)).to.deep.equal(value))
  }

  it('writes escapes as Jackson does', () => {
    expect(text('\u001f\b\f\r\t\\\u007f😀\ud800')).to.equal('"\\u001F\\b\\f\\r\\t\\\\\u007f\\uD83D\\uDE00\\uD800"')
    const long = 'é'.repeat(200)
    expect(text(long)).to.equal(`"${long}"`)
    expect(text(`${long}"\u0001`)).to.equal(`"${long}\\"\\u0001"`)
    expect(text({ 'a"é': 1 })).to.equal('{"@class":"java.util.LinkedHashMap","a\\"é":1}')
  })

  it('keeps integers of 64 bits exact', () => {
    for (const value of [2n ** 53n + 1n, -(2n ** 53n) - 1n, 2n ** 63n - 1n, -(2n ** 63n)]) {
      expect(text({ value })).to.equal(`{"@class":"java.util.LinkedHashMap","value":["java.lang.Long",${value}]}`)
      expect(parse(text({ value, list: [value] }))).to.deep.equal({ value, list: [value] })
      expect(parse(`[1.5,${value}]`)).to.deep.equal([1.5, value])
    }
    expect(parse('["java.lang.Long",9007199254740992]')).to.equal(2n ** 53n)
    expect(parse('["java.lang.Long",9007199254740991]')).to.equal(2 ** 53 - 1)
    expect(parse('123456789012345678901')).to.deep.equal(java.bigInteger(123_456_789_012_345_678_901n))
    expect(text(5n)).to.equal('["java.lang.Long",5]')
    expect(parse('["java.lang.Long",5]', javaCodecs.jsonJackson({ longs: 'bigint' }))).to.equal(5n)
  })

  it('keeps the digits of a BigDecimal', () => {
    for (const digits of ['1.10', '-0.01', '0.00', '1000', '12345678901234567890.123456789', '1E+3', '1E-7']) {
      const json = `["java.math.BigDecimal",${digits}]`
      expect(text(parse(json))).to.equal(json)
    }
    expect(text(decimal('+.5'))).to.equal('["java.math.BigDecimal",0.5]')
  })

  it('returns each value that it accepts', () => {
    const value = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom(null, true, false),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.integer(),
        fc.maxSafeInteger(),
        fc.oneof(
          fc.bigInt({ min: 2n ** 53n, max: 2n ** 63n - 1n }),
          fc.bigInt({ min: -(2n ** 63n), max: -(2n ** 53n) }),
        ),
        fc.string({ unit: 'binary' }),
        fc.string({ unit: 'binary', minLength: 90, maxLength: 300 }),
        fc.date({ noInvalidDate: true }),
        fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
        fc.uuid().map((uuid) => java.uuid(uuid)),
        fc.bigInt().map((big) => java.bigInteger(big)),
        fc.array(tie('value'), { maxLength: 8 }),
        fc.array(fc.integer(), { maxLength: 8 }).map((items) => new Set(items)),
        fc.dictionary(
          fc.string({ unit: 'binary' }).filter((key) => key !== '@class'),
          tie('value'),
          { noNullPrototype: true, maxKeys: 8 },
        ),
      ),
    })).value
    fc.assert(
      fc.property(value, (given) => {
        expect(parse(text(given))).to.deep.equal(given)
      }),
      { numRuns: 500 },
    )
  })

  it('gives back the bytes of Java in exact mode, except what Java itself cannot read', () => {
    const exact = javaCodecs.jsonJackson({ exact: true })
    const bare = ['List.of', 'Map.of', 'int[]', 'long[]', 'String[]', 'double[]']
    let same = 0
    for (const [what, { json }] of Object.entries(jacksonVectors)) {
      const again = text(parse(json, exact), exact)
      if (bare.includes(what) || what === 'Order') continue
      expect(again, what).to.equal(json)
      same++
    }
    expect(same).to.be.greaterThan(50)
  })

  const unencodable: [what: string, value: unknown, path: string, message: RegExp][] = [
    ['undefined', undefined, '$', /undefined/],
    ['NaN', { a: NaN }, '$.a', /NaN/],
    ['an infinity', [[-Infinity]], '$[0][0]', /-Infinity/],
    ['a bigint of more than 64 bits', { a: [2n ** 63n] }, '$.a[0]', /more than 64 bits/],
    ['a function', { a: [1, () => 1] }, '$.a[1]', /a function/],
    ['a symbol', new Set([Symbol('s')]), '$[0]', /a symbol/],
    ['a hole', [1, , 3], '$[1]', /undefined/], // eslint-disable-line no-sparse-arrays
    ['an invalid date', { at: new Date(NaN) }, '$.at', /an invalid Date/],
    ['a RegExp', { r: /x/ }, '$.r', /RegExp/],
    ['a Promise', [Promise.resolve()], '$[0]', /Promise/],
    ['a key of a Map that is no string', { m: new Map([[1, 1]]) }, '$.m', /a key of the Map is 1/],
    ['undefined in a Map', new Map([['a', undefined]]), '$', /undefined for "a"/],
    ['a Map with @class', new Map([['@class', 'x']]), '$', /@class/],
    ['an @class that is no string', { a: { '@class': 5 } }, '$.a', /its @class is 5/],
    ['a UUID that is none', [java.uuid('x')], '$[0]', /36 characters/],
    ['a BigDecimal that is none', [java.bigDecimal('1x')], '$[0]', /decimal text/],
    ['an endless BigInteger', [java.bigInteger(10n ** 1000n)], '$[0]', /1000 digits/],
    ['a short that is none', [java.short(40_000)], '$[0]', /32767/],
    ['a float that is too large', [java.float(1e300)], '$[0]', /too large/],
    ['a class made of nothing', { a: new JavaValue('com.x.Y', null) }, '$.a', /without a value/],
    ['a class made of a RegExp', { a: new JavaValue('com.x.Y', /x/) }, '$.a', /RegExp/],
  ]
  for (const [what, value, path, message] of unencodable) {
    it(`refuses ${what} and names its path`, () => {
      expect(() => codec.encode(value))
        .to.throw(EncodeError, message)
        .that.includes({ path, code: 'ERR_ENCODE' })
    })
  }

  const undecodable: [json: string, message: RegExp][] = [
    ['', /end/i],
    ['{', /JSON/],
    ['[1,]', /JSON/],
    ['"\\x"', /JSON/],
    ['9007199254740993 x', /JSON/],
    ['[9007199254740993,]', /JSON/],
    ['["java.lang.Long","5"]', /whole number of 64 bits, got a string of 1 character/],
    ['["java.lang.Long",1.5]', /whole number/],
    ['["java.lang.Long",9223372036854775808]', /more than 64 bits/],
    ['["java.lang.Integer",3000000000]', /whole number from/],
    ['["java.util.Date","0"]', /milliseconds/],
    ['["java.util.Date",8640000000000001]', /milliseconds/],
    ['["java.util.UUID","x"]', /UUID/],
    ['["java.math.BigDecimal","1.10"]', /number/],
    ['["java.math.BigDecimal",[1]]', /number/],
    ['["java.math.BigInteger",1.5]', /whole number/],
    ['["[B","A*"]', /base64/],
    ['["java.util.ArrayList",5]', /an array/],
    ['["java.util.HashMap",[1]]', /an object/],
    ['["java.util.HashSet",[1,["java.lang.Long",1]]]', /two elements/],
    ['{"@class":5}', /@class/],
    ['1e400', /range of a double/],
    [`1${'0'.repeat(1000)}`, /1001 characters/],
  ]
  for (const [json, message] of undecodable) {
    it(`refuses ${json.slice(0, 60)}`, () => expect(() => parse(json)).to.throw(DecodeError, message))
  }

  it('treats unknown classes as `unknownClass` says', () => {
    const json = '["java.util.ArrayList",[{"@class":"com.x.Y","a":1},["com.x.Color","RED"]]]'
    expect(parse(json, javaCodecs.jsonJackson({ unknownClass: 'map' }))).to.deep.equal([
      { a: 1 },
      new JavaValue('com.x.Color', 'RED'),
    ])
    const refusing = javaCodecs.jsonJackson({ unknownClass: 'refuse' })
    expect(() => parse(json, refusing)).to.throw(DecodeError, /com.x.Y/)
    expect(() => parse('["com.x.Color","RED"]', refusing)).to.throw(DecodeError, /com.x.Color/)
    expect(parse('{"@class":"java.util.TreeMap","a":["java.lang.Long",1]}', refusing)).to.deep.equal({ a: 1 })
  })

  it('never touches a prototype', () => {
    const json = '{"@class":"java.util.HashMap","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}}}'
    for (const bad of [json, json.replace('"java.util.HashMap"', '"com.x.Y"'), json.replace('1', '9007199254740993')]) {
      const value = parse(bad) as Record<string, unknown>
      expect(Object.getPrototypeOf(value)).to.equal(Object.prototype)
      expect(Object.keys(value)).to.include.members(['__proto__', 'constructor'])
      expect(value.polluted).to.equal(undefined)
      expect(({} as Record<string, unknown>).polluted).to.equal(undefined)
      expect(parse(text(value, javaCodecs.jsonJackson({ plainClasses: true })))).to.deep.equal(value)
    }
  })

  it('takes as many levels as it reads, and no more', () => {
    let deep: unknown = 2n ** 60n
    for (let i = 0; i < MAX_DEPTH; i++) deep = i % 2 ? [deep] : { a: deep }
    expect(parse(text(deep))).to.deep.equal(deep)
    expect(() => codec.encode([deep])).to.throw(EncodeError, /nests deeper/)
    expect(() => parse(`["java.util.ArrayList",[${text(deep)}]]`)).to.throw(DecodeError, /nest(s)? deeper/)
    const cycle: unknown[] = []
    cycle.push({ cycle })
    expect(() => codec.encode(cycle)).to.throw(EncodeError, /contains itself/)
  })

  it('refuses deep nesting at once', () => {
    const started = process.cpuUsage()
    for (const open of ['[', '{"a":', '["java.util.ArrayList",[', '["com.x.Y",', '[9007199254740993,']) {
      for (const times of [200, 5_000, 1_000_000]) {
        expect(() => parse(open.repeat(times))).to.throw(DecodeError)
        if (times > 200 && times < 1_000_000) {
          expect(() =>
            parse(`${open.repeat(times)}1${open.includes('{') ? '}'.repeat(times) : ']'.repeat(times)}`),
          ).to.throw(DecodeError)
        }
      }
    }
    expect(cpuMsSince(started)).to.be.below(5_000)
  })

  it('bounds the slower parser, too', () => {
    const big = 9_007_199_254_740_993n
    expect(() => parse(`${`[${big},`.repeat(300)}1${']'.repeat(300)}`)).to.throw(DecodeError, /nest deeper than 257/)
    const exact = javaCodecs.jsonJackson({ exact: true })
    expect(() => parse('"a\u0001b"', exact)).to.throw(DecodeError, /not JSON/)
    expect(() => parse('["a', exact)).to.throw(DecodeError, /unexpected end/)
  })

  it('may be called while it encodes', () => {
    const value = {
      before: 1,
      get inside() {
        expect(() => codec.encode(NaN)).to.throw(EncodeError)
        return text({ inner: [1, 2] })
      },
      after: 2,
    }
    const inner = JSON.stringify(text({ inner: [1, 2] }))
    const json = `{"@class":"java.util.LinkedHashMap","before":1,"inside":${inner},"after":2}`
    expect([text(value), text(value)]).to.deep.equal([json, json])
  })

  it('gives bytes of its own', () => {
    const first = codec.encode('first')
    codec.encode('other')
    expect(first.toString()).to.equal('"first"')
  })

  it('never fails in another way than with a DecodeError', () => {
    onlyDecodeErrors(codec, fc.constantFrom(...Object.values(jacksonVectors).map(({ json }) => Buffer.from(json))))
  })

  it('reads and refuses the same with both parsers', () => {
    const json = fc.oneof(
      fc.json(),
      fc
        .tuple(fc.json(), fc.nat(), fc.string({ maxLength: 1 }))
        .map(([text, at, char]) => text.slice(0, at % text.length) + char),
    )
    const outcome = (text: string) => {
      try {
        return parse(text)
      } catch (error) {
        expect(error).to.be.instanceOf(DecodeError)
        return DecodeError
      }
    }
    fc.assert(
      fc.property(json, (text) => {
        fc.pre(!/\d{16}|\de/i.test(text))
        const exactly = outcome(`[9007199254740993,${text}]`)
        const plainly = outcome(`[1,${text}]`)
        if (plainly === DecodeError) expect(exactly).to.equal(DecodeError)
        else expect((exactly as unknown[])[1]).to.deep.equal((plainly as unknown[])[1])
      }),
      { numRuns: 1000 },
    )
  })

  it('refuses options that it does not know', () => {
    for (const options of [
      { clases: {} },
      { unknownClass: 'drop' },
      { longs: 'string' },
      { exact: 1 },
      { uuidFields: 'x' },
      { classes: 5 },
      { classes: { 'com.x.Y': { field: {} } } },
      { classes: { 'com.x.Y': { fields: { a: 'Lnog' } } } },
      { classes: { 'com.x.Y': { fields: { a: 'List<Long>[]' } } } },
      { classes: { 'com.x.Y': { type: {} } } },
      { classes: { 'com.x.Y': { type: Object } } },
      { classes: { 'com.x.Y': { type: URL }, 'com.x.Z': { type: URL } } },
    ]) {
      expect(() => javaCodecs.jsonJackson(options as never), JSON.stringify(options)).to.throw(InvalidArgumentError)
    }
  })
})
