import { javaCodecs, type JacksonOptions } from '../../src/java/index.js'
import { expect } from 'chai'
import { type Codec } from '../../src/codecs/index.js'
import { JavaValue, java } from '../../src/java/kryo/java-values.js'
import { DecodeError, EncodeError } from '../../src/errors.js'
import { jacksonVectors } from './codec-jackson-vectors.js'

const ORDER = 'com.x.Main$Order'
const INNER = 'com.x.Main$Inner'

/** The declarations of the vectors' Java source, without those that are not needed. */
const fields = {
  anyDouble: 'Object',
  at: 'Date',
  bd: 'BigDecimal',
  bi: 'BigInteger',
  boxed: 'Long',
  boxedByte: 'Byte',
  boxedInt: 'Integer',
  boxedInts: 'Integer[]',
  boxedShort: 'Short',
  bs: 'boolean[]',
  c: 'enum',
  cc: 'char',
  ch: 'Character',
  chars: 'char[]',
  d: 'double',
  dates: 'Date[]',
  dd: 'Double',
  ds: 'double[]',
  f: 'float',
  grid: 'int[][]',
  id: 'long',
  in: INNER,
  inners: `${INNER}[]`,
  ints: 'int[]',
  ll: 'List<Long>',
  longs: 'Long[]',
  meta: 'Map<String, Object>',
  ml: 'TreeMap<String, Long>',
  n: 'int',
  name: 'String',
  nan: 'double',
  objs: 'Object[]',
  ok: 'boolean',
  prims: 'long[]',
  raw: 'byte[]',
  set: 'Set<String>',
  ss: 'short[]',
  strs: 'String[]',
  tags: 'List<String>',
  u: 'UUID',
  uuids: 'UUID[]',
} as const

class Inner {
  z = 0
  get double(): number {
    return 2 * this.z
  }
}
const classes = { [ORDER]: { fields }, [INNER]: { type: Inner, fields: { z: 'int' } } }
const wire = jacksonVectors.Order!

const formats: [name: string, make: (options: JacksonOptions) => Codec<never>, bytes: Buffer][] = [
  ['jsonJackson', javaCodecs.jsonJackson, Buffer.from(wire.json)],
  ['msgpackJackson', javaCodecs.msgpackJackson, Buffer.from(wire.msgpack!, 'hex')],
  ['cborJackson', javaCodecs.cborJackson, Buffer.from(wire.cbor, 'hex')],
]

describe('classes of the Jackson codecs', () => {
  const uuid = '00000000-0000-0001-0000-000000000002'
  const inner = Object.assign(new Inner(), { z: 1 })

  for (const [name, make, bytes] of formats) {
    describe(name, () => {
      const codec = make({ classes }) as Codec

      it('reads every field of an object that Java wrote', () => {
        const order = codec.decode(bytes) as Record<string, unknown>
        expect(order).to.deep.include({
          '@class': ORDER,
          any: 's',
          anyBig: 5_000_000_000,
          anyBytes: Buffer.of(1, 2),
          anyLong: 5,
          at: new Date(0),
          bi: 5n,
          boxed: 8,
          c: 'RED',
          dates: [new Date(1)],
          ds: [1, 2.5],
          grid: [[1], [2]],
          in: inner,
          inners: [inner],
          ll: [1],
          longs: [1],
          meta: { k: 9 },
          ml: { k: 9 },
          nan: NaN,
          objs: [1, 'a', 2],
          prims: [1, 3_000_000_000],
          raw: Buffer.of(1, 2),
          set: new Set(['s']),
          u: uuid,
          uuids: [uuid],
        })
        expect(String((order.bd as JavaValue).value)).to.match(/^(1000|1E\+3)$/)
        expect(order.in).to.be.instanceOf(Inner).with.property('double', 2)
      })

      it('gives back its bytes in exact mode', () => {
        const exact = make({ classes, exact: true }) as Codec
        const order = exact.decode(bytes)
        expect(exact.encode(order).toString('latin1')).to.equal(bytes.toString('latin1'))
      })

      it('sorts the fields and leaves nulls out', () => {
        const mixed = { name: 'x', '@class': ORDER, boxed: null, id: 7, tags: undefined }
        expect(codec.decode(codec.encode(mixed))).to.deep.equal({ '@class': ORDER, id: 7, name: 'x' })
        expect(Object.keys(codec.decode(codec.encode(mixed)) as object)).to.deep.equal(['@class', 'id', 'name'])
      })

      it('keeps 64 bits in declared fields', () => {
        const max = 2n ** 63n - 1n
        const order = { '@class': ORDER, boxed: max, id: -max - 1n, ll: [max], prims: [max] }
        expect(codec.decode(codec.encode(order))).to.deep.equal(order)
      })
    })
  }

  const codec = javaCodecs.jsonJackson({ classes })
  const text = (value: unknown, by: Codec = codec) => by.encode(value).toString()
  const written = (order: object) => text({ '@class': ORDER, ...order })

  const forms: [order: object, json: string][] = [
    [{ id: 8 }, '"id":8'],
    [{ id: 3_000_000_000n }, '"id":3000000000'],
    [{ boxed: 8 }, '"boxed":["java.lang.Long",8]'],
    [{ d: 1 }, '"d":1.0'],
    [{ d: Infinity }, '"d":"Infinity"'],
    [{ ds: [1, NaN] }, '"ds":[1.0,"NaN"]'],
    [{ u: uuid }, `"u":["java.util.UUID","${uuid}"]`],
    [{ bd: '1.10' }, '"bd":["java.math.BigDecimal",1.10]'],
    [{ bi: 5 }, '"bi":["java.math.BigInteger",5]'],
    [{ raw: new Uint8Array([1, 2]) }, '"raw":"AQI="'],
    [{ set: ['a'] }, '"set":["java.util.HashSet",["a"]]'],
    [{ tags: new Set(['a']) }, '"tags":["java.util.ArrayList",["a"]]'],
    [{ ml: new Map([['a', 1]]) }, '"ml":{"@class":"java.util.TreeMap","a":["java.lang.Long",1]}'],
    [{ in: { z: 2 } }, `"in":{"@class":"${INNER}","z":2}`],
    [{ in: inner }, `"in":{"@class":"${INNER}","z":1}`],
    [{ any: 3_000_000_000 }, '"any":3000000000'],
    [{ any: 3n }, '"any":["java.lang.Long",3]'],
    [{ any: inner }, `"any":{"@class":"${INNER}","z":1}`],
  ]
  for (const [order, json] of forms) {
    it(`writes ${json}`, () => expect(written(order)).to.equal(`{"@class":"${ORDER}",${json}}`))
  }

  it('writes UUID fields bare for Redisson 3', () => {
    const old = javaCodecs.jsonJackson({ classes, uuidFields: 'bare' })
    const json = `{"@class":"${ORDER}","u":"${uuid}","uuids":["${uuid}"]}`
    expect(text({ '@class': ORDER, u: uuid, uuids: [java.uuid(uuid)] }, old)).to.equal(json)
    expect(codec.decode(Buffer.from(json))).to.deep.equal({ '@class': ORDER, u: uuid, uuids: [uuid] })
  })

  const wrong: [order: object, path: string, message: RegExp][] = [
    [{ id: 1.5 }, '$.id', /safe integer/],
    [{ boxed: '8' }, '$.boxed', /safe integer/],
    [{ n: 2 ** 31 }, '$.n', /whole number from/],
    [{ ss: [1, 40_000] }, '$.ss[1]', /32767/],
    [{ name: 5 }, '$.name', /a string/],
    [{ ok: 1 }, '$.ok', /true or false/],
    [{ at: 5 }, '$.at', /a Date/],
    [{ raw: 'AQI=' }, '$.raw', /Uint8Array/],
    [{ ll: { 0: 1 } }, '$.ll', /an array/],
    [{ ml: [1] }, '$.ml', /an array/],
    [{ in: 5 }, '$.in', /5/],
    [{ f: 1e300 }, '$.f', /float/],
    [{ inners: [{ z: 'x' }] }, '$.inners[0].z', /whole number/],
  ]
  for (const [order, path, message] of wrong) {
    it(`refuses ${JSON.stringify(order)}`, () => {
      expect(() => written(order))
        .to.throw(EncodeError, message)
        .with.property('path', path)
    })
  }

  const strict = [
    '"boxed":8',
    '"id":["java.lang.Long",8]',
    '"at":5',
    '"raw":["[B","AQI="]',
    '"tags":["a"]',
    '"ll":5',
    '"n":"5"',
    '"longs":[1]',
    '"d":["java.lang.Double",1.0]',
    '"in":5',
    '"boxed":["java.lang.Integer",8]',
    '"name":5',
    '"u":"x"',
    '"ok":0',
  ]
  for (const json of strict) {
    it(`refuses to read ${json}, as Java does`, () => {
      expect(() => codec.decode(Buffer.from(`{"@class":"${ORDER}",${json}}`))).to.throw(
        DecodeError,
        json.startsWith('"ll"') ? /Order.ll/ : /in com.x.Main\$Order\./,
      )
    })
  }

  it('keeps the class of a collection in a declared field in exact mode', () => {
    const exact = javaCodecs.jsonJackson({ classes, exact: true })
    const json = `{"@class":"${ORDER}","ll":["java.util.LinkedList",[["java.lang.Long",1]]],"tags":["java.util.LinkedList",["a"]]}`
    const order = exact.decode(Buffer.from(json)) as Record<string, unknown>
    expect(order.tags).to.deep.equal(new JavaValue('java.util.LinkedList', ['a']))
    expect(text(order, exact)).to.equal(json)
  })

  it('calls neither constructors nor setters of the registered class', () => {
    let calls = 0
    class Loud {
      constructor() {
        calls++
      }
      set name(_: string) {
        calls++
      }
    }
    const loud = javaCodecs.jsonJackson({ classes: { 'com.x.Loud': { type: Loud } } })
    const value = loud.decode(Buffer.from('{"@class":"com.x.Loud","name":"x","__proto__":{"a":1}}')) as object
    expect(calls).to.equal(0)
    expect(value).to.be.instanceOf(Loud)
    expect(Object.keys(value)).to.deep.equal(['name', '__proto__'])
    expect(text(value, loud)).to.equal(
      '{"@class":"com.x.Loud","__proto__":{"@class":"java.util.LinkedHashMap","a":1},"name":"x"}',
    )
  })
})

describe('typedJsonJackson codec', () => {
  const codec = javaCodecs.typedJsonJackson()
  const text = (value: unknown, by: Codec = codec) => by.encode(value).toString()
  const parse = (json: string, by: Codec = codec) => by.decode(Buffer.from(json))

  it('writes plain JSON', () => {
    const value = {
      long: 2n ** 63n - 1n,
      big: 5_000_000_000,
      double: 1.5,
      at: new Date(5),
      raw: Buffer.of(1, 2),
      list: ['a', new Set([1])],
      map: new Map([['k', null]]),
      uuid: java.uuid('00000000-0000-0001-0000-000000000002'),
      decimal: java.bigDecimal('1.10'),
      whole: java.double(1),
      inner: { '@class': 'data' },
    }
    expect(text(value)).to.equal(
      '{"long":9223372036854775807,"big":5000000000,"double":1.5,"at":5,"raw":"AQI=","list":["a",[1]],"map":{"k":null},' +
        '"uuid":"00000000-0000-0001-0000-000000000002","decimal":1.10,"whole":1.0,"inner":{"@class":"data"}}',
    )
  })

  it('reads plain JSON, with integers of 64 bits as bigints where numbers are not exact', () => {
    expect(parse('{"a":[9007199254740993,5,1.0E21,"x",null],"@class":"data"}')).to.deep.equal({
      a: [9_007_199_254_740_993n, 5, 1e21, 'x', null],
      '@class': 'data',
    })
    expect(parse('["java.lang.Long",5]')).to.deep.equal(['java.lang.Long', 5])
  })

  it('reads by the declared type', () => {
    const of = (type: string) => javaCodecs.typedJsonJackson({ type })
    expect(parse('5', of('Date'))).to.deep.equal(new Date(5))
    expect(parse('"AQI="', of('byte[]'))).to.deep.equal(Buffer.of(1, 2))
    expect(parse('[9007199254740993]', of('List<Long>'))).to.deep.equal([9_007_199_254_740_993n])
    expect(parse('{"a":5}', of('Map<String, Date>'))).to.deep.equal({ a: new Date(5) })
    expect(parse('1.10', of('BigDecimal'))).to.deep.equal(java.bigDecimal('1.10'))
    expect(text(1, of('double'))).to.equal('1.0')
    expect(() => parse('"x"', of('Date'))).to.throw(DecodeError)
    expect(() => text({}, of('List<Long>'))).to.throw(EncodeError, /an array/)
  })

  it('gives back the object that Java wrote', () => {
    const typed = javaCodecs.typedJsonJackson({ type: ORDER, classes })
    const json = wire.typed
    const order = typed.decode(Buffer.from(json)) as Record<string, unknown>
    expect(order).to.not.have.property('@class')
    expect(order.in).to.be.instanceOf(Inner)
    expect(order.at).to.deep.equal(new Date(0))
    // the Object field held a Double, which plain JSON does not distinguish from an Integer
    expect(text({ ...order, anyDouble: java.double(1) }, typed)).to.equal(json)
  })

  it('refuses a class, which has no place there', () => {
    expect(() => text([new JavaValue('com.x.Color', 'RED')])).to.throw(
      EncodeError,
      /no place for the class com.x.Color/,
    )
  })
})
