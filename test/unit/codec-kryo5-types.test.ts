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
