import { expect } from 'chai'
import { EncodeError } from '../../src/errors.js'
import { javaCodecs, java } from '../../src/java/index.js'

class Address {
  constructor(readonly city: string) {}
}
class Line {
  constructor(readonly sku: string) {}
}
const classes = {
  'a.Order': {
    fields: {
      home: 'a.Address',
      last: 'a.Last',
      list: 'List<a.Address>',
      set: 'Set<a.Address>',
      map: 'Map<String, a.Address>',
      keys: 'Map<a.Status, Integer>',
      array: 'a.Address[]',
      optional: 'Optional<a.Address>',
      bounded: 'List<? extends List<a.Address>>',
      prices: 'List<BigDecimal>',
      trees: 'List<TreeMap<String, Integer>>',
    },
  },
  'a.Address': { type: Address, fields: { city: 'String' } },
  'a.Office': { fields: { city: 'String', floor: 'int' } },
  'a.Line': { type: Line, fields: { sku: 'String' } },
  'a.Last': { final: true, fields: { city: 'String', sku: 'String' } },
  'a.Status': { enum: ['DRAFT', 'SENT'], final: false },
  'a.Envelope': { record: true, fields: { list: 'List<a.Address>', longs: 'List<Long>' } },
} as const
const codec = javaCodecs.kryo5<Record<string, unknown>>({ classes })
const order = (fields: Record<string, unknown>) => ({ '@class': 'a.Order', ...fields })
const hex = (value: Record<string, unknown>) => codec.encode(value).toString('hex')

describe('kryo5 codec: values where a class is declared', () => {
  const plain = { city: 'Oslo' }
  const typed = new Address('Oslo')
  const same: [slot: string, given: unknown, meant: unknown][] = [
    ['a field', { home: plain }, { home: typed }],
    ['a list', { list: [plain, plain] }, { list: [typed, typed] }],
    ['a list with null', { list: [null, plain] }, { list: [null, typed] }],
    [
      'a list with a subclass',
      { list: [plain, { '@class': 'a.Office', city: 'Oslo', floor: 1 }] },
      { list: [typed, java.of('a.Office', { city: 'Oslo', floor: 1 })] },
    ],
    ['a set', { set: new Set([plain]) }, { set: new Set([typed]) }],
    ['the values of an object', { map: { home: plain } }, { map: { home: typed } }],
    ['the values of a Map', { map: new Map([['home', plain]]) }, { map: new Map([['home', typed]]) }],
    ['an array', { array: [plain, null] }, { array: [typed, null] }],
    ['an Optional', { optional: plain }, { optional: typed }],
    ['a list in a list of a wildcard', { bounded: [[plain]] }, { bounded: [[typed]] }],
    ['keys of an enum with bodies', { keys: { SENT: 1 } }, { keys: new Map([[java.enumValue('a.Status', 1), 1]]) }],
    ['a list of decimals', { prices: ['1.10'] }, { prices: [java.bigDecimal('1.10')] }],
    ['a list of sorted maps', { trees: [{ a: 1 }] }, { trees: [java.of('java.util.TreeMap', { a: 1 })] }],
  ]
  for (const [slot, given, meant] of same) {
    it(`are written as that class: ${slot}`, () => {
      const bytes = hex(order(given as Record<string, unknown>))
      expect(bytes).to.equal(hex(order(meant as Record<string, unknown>)))
      expect(Buffer.from(bytes, 'hex').toString('latin1')).not.to.include('LinkedHashMa\xf0\x02\x03\x82city')
    })
  }

  it('are written as that class in a record, whose type arguments Kryo does not use', () => {
    const record = (list: unknown[], longs: unknown[]) => hex({ '@class': 'a.Envelope', list, longs })
    expect(record([plain], [1])).to.equal(record([typed], [java.long(1)]))
  })

  it('come back', () => {
    const decoded = codec.decode(codec.encode(order({ list: [plain], map: { home: plain }, optional: plain })))
    expect(decoded).to.deep.include({ list: [typed], map: { home: typed }, optional: typed })
    expect((decoded.list as unknown[])[0]).to.be.instanceOf(Address)
  })

  const refused: [what: string, fields: Record<string, unknown>, path: string, message: RegExp][] = [
    ['an instance of another class in a field', { home: new Line('x') }, '$.home', /expected a.Address, got a.Line/],
    ['an instance of another class in a final field', { last: new Line('x') }, '$.last', /expected a.Last, got a.Line/],
    [
      'an instance of another class in a list',
      { list: [new Line('x')] },
      '$.list[0]',
      /expected a.Address, got a.Line/,
    ],
    ['a text in a list', { list: [plain, 'x'] }, '$.list[1]', /expected an object of a.Address/],
    ['a number in a Map', { map: { home: 1 } }, '$.map.home', /expected an object of a.Address/],
    ['a list in an array', { array: [[plain]] }, '$.array[0]', /expected an object of a.Address/],
    ['a UUID in a list', { list: [java.uuid('x')] }, '$.list[0]', /expected a.Address, got java.util.UUID/],
    ['an instance in a list of decimals', { prices: [typed] }, '$.prices[0]', /got a.Address/],
    ['a field of another class', { list: [{ sku: 'x' }] }, '$.list[0].sku', /declared without such a field/],
    ['a name that is no constant', { keys: { LOST: 1 } }, '$.keys.LOST', /constant of a.Status/],
  ]
  for (const [what, fields, path, message] of refused) {
    it(`refuses ${what}`, () => {
      expect(() => codec.encode(order(fields)))
        .to.throw(EncodeError, message)
        .with.property('path', path)
    })
  }
})

describe('kryo5 codec: classes of the JDK', () => {
  const java17 = javaCodecs.kryo5({ classes: { P$Color: { enum: ['RED', 'GREEN', 'BLUE'] } }, exact: true })
  const color = (ordinal: number, name: string) => java.enumValue('P$Color', ordinal, name)
  const atomic = 'java.util.concurrent.atomic.Atomic'
  // from Kryo5Codec of Redisson 3.52.0
  const written: [bytes: string, type: string, value: unknown][] = [
    ['01006a6176612e74696d652e506572696fe4010203', 'java.time.Period', 'P1Y2M3D'],
    ['01006a6176612e74696d652e506572696fe4ffffffff0f00d8ffffff0f', 'java.time.Period', 'P-1Y-40D'],
    ['01006a6176612e74696d652e506572696fe4000000', 'java.time.Period', 'P0D'],
    ['01006a6176612e74696d652e596561f2ea0f', 'java.time.Year', '2026'],
    ['01006a6176612e74696d652e596561f2fbffffff0f', 'java.time.Year', '-5'],
    [
      '01006a6176612e7574696c2e636f6e63757272656e742e61746f6d69632e41746f6d6963496e74656765f2f9ffffff',
      `${atomic}Integer`,
      -7,
    ],
    [
      '01006a6176612e7574696c2e636f6e63757272656e742e61746f6d69632e41746f6d69634c6f6ee70000000000010000',
      `${atomic}Long`,
      1n << 40n,
    ],
    [
      '01006a6176612e7574696c2e636f6e63757272656e742e61746f6d69632e41746f6d6963426f6f6c6561ee01',
      `${atomic}Boolean`,
      true,
    ],
    ['01006a6176612e7574696c2e4c6f63616ce564e544c581', 'java.util.Locale', 'de_DE'],
    [
      '01006a6176612e7574696c2e4269745365f40202000000000000004000000000000000',
      'java.util.BitSet',
      (1n << 1n) | (1n << 70n),
    ],
    ['01006a6176612e7574696c2e4269745365f400', 'java.util.BitSet', 0n],
    ['01006a6176612e7574696c2e4c6f63616ce5818181', 'java.util.Locale', ''],
    ['01006a6176612e7574696c2e4c6f63616ce564e544c5504f5349d8', 'java.util.Locale', 'de_DE_POSIX'],
    [
      '01006a6176612e7574696c2e526567756c6172456e756d5365f401015024436f6c6ff2020103',
      'java.util.RegularEnumSet',
      new Set([color(0, 'RED'), color(2, 'BLUE')]),
    ],
  ]
  for (const [bytes, type, value] of written) {
    it(`reads and writes ${type} ${String(value)}`, () => {
      expect(java17.decode(Buffer.from(bytes, 'hex'))).to.deep.equal(java.of(type, value))
      expect(java17.encode(java.of(type, value)).toString('hex')).to.equal(bytes)
    })
  }

  it('writes a duration of every form that Java prints', () => {
    const bytes = '01006a6176612e74696d652e4475726174696feee8eaffffffffffff00'
    for (const text of ['PT-1H-30M', '-PT1H30M', 'PT-90M', 'PT-5400S', 'P-1DT22H30M'])
      expect(codec.encode(java.of('java.time.Duration', text) as never).toString('hex'), text).to.equal(bytes)
    for (const text of ['P', 'PT', 'P1DT', '90M', 'PTS'])
      expect(() => codec.encode(java.of('java.time.Duration', text) as never), text).to.throw(EncodeError)
  })

  it('reads the names of constants where the enum is declared', () => {
    const fields = {
      list: 'List<P$Color>',
      map: 'Map<P$Color, Integer>',
      set: 'EnumSet<P$Color>',
      any: 'Object',
    }
    const each = javaCodecs.kryo5<Record<string, unknown>>({
      classes: { P$Color: { enum: ['RED', 'GREEN'] }, T: { fields } },
    })
    const value = {
      '@class': 'T',
      list: ['RED', null],
      map: { GREEN: 1 },
      set: new Set(['GREEN']),
      any: [color(0, 'RED')],
    }
    expect(each.decode(each.encode(value))).to.deep.equal(value)
  })

  it('names the path of an unreadable value, and the possible mistake in the declaration', () => {
    const good = codec.encode({ '@class': 'a.Order', list: [{ city: 'Oslo' }] })
    const without = javaCodecs.kryo5({ classes: { ...classes, 'a.Address': { fields: {} } } })
    expect(() => without.decode(good)).to.throw(/is not registered\..*final: false.*, at \$\.map$/)
    const cut = good.subarray(0, good.indexOf(Buffer.from('Oslo', 'latin1').subarray(0, 3)) + 2)
    expect(() => codec.decode(cut)).to.throw(/they end after .*, at \$\.list\[0\]\.city$/)
  })
})
