import { javaCodecs, java, type Kryo5Options } from '../../src/java/index.js'
import { inspect, isDeepStrictEqual } from 'node:util'
import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { MAX_DEPTH } from '../../src/codecs/codec.js'
import { EncodeError, InvalidArgumentError } from '../../src/errors.js'
import { allowedClasses, classes } from './fixtures/kryo5-classes.js'
import { encodable } from './fixtures/kryo5-values.js'

const codec = javaCodecs.kryo5()
const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
const roundTrip = (value: unknown) => codec.decode(codec.encode(value))

const variants: Record<string, Kryo5Options> = {
  names: {},
  references: { references: true },
  allowed: { allowedClasses },
  'allowed+references': { allowedClasses, references: true },
}

function vectors(file: string): { label: string; options: Kryo5Options; bytes: Buffer }[] {
  const lines = readFileSync(new URL(`fixtures/${file}`, import.meta.url), 'utf8').split('\n')
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const parts = line.split(' | ')
      const variant = parts.length === 3 ? parts[1]! : 'names'
      const options = { classes, ...variants[variant] }
      return { label: `${parts[0]} (${variant})`, options, bytes: hex(parts.at(-1)!) }
    })
}

/** The vectors that values cannot express: two strings that are one object, and an enum constant with a class of its own. */
const NOT_THE_SAME_BYTES = /enum body|pojo Fields|pojo Generics \(references\)|list same string/

describe('kryo5 codec', () => {
  it('is frozen and has a name', () => {
    expect(codec.name).to.equal('kryo5')
    expect(Object.isFrozen(codec)).to.equal(true)
  })

  for (const file of ['kryo5.txt', 'kryo5-more.txt']) {
    it(`reads what Java wrote, and writes the same bytes: ${file}`, () => {
      const all = vectors(file)
      expect(all.length).to.be.greaterThan(60)
      for (const { label, options, bytes } of all) {
        const exact = javaCodecs.kryo5({ ...options, exact: true })
        const again = exact.encode(exact.decode(bytes))
        if (!NOT_THE_SAME_BYTES.test(label)) expect(again.toString('hex'), label).to.equal(bytes.toString('hex'))
        expect(exact.decode(again), label).to.deep.equal(exact.decode(bytes))
        const plain = javaCodecs.kryo5(options)
        const value = plain.decode(bytes)
        expect(plain.decode(plain.encode(value)), label).to.deep.equal(value)
      }
    })
  }

  const written: [value: unknown, text: string][] = [
    ['', '03 81'],
    ['hello', '03 68656c6cef'],
    ['h\u00e9llo', '03 86 68c3a96c6c6f'],
    ['\u{1f600}', '03 83 eda0bdedb880'],
    [5, '02 0a'],
    [-64, '02 7f'],
    [2 ** 31, '09 8080808010'],
    [3_000_000_000, '09 80f882ad16'],
    [1n, '09 02'],
    [-(2n ** 63n), '09 ffffffffffffffffff'],
    [1.5, '0a 000000000000f83f'],
    [-0, '0a 0000000000000080'],
    [2 ** 53, '0a 0000000000004043'],
    [true, '05 01'],
    [java.float(1.5), '04 0000c03f'],
    [java.byte(5), '06 05'],
    [java.short(5), '08 0500'],
    [java.char('c'), '07 6300'],
    [java.long(1), '09 02'],
    [java.double(1), '0a 000000000000f03f'],
    [java.int(1), '02 02'],
    [java.enumValue('K$Color', 1), '01 00 4b24436f6c6ff2 02'],
    [java.bigDecimal('1.10'), '01 00 6a6176612e6d6174682e426967446563696d61ec 02 6e 04'],
    [Buffer.of(1, 2, 255), '01 00 5bc2 04 0102ff'],
    [new Int32Array([1, 2]), '01 00 5bc9 03 02 04'],
    [['a', 1], '01 00 6a6176612e7574696c2e41727261794c6973f4 03 03 8261 02 02'],
    [['a', null], '01 00 6a6176612e7574696c2e41727261794c6973f4 83 03 01 8261 80'],
    [{ k: 1, u: undefined }, '01 00 6a6176612e7574696c2e4c696e6b6564486173684d61f0 02 03 826b 02 02'],
    [new Map([['k', 1]]), '01 00 6a6176612e7574696c2e4c696e6b6564486173684d61f0 02 03 826b 02 02'],
    [new Set([1]), '01 00 6a6176612e7574696c2e4c696e6b65644861736853 65f4 82 02 00 02'],
    [new Date(0), '01 00 6a6176612e7574696c2e446174e5 00'],
  ]
  for (const [value, text] of written) {
    it(`writes ${text.slice(0, 40)}`, () => {
      expect(codec.encode(value).toString('hex')).to.equal(text.replaceAll(' ', ''))
    })
  }

  it('gives back everything that it takes', () => {
    for (const options of [{}, { references: true }, { exact: true }]) {
      const each = javaCodecs.kryo5(options)
      fc.assert(
        fc.property(encodable, (value) => {
          const bytes = each.encode(value)
          const decoded = each.decode(bytes)
          // chai cannot compare a Map that holds an object with a toString of its own
          if (!('exact' in options)) expect(isDeepStrictEqual(decoded, value), inspect(value)).to.equal(true)
          expect(each.encode(decoded)).to.deep.equal(bytes)
        }),
        { numRuns: 300 },
      )
    }
  })

  it('reads Longs exactly, as numbers or bigints', () => {
    expect(roundTrip(2n ** 53n)).to.equal(2n ** 53n)
    expect(roundTrip(5n)).to.equal(5)
    expect(javaCodecs.kryo5({ longs: 'bigint' }).decode(hex('0902'))).to.equal(1n)
    expect(javaCodecs.kryo5({ longs: 'bigint' }).decode(hex('0202'))).to.equal(1)
  })

  describe('with declared classes', () => {
    class Inner {
      constructor(readonly x: number) {}
      get double() {
        return this.x * 2
      }
    }
    const typed = javaCodecs.kryo5<Record<string, unknown>>({
      classes: { ...classes, V$Inner: { type: Inner, fields: { x: 'int' } } },
    })

    it('gives instances of the JavaScript class and takes them', () => {
      const value = { list: [new Inner(1), new Inner(2)] }
      const decoded = typed.decode(typed.encode(value)) as typeof value
      expect(decoded).to.deep.equal(value)
      expect(decoded.list[1]).to.be.instanceOf(Inner)
      expect(decoded.list[1]!.double).to.equal(4)
    })

    it('takes plain values in fields, and gives them', () => {
      const fields = {
        '@class': 'V$Fields',
        price: '0.10',
        big: 2n ** 70n,
        id: '00000000-0000-0000-0000-00000000000a',
        color: 'GREEN',
        inner: new Inner(3),
        fin: { '@class': 'V$Fin', x: 1, s: null },
        when: '2026-01-02T03:04:05.000000006Z',
      }
      const decoded = typed.decode(typed.encode(fields))
      expect(decoded).to.include({ price: '0.10', big: 2n ** 70n, color: 'GREEN', when: fields.when, id: fields.id })
      expect(decoded.inner).to.be.instanceOf(Inner)
      expect(decoded.op).to.equal(null)
      expect(typed.encode(decoded)).to.deep.equal(typed.encode(fields))
    })

    const wrong: [what: string, value: unknown, path: string, message: RegExp][] = [
      ['an unknown field', { '@class': 'V$Inner2', x: 1, zip: 2 }, '$.zip', /declared without such a field/],
      ['a missing primitive', { a: { '@class': 'V$Inner2' } }, '$.a.x', /type int cannot be null/],
      ['a value out of range', { '@class': 'V$Inner2', x: 2 ** 31 }, '$.x', /integer of 32 bits/],
      ['an unknown constant', { '@class': 'V$Fields', color: 'PINK' }, '$.color', /constant of V\$Color/],
      ['another class', { '@class': 'V$Fields', id: java.float(1) }, '$.id', /expected java.util.UUID/],
      ['an undeclared class', { o: { '@class': 'x.Y' } }, '$.o', /class x.Y is neither built in nor declared/],
      ['an undeclared JavaValue', [java.of('x.Y', 1)], '$[0]', /class x.Y is neither/],
    ]
    for (const [what, value, path, message] of wrong) {
      it(`refuses ${what}`, () => {
        expect(() => typed.encode(value as Record<string, unknown>))
          .to.throw(EncodeError, message)
          .with.property('path', path)
      })
    }

    it('refuses declarations that it does not understand', () => {
      for (const type of ['int[', 'Strin', 'List<String', 'x.Y', '', 'List<>', 'int int', 5]) {
        const declare = () => javaCodecs.kryo5({ classes: { A: { fields: { a: type as string } } } })
        expect(declare, String(type)).to.throw(InvalidArgumentError, /kryo5.classes\["A"\].fields.a/)
      }
      expect(() => javaCodecs.kryo5({ classes: { 'java.util.Date': {} } })).to.throw(InvalidArgumentError)
      expect(() => javaCodecs.kryo5({ reference: true } as Kryo5Options)).to.throw(InvalidArgumentError)
    })
  })

  it('keeps shared objects and cycles in references mode', () => {
    const each = javaCodecs.kryo5<Record<string, unknown>>({ references: true })
    const shared = { s: 1 }
    const value: Record<string, unknown> = { list: [shared, shared], map: new Map<unknown, unknown>([[1, shared]]) }
    value.self = value
    const decoded = each.decode(each.encode(value))
    expect(decoded.self).to.equal(decoded)
    const list = decoded.list as unknown[]
    expect(list[0]).to.equal(list[1])
    expect((decoded.map as Map<unknown, unknown>).get(1)).to.equal(list[0])
  })

  it('numbers allowed classes by name, or as given', () => {
    const [b, a] = ['com.acme.B', 'com.acme.A']
    const declared = { [a]: { fields: { x: 'int' } }, [b]: { fields: { x: 'int' } } } as const
    const value = java.of(b, { x: 1 })
    const bytesOf = (allowedClasses: string[], allowedClassesOrder?: 'sorted' | 'given') =>
      javaCodecs.kryo5({ classes: declared, allowedClasses, allowedClassesOrder }).encode(value).toString('hex')
    expect(bytesOf([b, a])).to.equal(bytesOf([a, b]))
    expect(bytesOf([b, a], 'sorted')).to.equal(bytesOf([a, b]))
    expect(bytesOf([a, b], 'given')).to.equal(bytesOf([a, b]))
    expect(bytesOf([b, a], 'given')).not.to.equal(bytesOf([a, b]))
    expect(() => bytesOf([a], 'random' as 'given')).to.throw(InvalidArgumentError, 'allowedClassesOrder')
  })

  it('writes only allowed classes', () => {
    const each = javaCodecs.kryo5({ allowedClasses, classes })
    expect(() => each.encode([new Set()])).to.throw(EncodeError, /java.util.LinkedHashSet is not among the allowed/)
    expect(() => each.decode(codec.encode(new Set([1])))).to.throw(/LinkedHashSet is not among the allowedClasses/)
    // entries from before the classes were registered
    expect(each.decode(codec.encode(['a']))).to.deep.equal(['a'])
  })

  const refused: [what: string, value: unknown, path: string, message: RegExp][] = [
    ['null', null, '$', /null is no element/],
    ['undefined', undefined, '$', /undefined is no element/],
    ['a hole', { a: [1, , 3] }, '$.a[1]', /undefined/], // eslint-disable-line no-sparse-arrays
    ['a function', [{ f: () => 1 }], '$[0].f', /a function/],
    ['a symbol', Symbol('s'), '$', /a symbol/],
    ['a Promise', [Promise.resolve()], '$[0]', /Promise/],
    ['an invalid date', { at: new Date(NaN) }, '$.at', /an invalid Date/],
    ['a bigint of more than 64 bits', [2n ** 63n], '$[0]', /bigint of 64 bits/],
    ['a UUID that is none', java.uuid('x'), '$', /expected a UUID/],
    ['a decimal that is none', java.bigDecimal('1,5'), '$', /decimal number/],
    ['a float too large', java.float(1e39), '$', /too large for a float/],
    ['a char of two units', java.char('\u{1f600}'), '$', /one UTF-16 unit/],
    ['an impossible day', java.of('java.time.LocalDate', '2025-02-29'), '$', /java.time.LocalDate/],
    [
      'a null in an immutable list',
      java.of('java.util.ImmutableCollections$ListN', [1, null]),
      '$[1]',
      /holds no null/,
    ],
  ]
  for (const [what, value, path, message] of refused) {
    it(`refuses ${what} and names its path`, () => {
      expect(() => codec.encode(value))
        .to.throw(EncodeError, message)
        .that.includes({ path, code: 'ERR_ENCODE' })
    })
  }

  it('takes as many levels as it reads, and no more', () => {
    let deep: unknown = 1
    for (let i = 0; i < MAX_DEPTH; i++) deep = i % 2 ? [deep] : { a: deep }
    expect(roundTrip(deep)).to.deep.equal(deep)
    expect(() => codec.encode([deep])).to.throw(EncodeError, /nests deeper than 128 levels/)
    const cycle: unknown[] = []
    cycle.push(cycle)
    expect(() => codec.encode(cycle)).to.throw(EncodeError, /contains itself/)
  })

  it('gives every call its own bytes, also to an encode within an encode', () => {
    const first = codec.encode('first value')
    const copy = Buffer.from(first)
    for (let i = 0; i < 2000; i++) codec.encode(`another value ${i}`)
    expect(first).to.deep.equal(copy)
    const nested = {
      a: 'x',
      get b() {
        return codec.encode('inner')
      },
    }
    expect(roundTrip(nested)).to.deep.equal({ a: 'x', b: codec.encode('inner') })
    expect(roundTrip('z'.repeat(3_000_000))).to.have.length(3_000_000)
  })
})
