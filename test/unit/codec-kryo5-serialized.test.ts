/** The classes for which Redisson's Kryo codec uses Java's own serialization: `EnumMap`, and the results of `Collections.unmodifiableList` and similar methods. */
import { java, javaCodecs, type ClassDeclaration, type Kryo5Options } from '../../src/java/index.js'
import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { DecodeError, EncodeError } from '../../src/errors.js'

const classes: Record<string, ClassDeclaration> = {
  'shop.State': { enum: ['OPEN', 'PAID', 'CANCELLED'] },
  'shop.Line': { fields: { sku: 'String', count: 'int', price: 'BigDecimal' } },
  'shop.Vec$Maps': {
    fields: {
      a: 'EnumMap<shop.State, Integer>',
      b: 'EnumMap<shop.State, String>',
      c: 'List<shop.Line>',
      d: 'List<String>',
      e: 'Map<String, Long>',
      f: 'Set<shop.State>',
    },
  },
}
const vectors = readFileSync(new URL('fixtures/kryo5-serialized.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => {
    const [label, variant, hex] = line.split(' | ') as [string, string, string]
    return { label, references: variant === 'references', bytes: Buffer.from(hex, 'hex') }
  })
const codecOf = (options: Kryo5Options) => javaCodecs.kryo5({ classes, ...options })

const open = java.enumValue('shop.State', 0, 'OPEN')
const paid = java.enumValue('shop.State', 1, 'PAID')
const cancelled = java.enumValue('shop.State', 2, 'CANCELLED')
const line = (sku: string, count: number, price: string | null) => ({ '@class': 'shop.Line', count, price, sku })
const time = (name: string, text: string) => java.of(`java.time.${name}`, text)
const maps = {
  '@class': 'shop.Vec$Maps',
  a: { OPEN: 3, PAID: 4 },
  b: { OPEN: 'x' },
  c: [line('a-1', 2, '9.99')],
  d: ['q'],
  e: { k: 5 },
  f: new Set(['PAID']),
}
const integers = new Map([
  [open, 3],
  [paid, 4],
])
const threeOf = (one: unknown, other: unknown, third: unknown) =>
  new Map([
    [open, one],
    [paid, other],
    [cancelled, third],
  ])
const expected: Record<string, unknown> = {
  'EnumMap empty': {},
  'EnumMap of Integer': integers,
  'EnumMap of Object': threeOf('text', 9_007_199_254_740_993n, null),
  'EnumMap of others': threeOf(1.5, true, open),
  'EnumMap of things': threeOf(java.bigDecimal('1.10'), [1, 2], integers),
  'EnumMap of boxes': threeOf(5, 'c', 1.5),
  unmodifiableList: ['a', null, 'é€😀\0', 5],
  'unmodifiableList LinkedList': ['a', 'b'],
  'unmodifiableList asList': ['a', 'b'],
  'unmodifiableList listOf': ['a', 'b'],
  'unmodifiableList empty': [],
  'unmodifiableList scalars': [
    new Date(1_764_064_800_123),
    java.uuid('11111111-2222-3333-4444-555555555555'),
    java.bigInteger(-12_345_678_901_234_567_890n),
    java.bigDecimal('-0.001'),
    Buffer.from([1, 2]),
    [3, 4],
    ['x'],
    1,
    7,
  ],
  'unmodifiableList times': [
    time('Instant', '2026-11-25T10:00:00.123456789Z'),
    time('Duration', 'PT1.500S'),
    time('LocalDate', '2026-02-03'),
    time('LocalTime', '10:00'),
    time('LocalTime', '10:01:02.000000003'),
    time('LocalDateTime', '2026-02-03T04:05'),
    time('Period', 'P1Y2M3D'),
    time('Year', '2026'),
  ],
  'unmodifiableList lines': [line('a-1', 2, '9.99'), line('b-2', 1, null)],
  'unmodifiableList states': [paid, open, paid],
  unmodifiableSet: new Set(['a']),
  'unmodifiableSet linked': new Set(['b', 'a']),
  unmodifiableSortedSet: new Set(['a', 'b']),
  unmodifiableCollection: ['b', 'a'],
  unmodifiableMap: { x: 1 },
  'unmodifiableMap linked': integers,
  'unmodifiableMap of EnumMap': integers,
  'unmodifiableMap mapOf': { x: 1 },
  unmodifiableSortedMap: { a: 2, b: 1 },
  'unmodifiableMap empty': {},
  'unmodifiableMap numbers': new Map([[7, 'x']]),
  synchronizedList: ['a'],
  synchronizedSet: new Set(['a']),
  synchronizedMap: { x: 1 },
  checkedList: ['a'],
  'unmodifiable nested': [['a'], [], ['s'], { k: 'v' }],
  Maps: maps,
  'Maps linked': { ...maps, d: ['n'] },
  'Maps same': { ...maps, b: { OPEN: 3, PAID: 4 }, d: ['n'] },
  many: [integers, new Set(['a']), ['a'], ['c'], {}, ['a'], ['z'], new Set(['t']), { x: 1 }, { x: 1 }],
}

describe("kryo5 codec, within Java's own serialization", () => {
  for (const { label, references, bytes } of vectors) {
    it(`reads ${label}${references ? ', with references' : ''}`, () => {
      expect(codecOf({ references }).decode(bytes)).to.deep.equal(expected[label])
    })
  }

  it('has an expectation for each vector', () => {
    expect(Object.keys(expected).sort()).to.deep.equal([...new Set(vectors.map(({ label }) => label))].sort())
  })

  it('writes an EnumMap as Java does, byte by byte', () => {
    const written = vectors.filter(({ label }) => /^EnumMap of (?:Integer|Object|others)$/.test(label))
    expect(written).to.have.length(4)
    for (const { label, references, bytes } of written) {
      const codec = codecOf({ references, exact: true })
      expect(codec.encode(codec.decode(bytes)).toString('hex'), label).to.equal(bytes.toString('hex'))
    }
  })

  it('takes a declared EnumMap as an object, in any order, empty or null', () => {
    const codec = codecOf({})
    const again = (fields: object) => codec.decode(codec.encode({ '@class': 'shop.Vec$Maps', ...fields }))
    expect(again({ a: { PAID: 4, OPEN: 300 }, b: new Map([['OPEN', 'é€😀\0']]) })).to.deep.include({
      a: { OPEN: 300, PAID: 4 },
      b: { OPEN: 'é€😀\0' },
    })
    expect(again({ a: {} })).to.deep.include({ a: {}, b: null })
    const { c, ...others } = maps
    expect(again({ ...others, c })).to.deep.equal(maps)
  })

  const refused: [what: string, value: unknown, message: RegExp][] = [
    ['a name that is no constant', { a: { LOST: 1 } }, /expected a constant of shop.State/],
    ['a value of another type', { a: { OPEN: 'x' } }, /expected an integer of 32 bits/],
    ['a list in place of the map', { a: [1] }, /expected a Map or an object for java.util.EnumMap/],
  ]
  for (const [what, fields, message] of refused) {
    it(`refuses ${what}`, () => {
      expect(() => codecOf({}).encode({ '@class': 'shop.Vec$Maps', ...(fields as object) })).to.throw(
        EncodeError,
        message,
      )
    })
  }

  it('refuses to write values that it can only read', () => {
    const codec = codecOf({})
    const decimals = java.of('java.util.EnumMap', new Map([[open, java.bigDecimal('1.10')]]))
    expect(() => codec.encode(decimals)).to.throw(EncodeError, /a value of java.math.BigDecimal can be read, but not/)
    expect(() => codec.encode(java.of('java.util.EnumMap', {}))).to.throw(EncodeError, /the enum of the EnumMap/)
    const list = java.of('java.util.Collections$UnmodifiableList', ['a'])
    expect(() => codec.encode(list)).to.throw(EncodeError, /can be read, but not be written/)
  })

  it('names a class that is not declared', () => {
    const { bytes } = vectors.find(({ label }) => label === 'unmodifiableList lines')!
    expect(() => javaCodecs.kryo5().decode(bytes)).to.throw(
      DecodeError,
      /class shop.Line is neither declared nor known/,
    )
    const fields = { sku: 'String', count: 'int' }
    expect(() => codecOf({ classes: { 'shop.Line': { fields } } }).decode(bytes)).to.throw(
      DecodeError,
      /class shop.Line is declared without its field price/,
    )
  })

  it('fails only with a DecodeError when bytes are missing or changed', () => {
    let seed = 1
    const random = (below: number) => {
      seed = (seed * 16_807) % 2_147_483_647
      return seed % below
    }
    for (const { references, bytes } of vectors) {
      const codec = codecOf({ references })
      const attempts = Array.from({ length: 60 }, (_, i) => {
        const copy = Buffer.from(bytes)
        if (i < 20) return copy.subarray(0, random(bytes.length))
        copy[random(bytes.length)] = random(256)
        return copy
      })
      for (const attempt of attempts) {
        try {
          codec.decode(attempt)
        } catch (error) {
          expect(error).to.be.instanceOf(DecodeError)
        }
      }
    }
  })

  it('refuses a list that contains itself', () => {
    const { bytes } = vectors.find(({ label }) => label === 'unmodifiableList empty')!
    const text = bytes.toString('latin1')
    // the ArrayList, whose number is 5 or more, in its own items: a reference in place of its end
    const handles = Array.from({ length: 10 }, (_, i) =>
      Buffer.concat([
        bytes.subarray(0, text.lastIndexOf('x')),
        Buffer.from([0x71, 0, 0x7e, 0, i]),
        Buffer.from('x'),
        bytes.subarray(text.lastIndexOf('x') + 1),
      ]),
    )
    const errors = handles.map((attempt) => {
      try {
        return String(codecOf({}).decode(attempt))
      } catch (error) {
        return (error as Error).message
      }
    })
    expect(errors.join('\n')).to.match(/contains itself/)
  })

  it('writes null and a missing value of an Optional as an empty one', () => {
    const optional = { 'a.Order': { fields: { note: 'Optional<String>', id: 'int' } } }
    const codec = codecOf({ classes: optional })
    const exact = codecOf({ classes: optional, exact: true })
    const empty = { '@class': 'a.Order', id: 1, note: java.of('java.util.Optional', null) }
    for (const note of [{ note: null }, {}]) {
      const bytes = codec.encode({ '@class': 'a.Order', id: 1, ...note })
      expect(exact.decode(bytes)).to.deep.equal(empty)
      expect(codec.decode(bytes)).to.deep.equal({ ...empty, note: null })
    }
    const nothing = { '@class': 'a.Order', id: 1, note: null }
    expect(exact.decode(exact.encode(nothing))).to.deep.equal(nothing)
  })
})
