import { javaCodecs, java } from '../../src/java/index.js'
import { expect } from 'chai'
import { codecs, type Codec } from '../../src/codecs/index.js'
import { DecodeError, EncodeError } from '../../src/errors.js'

/** As the ids of MongoDB are: bytes in a field, and a text for them. */
class ObjectId {
  readonly buffer = Buffer.of(1, 2)
  toJSON(): string {
    return this.buffer.toString('hex')
  }
}
class Hidden {
  readonly #amount = 5
  get amount(): number {
    return this.#amount
  }
}
class Point {
  x = 1
}
class Nothing extends Object {}
class Chain {
  toJSON(): unknown {
    return new ObjectId()
  }
}

const all: Record<string, Codec> = {
  json: codecs.json(),
  msgpack: codecs.msgpack(),
  jsonJackson: javaCodecs.jsonJackson(),
  typedJsonJackson: javaCodecs.typedJsonJackson(),
  msgpackJackson: javaCodecs.msgpackJackson(),
  cborJackson: javaCodecs.cborJackson(),
  kryo5: javaCodecs.kryo5(),
  'kryo5 with references': javaCodecs.kryo5({ references: true }),
}

for (const [name, codec] of Object.entries(all)) {
  describe(`${name} codec given instances of classes`, () => {
    const roundTrip = (value: unknown) => codec.decode(codec.encode(value))
    const isJava = name !== 'json' && name !== 'msgpack'

    it('writes the result of toJSON, as JSON.stringify does', () => {
      expect(roundTrip({ v: new ObjectId() })).to.deep.equal({ v: '0102' })
      expect(roundTrip([new ObjectId(), new ObjectId()])).to.deep.equal(['0102', '0102'])
      expect(roundTrip({ at: new URL('http://localhost/') })).to.deep.equal({ at: 'http://localhost/' })
      expect(roundTrip(new ObjectId())).to.equal('0102')
    })

    it('refuses values that would become empty, with their path', () => {
      for (const value of [new Hidden(), new Nothing(), new Chain()]) {
        expect(() => codec.encode({ list: [value] }))
          .to.throw(EncodeError)
          .with.property('path', '$.list[0]')
      }
    })

    it(isJava ? 'refuses a class that is not declared' : 'takes the properties that can be seen', () => {
      if (!isJava) expect(roundTrip({ p: new Point() })).to.deep.equal({ p: { x: 1 } })
      else
        expect(() => codec.encode({ p: new Point() }))
          .to.throw(EncodeError, /Point.*not declared/)
          .with.property('path', '$.p')
    })

    it('sets no prototype, whatever a key is called', () => {
      for (const key of ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty']) {
        const value = JSON.parse(`{"outer":{"${key}":{"polluted":1}}}`) as Record<string, object>
        if (key === '__proto__' && name === 'msgpack') {
          expect(() => codec.encode(value)).to.throw(EncodeError, /__proto__/)
          continue
        }
        const decoded = roundTrip(value) as typeof value
        expect(Object.getPrototypeOf(decoded.outer)).to.equal(Object.prototype)
        expect(Object.keys(decoded.outer ?? {})).to.deep.equal([key])
        expect(({} as { polluted?: unknown }).polluted).to.equal(undefined)
      }
    })
  })
}

describe('a Java value inside a Java value', () => {
  for (const name of ['jsonJackson', 'msgpackJackson', 'cborJackson', 'kryo5'] as const) {
    it(`is refused by ${name} where a class is made of something else`, () => {
      const codec = javaCodecs[name]()
      const map = java.of('java.util.HashMap', { a: 1 })
      for (const type of ['java.util.TreeMap', 'java.util.LinkedList', 'java.lang.Float', 'java.util.UUID']) {
        expect(() => codec.encode({ v: java.of(type, map) }), type)
          .to.throw(EncodeError, /cannot be made of a java.util.HashMap/)
          .with.property('path', '$.v')
      }
    })
  }

  it('comes back where Java holds any value', () => {
    const uuid = java.uuid('00000000-0000-0001-0000-000000000002')
    for (const make of [javaCodecs.jsonJackson, javaCodecs.msgpackJackson, javaCodecs.cborJackson]) {
      const codec = make({ exact: true })
      const values = [uuid, java.of('java.util.TreeMap', { a: 'x' }), java.of('java.util.ArrayList', ['x'])]
      for (const value of values) {
        const bytes = codec.encode(java.of('java.util.Optional', value))
        expect(codec.encode(codec.decode(bytes)).toString('latin1')).to.equal(bytes.toString('latin1'))
      }
    }
    const kryo = javaCodecs.kryo5({ exact: true })
    const optional = java.of('java.util.Optional', uuid)
    expect(kryo.decode(kryo.encode(optional))).to.deep.equal(optional)
  })
})

describe('kryo5 codec, what names and constants leave behind', () => {
  it('gives back an empty Optional', () => {
    const empty = java.of('java.util.Optional', null)
    for (const codec of [
      javaCodecs.kryo5(),
      javaCodecs.kryo5({ references: true }),
      javaCodecs.kryo5({ exact: true }),
    ]) {
      expect(codec.decode(codec.encode(empty))).to.deep.equal(empty)
      expect(codec.decode(codec.encode([empty, 'a']))).to.deep.equal([empty, 'a'])
    }
  })

  it('keeps a bounded number of enums that only values name', () => {
    const codec = javaCodecs.kryo5()
    const first = codec.encode(java.enumValue('x.E0', 1))
    expect(codec.decode(first)).to.have.property('ordinal', 1)
    for (let i = 1; i <= 1000; i++) codec.encode(java.enumValue(`x.E${i}`, 1))
    expect(() => codec.decode(first)).to.throw(DecodeError, /x.E0 is neither built in nor declared/)
  })

  it('knows no class by the names that every object has', () => {
    const codec = javaCodecs.kryo5()
    for (const name of ['constructor', '__proto__', 'toString', 'int', 'String', 'int[]']) {
      const text = Buffer.from(`[L${name};`)
      text[text.length - 1]! |= 0x80
      const bytes = Buffer.concat([Buffer.of(1, 0), text, Buffer.of(2, 0)])
      expect(() => codec.decode(bytes), name).to.throw(DecodeError, /neither built in nor declared/)
    }
  })

  it('reads and writes a field called constructor, and calls no setter', () => {
    class Loud {
      set name(_: string) {
        throw new Error('called')
      }
    }
    const classes = { 'x.Loud': { type: Loud, fields: { name: 'String', constructor: 'String' } } }
    const codec = javaCodecs.kryo5({ classes })
    const loud = Object.defineProperty(new Loud(), 'name', { value: 'n', enumerable: true })
    const decoded = codec.decode(codec.encode(loud)) as object
    expect(Object.entries(decoded)).to.deep.equal([
      ['constructor', null],
      ['name', 'n'],
    ])
  })

  it('refuses a map of several entries where Java has one', () => {
    const codec = javaCodecs.kryo5()
    expect(() => codec.encode(java.of('java.util.Collections$SingletonMap', { a: 1, b: 2 }))).to.throw(EncodeError)
    expect(() => codec.encode(java.of('java.util.Collections$EmptyMap', new Map([[1, 1]])))).to.throw(EncodeError)
  })
})

describe('msgpack codec with invalid texts and dates', () => {
  const codec = codecs.msgpack()
  const long = `d9 50 ${'61'.repeat(79)}ff`
  const bad = [
    'a1 ff',
    'a2 c3 28',
    '91 a3 e2 82 28',
    '81 a1 ff 01',
    '91 a4 61 62 63 80',
    long,
    `91 ${long}`,
    'a3 ed a0 80',
  ]
  const dates = [
    'd7ff ee6b2800 00000001',
    'c70cff 3b9aca00 0000000000000001',
    'c70cff 00000000 7fffffffffffffff',
    'd4ff 00',
  ]
  for (const text of bad) {
    it(`refuses the text ${text.slice(0, 20)}`, () => {
      expect(() => codec.decode(Buffer.from(text.replaceAll(' ', ''), 'hex'))).to.throw(DecodeError, /UTF-8/)
    })
  }
  for (const text of dates) {
    it(`refuses the timestamp ${text}`, () => {
      for (const prefix of ['', '91']) {
        const bytes = Buffer.from(prefix + text.replaceAll(' ', ''), 'hex')
        expect(() => codec.decode(bytes)).to.throw(DecodeError, /not a valid date/)
      }
    })
  }

  it('takes the mark of what could not be read as the text it is', () => {
    for (const text of ['\ufffd', `x\ufffd${'y'.repeat(300)}`]) expect(codec.decode(codec.encode(text))).to.equal(text)
  })
})
