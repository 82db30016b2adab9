/** Every codec that both sides have, with every kind of value it has, in both directions. */
import { java as lib, javaCodecs } from '../../src/java/index.js'
import assert from 'node:assert/strict'
import { expect } from 'chai'
import { randomBytes } from 'node:crypto'
import { codecs, type Codec } from '../../src/codecs/index.js'
import { makeClient } from '../integration/fixtures.js'
import { uniqueName } from '../support/redis.js'
import { isBefore, type Build } from './support/builds.js'
import type { JavaCodec } from './support/jvm.js'
import { cell } from './support/results.js'
import type { Side } from './support/side.js'
import { java as j, normalised, type Typed } from './support/values.js'

/** One kind of value. `decoded` and `seen` say what comes out where that differs from what the other side would put in. */
export interface Kind {
  readonly kind: string
  /** What Java puts in; without it, only Node does. */
  readonly java?: Typed
  /** What Node puts in; without it, only Java does. */
  readonly node?: unknown
  /** What Node gets of `java`; by default `node`. */
  readonly decoded?: unknown
  /** What Java gets of `node`; by default `java`. */
  readonly seen?: Typed
  /** Whether both encode to the same bytes, which `remove` and `contains` compare. Default true where both put in. */
  readonly sameBytes?: boolean
}

export interface CodecUnderTest {
  readonly row: string
  readonly java: JavaCodec
  /** The first Redisson that has it. */
  readonly since?: string
  readonly node: (build: Build) => Codec
  readonly kinds: readonly Kind[] | ((build: Build) => readonly Kind[])
}

const MEGABYTE = 1024 * 1024

const texts: Kind[] = Object.entries({
  'empty text': '',
  'one letter': 'a',
  text: 'hello',
  'text of 32 letters': 'abcdefghijklmnopqrstuvwxyz012345',
  'text of 33 letters': 'abcdefghijklmnopqrstuvwxyz0123456',
  'text with quotes and controls': '"\\/\b\f\n\r\t\u0001\u007f',
  'text beyond ASCII': 'grüße, 你好, 🐝🏽, \u2028, \ufeff',
  'text of 1 MB': 'ü'.repeat(MEGABYTE / 2),
}).map(([kind, text]) => ({ kind, java: j.string(text), node: text }))

const scalarCodecs: CodecUnderTest[] = [
  { row: 'string', java: { name: 'String' }, node: () => codecs.string(), kinds: texts },
  {
    row: 'byteArray',
    java: { name: 'ByteArray' },
    node: () => javaCodecs.byteArray(),
    kinds: ['', '00', '80ff00c328', '08'.repeat(17)].map((hex) => ({
      kind: `bytes ${hex}`,
      java: j.bytes(Buffer.from(hex, 'hex')),
      node: Buffer.from(hex, 'hex'),
    })),
  },
  {
    row: 'long',
    java: { name: 'Long' },
    node: () => javaCodecs.long(),
    kinds: [0, -1, 3_000_000_000, Number.MAX_SAFE_INTEGER, 2n ** 63n - 1n, -(2n ** 63n)].map((value) => ({
      kind: String(value),
      java: j.long(value),
      node: value,
    })),
  },
  {
    row: 'integer',
    java: { name: 'Integer' },
    node: () => javaCodecs.integer(),
    kinds: [0, -1, 2 ** 31 - 1, -(2 ** 31)].map((value) => ({
      kind: String(value),
      java: j.integer(value),
      node: value,
    })),
  },
  {
    row: 'double',
    java: { name: 'Double' },
    node: () => javaCodecs.double(),
    kinds: [
      ...Object.entries({ '0.0': 0, '-0.0': -0, '1.5': 1.5, '100.0': 100, '1.0E21': 1e21, '1.0E-7': 1e-7, '0.1': 0.1 }),
      ...Object.entries({ '1.7976931348623157E308': Number.MAX_VALUE, '4.9E-324': Number.MIN_VALUE }),
      ...Object.entries({ '9999999.9': 9999999.9, '1.0E7': 1e7, '0.001': 0.001, '9.99E-4': 0.000999 }),
      ...Object.entries({ NaN, Infinity, '-Infinity': -Infinity }),
    ].map(([text, value]) => ({ kind: text, java: j.double(text), node: value })),
  },
]

const AT = 1_732_094_086_123
const UUID = '3f2504e0-4f89-11d3-9a0c-0305e82c3301'

const ORDER_FIELDS = {
  ...{ id: 'long', customer: 'Long', text: 'String', quantity: 'int', rating: 'Integer', price: 'double' },
  ...{ paid: 'boolean', created: 'Date', token: 'UUID', total: 'BigDecimal', data: 'byte[]' },
  ...{ first: 'com.example.shop.Item', tags: 'List<String>', extra: 'Map<String, Object>' },
}
const ORDER = 'com.example.shop.Order'
const ITEM = 'com.example.shop.Item'
const ITEM_FIELDS = { sku: 'String', count: 'int' }

const javaFields = {
  ...{ id: j.long(2n ** 53n + 1n), customer: j.long(42), text: j.string('grüße'), quantity: j.integer(3) },
  ...{ rating: j.integer(5), price: j.double('12.5'), paid: j.boolean(true), created: j.date(AT), token: j.uuid(UUID) },
  ...{ total: j.bigDecimal('19.90'), data: j.bytes(Buffer.from([0, 1, 255])), color: j.color('GREEN') },
  first: j.item({ sku: j.string('a-1'), count: j.integer(2) }),
  tags: j.list([j.string('x'), j.string('y')]),
  extra: j.map(
    [
      [j.string('k'), j.integer(1)],
      [j.string('l'), j.string('v')],
    ],
    'LinkedHashMap',
  ),
}
const javaOrder = j.order(javaFields)
const nodeOrder = {
  ...{
    '@class': ORDER,
    id: 2n ** 53n + 1n,
    customer: 42,
    text: 'grüße',
    quantity: 3,
    rating: 5,
    price: 12.5,
    paid: true,
  },
  ...{
    created: new Date(AT),
    token: UUID,
    total: lib.bigDecimal('19.90'),
    data: Buffer.from([0, 1, 255]),
    color: 'GREEN',
  },
  ...{ first: { '@class': ITEM, sku: 'a-1', count: 2 }, tags: ['x', 'y'], extra: { k: 1, l: 'v' } },
}

const numbersAndSuch: Kind[] = [
  ...[0, 5, -1, 63, 64, 2 ** 31 - 1, -(2 ** 31)].map((n) => ({ kind: `Integer ${n}`, java: j.integer(n), node: n })),
  { kind: 'Long 5', java: j.long(5), node: 5n, decoded: 5 },
  { kind: 'Long 3000000000', java: j.long(3_000_000_000), node: 3_000_000_000 },
  { kind: 'Long 2^53+1', java: j.long(2n ** 53n + 1n), node: 2n ** 53n + 1n },
  { kind: 'Long -2^63', java: j.long(-(2n ** 63n)), node: -(2n ** 63n) },
  ...Object.entries({ '1.5': 1.5, '-0.1': -0.1, '1.0E21': 1e21, '1.0E-7': 1e-7 }).map(([text, value]) => ({
    kind: `Double ${text}`,
    java: j.double(text),
    node: value,
  })),
  { kind: 'Double 100.0', java: j.double('100.0'), node: lib.double(100), decoded: 100 },
  { kind: 'true', java: j.boolean(true), node: true },
  { kind: 'false', java: j.boolean(false), node: false },
  { kind: 'Date', java: j.date(AT), node: new Date(AT) },
  { kind: 'Date before 1970', java: j.date(-1), node: new Date(-1) },
  { kind: 'UUID', java: j.uuid(UUID), node: lib.uuid(UUID) },
  { kind: 'BigDecimal', java: j.bigDecimal('-19.90'), node: lib.bigDecimal('-19.90') },
  {
    kind: 'BigInteger',
    java: j.bigInteger('123456789012345678901234567890'),
    node: lib.bigInteger(123456789012345678901234567890n),
  },
]

const abc = [j.string('a'), j.string('b'), j.string('c')]
const mixed = [
  j.string('a'),
  j.integer(1),
  j.double('1.5'),
  j.boolean(true),
  j.nothing,
  j.date(AT),
  j.long(2n ** 53n + 1n),
]
const nodeMixed = ['a', 1, 1.5, true, null, new Date(AT), 2n ** 53n + 1n]

const entriesOf = (values: readonly Typed[]): [Typed, Typed][] => values.map((value, i) => [j.string(`k${i}`), value])
const nullMap = j.map([[j.string('k'), j.nothing]], 'LinkedHashMap')

const collections: Kind[] = [
  { kind: 'ArrayList of text', java: j.list(abc), node: ['a', 'b', 'c'] },
  { kind: 'ArrayList of numbers', java: j.list([j.integer(1), j.integer(2)]), node: [1, 2] },
  { kind: 'empty ArrayList', java: j.list([]), node: [] },
  { kind: 'ArrayList of all sorts', java: j.list(mixed), node: nodeMixed },
  { kind: 'ArrayList in ArrayList', java: j.list([j.list(abc), j.list([])]), node: [['a', 'b', 'c'], []] },
  { kind: 'LinkedList', java: j.list(abc, 'LinkedList'), decoded: ['a', 'b', 'c'] },
  { kind: 'Arrays.asList', java: j.list(abc, 'Arrays$ArrayList'), decoded: ['a', 'b', 'c'] },
  { kind: 'HashSet', java: j.set([j.string('a')], 'HashSet'), decoded: new Set(['a']) },
  { kind: 'LinkedHashSet', java: j.set(abc, 'LinkedHashSet'), decoded: new Set(['a', 'b', 'c']) },
  {
    kind: 'LinkedHashMap',
    java: j.map(entriesOf(mixed.filter(({ t }) => t !== 'null')), 'LinkedHashMap'),
    node: Object.fromEntries(nodeMixed.filter((value) => value !== null).map((value, i) => [`k${i}`, value])),
  },
  { kind: 'empty LinkedHashMap', java: j.map([], 'LinkedHashMap'), node: {} },
  { kind: 'HashMap', java: j.map([[j.string('k'), j.list(abc)]]), decoded: { k: ['a', 'b', 'c'] } },
  { kind: 'TreeMap', java: j.map([[j.string('k'), j.integer(1)]], 'TreeMap'), decoded: { k: 1 } },
  {
    kind: 'map in map in list',
    java: j.list([j.map([[j.string('m'), j.map([[j.string('n'), j.integer(1)]], 'LinkedHashMap')]], 'LinkedHashMap')]),
    node: [{ m: { n: 1 } }],
  },
]

const kryoClasses = {
  [ORDER]: { fields: { ...ORDER_FIELDS, color: 'com.example.shop.Color' } },
  [ITEM]: { fields: ITEM_FIELDS },
  'com.example.shop.Color': { enum: ['RED', 'GREEN', 'BLUE'] },
}

const kryoKinds: Kind[] = [
  ...texts,
  ...numbersAndSuch,
  ...collections,
  { kind: 'byte[]', java: j.bytes(Buffer.from([1, 2, 255])), node: Buffer.from([1, 2, 255]) },
  { kind: 'Float', java: j.float('1.5'), node: lib.float(1.5), decoded: 1.5 },
  { kind: 'Short', java: j.short(-5), node: lib.short(-5), decoded: -5 },
  { kind: 'Byte', java: j.byte(5), node: lib.byte(5), decoded: 5 },
  { kind: 'Character', java: j.character('ü'), node: lib.char('ü'), decoded: 'ü' },
  { kind: 'NaN', java: j.double('NaN'), node: NaN },
  { kind: 'map with a null', java: nullMap, node: { k: null } },
  { kind: 'enum', java: j.color('BLUE'), node: lib.enumValue('com.example.shop.Color', 2, 'BLUE') },
  { kind: 'small object', java: j.item({ sku: j.string('a-1'), count: j.integer(2) }), node: nodeOrder.first },
  { kind: 'Set', java: j.set(abc, 'LinkedHashSet'), node: new Set(['a', 'b', 'c']) },
  { kind: 'object of a class', java: javaOrder, node: nodeOrder, decoded: { ...nodeOrder, total: '19.90' } },
  {
    kind: 'object of a class with nulls',
    java: j.order({ id: j.long(1), quantity: j.integer(0), price: j.double('0.0'), paid: j.boolean(false) }),
    node: {
      '@class': ORDER,
      id: 1,
      customer: null,
      text: null,
      quantity: 0,
      rating: null,
      price: 0,
      paid: false,
      created: null,
      token: null,
      total: null,
      data: null,
      color: null,
      first: null,
      tags: null,
      extra: null,
    },
  },
]

const KRYO: JavaCodec = { name: 'Kryo5' }
const ALLOWED = [
  ...[ORDER, ITEM, 'com.example.shop.Color', 'java.util.ArrayList', 'java.util.LinkedHashMap', 'java.util.Date'],
  ...['java.math.BigDecimal', '[B'],
]

const kryo: CodecUnderTest[] = [
  { row: 'kryo5', java: KRYO, node: () => javaCodecs.kryo5({ classes: kryoClasses }), kinds: kryoKinds },
  {
    row: 'kryo5, references',
    java: { ...KRYO, allowed: [], references: true },
    since: '3.36.0',
    node: () => javaCodecs.kryo5({ classes: kryoClasses, references: true }),
    kinds: kryoKinds,
  },
  {
    row: 'kryo5, allowed classes',
    java: { ...KRYO, allowed: ALLOWED },
    since: '3.36.0',
    // Redisson 3 numbers them in the order in which its Set gives them, Redisson 4 sorts them first
    node: (build) =>
      javaCodecs.kryo5({
        classes: kryoClasses,
        allowedClasses: ALLOWED,
        allowedClassesOrder: isBefore(build, '4.0.0') ? 'given' : 'sorted',
      }),
    kinds: kryoKinds.filter(({ java }) =>
      /^(String|Integer|Long|Double|Boolean|Item|Date|BigDecimal|byte\[\]|Color)$/.test(java!.t),
    ),
  },
]

const jacksonClasses = { [ORDER]: { fields: { ...ORDER_FIELDS, color: 'enum' } }, [ITEM]: { fields: ITEM_FIELDS } }
const bytes = Buffer.from([1, 2, 255])
const scarceOrder = j.order({ id: j.long(1), quantity: j.integer(0), price: j.double('0.0'), paid: j.boolean(false) })

/** MessagePack and CBOR have bytes of their own; JSON says nothing about base64 that is the whole message. */
const jacksonKinds = (format: 'json' | 'msgpack' | 'cbor', build: Build): Kind[] => [
  ...texts,
  ...numbersAndSuch.filter(({ kind }) => kind !== 'UUID'),
  ...uuids(format, build),
  // Jackson leaves nulls out of maps too, and reads them
  { kind: 'map with a null', java: nullMap, decoded: {} },
  { kind: 'map with a null, of Node', node: { k: null }, seen: nullMap },
  ...collections,
  { kind: 'Set', java: j.set([j.string('a')], 'HashSet'), node: new Set(['a']) },
  { kind: 'byte[]', java: j.bytes(bytes), decoded: format === 'json' ? bytes.toString('base64') : bytes },
  { kind: 'Buffer', node: bytes, seen: j.bytes(bytes) },
  { kind: 'Float', java: j.float('1.5'), decoded: 1.5 },
  { kind: 'Short', java: j.short(-5), decoded: -5 },
  { kind: 'Character', java: j.character('ü'), decoded: 'ü' },
  { kind: 'enum', java: j.color('BLUE'), decoded: 'BLUE' },
  { kind: 'Object[]', java: j.array(abc), decoded: ['a', 'b', 'c'] },
  { kind: 'object of a class', java: javaOrder, node: nodeOrder },
  {
    kind: 'object of a class with nulls',
    java: scarceOrder,
    node: { '@class': ORDER, id: 1, customer: null, quantity: 0, price: 0, paid: false, tags: null },
    decoded: { '@class': ORDER, id: 1, quantity: 0, price: 0, paid: false },
  },
]

/** Before Redisson 4 nothing on the wire said that it is one; Java itself then reads a string, or from CBOR 16 bytes. */
function uuids(format: 'json' | 'msgpack' | 'cbor', build: Build): Kind[] {
  const kind = { kind: 'UUID', java: j.uuid(UUID), node: lib.uuid(UUID) }
  if (!isBefore(build, '4.0.0')) return [kind]
  const bare = format === 'cbor' ? Buffer.from(UUID.replaceAll('-', ''), 'hex') : UUID
  return [{ ...kind, decoded: bare, sameBytes: false }]
}

/** Jackson divides long text into chunks, and wrote 16 bytes for the UUID in the order before Redisson 4. */
function asCbor(kind: Kind, build: Build): Kind {
  const differs = kind.kind === 'text of 1 MB' || (kind.java === javaOrder && isBefore(build, '4.0.0'))
  return differs ? { ...kind, sameBytes: false } : kind
}

/** Redisson 4 writes the class of UUID fields. */
const jacksonOptions = (build: Build) => ({
  classes: jacksonClasses,
  uuidFields: isBefore(build, '4.0.0') ? ('bare' as const) : ('wrapped' as const),
})

const plainOrder = { ...nodeOrder, first: { ...nodeOrder.first } } as Partial<typeof nodeOrder>
delete plainOrder['@class']
delete (plainOrder.first as Partial<typeof nodeOrder.first>)['@class']

/** jackson-dataformat-msgpack drops the scale of a BigDecimal, and has no BigInteger of more than 64 bits. */
function asMsgpack(kind: Kind): Kind {
  if (kind.kind === 'BigDecimal') return { kind: kind.kind, java: j.bigDecimal('-19.5'), node: lib.bigDecimal('-19.5') }
  if (kind.kind === 'BigInteger')
    return { kind: kind.kind, java: j.bigInteger(`${2n ** 63n}`), node: lib.bigInteger(2n ** 63n) }
  if (kind.java !== javaOrder) return kind
  const total = lib.bigDecimal('19.5')
  return {
    kind: kind.kind,
    java: { t: 'Order', v: { ...javaFields, total: j.bigDecimal('19.5') } },
    node: { ...nodeOrder, total },
  }
}

const jackson: CodecUnderTest[] = [
  {
    row: 'jsonJackson',
    java: { name: 'JsonJackson' },
    node: (build) => javaCodecs.jsonJackson(jacksonOptions(build)),
    kinds: (build) => jacksonKinds('json', build),
  },
  {
    row: 'typedJsonJackson of a class',
    java: { name: 'TypedJsonJackson', type: 'Order' },
    node: () => javaCodecs.typedJsonJackson({ type: ORDER, classes: jacksonClasses }),
    kinds: [
      { kind: 'object of a class', java: javaOrder, node: plainOrder },
      {
        kind: 'object of a class with nulls',
        java: scarceOrder,
        node: { id: 1, customer: null, quantity: 0, price: 0, paid: false, tags: null },
        decoded: { id: 1, quantity: 0, price: 0, paid: false },
      },
    ],
  },
  {
    row: 'typedJsonJackson of a map',
    java: { name: 'TypedJsonJackson', type: 'LinkedHashMap' },
    node: () => javaCodecs.typedJsonJackson(),
    kinds: [
      { kind: 'empty map', java: j.map([], 'LinkedHashMap'), node: {} },
      {
        kind: 'map of plain values',
        java: j.map(
          [
            [j.string('a'), j.integer(1)],
            [j.string('b'), j.list([j.string('x'), j.nothing, j.boolean(true), j.double('1.5')])],
            [j.string('c'), j.long(2n ** 53n + 1n)],
          ],
          'LinkedHashMap',
        ),
        node: { a: 1, b: ['x', null, true, 1.5], c: 2n ** 53n + 1n },
      },
    ],
  },
  {
    row: 'msgpackJackson',
    java: { name: 'MsgPackJackson' },
    node: (build) => javaCodecs.msgpackJackson(jacksonOptions(build)),
    kinds: (build) => jacksonKinds('msgpack', build).map((kind) => asMsgpack(kind)),
  },
  {
    row: 'cborJackson',
    java: { name: 'CborJackson' },
    node: (build) => javaCodecs.cborJackson(jacksonOptions(build)),
    kinds: (build) => jacksonKinds('cbor', build).map((kind) => asCbor(kind, build)),
  },
]

const STRINGS: JavaCodec = { name: 'String' }

const compressible: Kind[] = [
  ...texts,
  { kind: 'text with repetitions', java: j.string('abcabcab'.repeat(5_000)), node: 'abcabcab'.repeat(5_000) },
  far(),
]

function far(): Kind & { node: string } {
  const part = randomBytes(30_000).toString('base64')
  return { kind: 'text with far repetitions', java: j.string(part + part), node: part + part }
}

const noise = randomBytes(MEGABYTE)
const wrappers = (
  [
    ['lz4', { name: 'LZ4' }, undefined],
    ['lz4V2', { name: 'LZ4CodecV2' }, '3.25.0'],
    ['zstd', { name: 'ZStd' }, '3.39.0'],
    ['snappyV2', { name: 'SnappyCodecV2' }, undefined],
  ] as const
).flatMap(([row, { name }, since]): CodecUnderTest[] => [
  {
    row: `${row} around string`,
    java: { name, inner: STRINGS },
    ...(since !== undefined && { since }),
    node: () => javaCodecs[row](codecs.string()),
    kinds: compressible.map((kind) =>
      // LZ4CodecV2 itself cannot write an empty payload
      row === 'lz4V2' && kind.kind === 'empty text'
        ? { kind: kind.kind, node: kind.node, seen: kind.java! }
        : { ...kind, sameBytes: false },
    ),
  },
  {
    row: `${row} around kryo5`,
    java: { name, inner: KRYO },
    ...(since !== undefined && { since }),
    node: () => javaCodecs[row](javaCodecs.kryo5({ classes: kryoClasses })),
    kinds: [...kryoKinds, { kind: '1 MB of noise', java: j.bytes(noise), node: noise }].map((kind) => ({
      ...kind,
      sameBytes: false,
    })),
  },
])

const ALL: CodecUnderTest[] = [
  ...scalarCodecs,
  ...jackson,
  ...kryo,
  {
    row: 'composite',
    java: { name: 'Composite', inner: STRINGS },
    node: () => javaCodecs.composite({ value: codecs.string() }),
    kinds: texts,
  },
  ...wrappers,
]

/** Defines two tests for each codec. */
export function codecTests(side: Side): void {
  const { build } = side
  for (const { row, java, since, node, kinds: given } of ALL) {
    const kinds = typeof given === 'function' ? given(build) : given
    const absent = since !== undefined && isBefore(build, since) ? `it came with ${since}` : undefined
    if (absent !== undefined) {
      it(`${row}: Redisson indeed has none`, async () => {
        expect(await side.jvm().request('hasCodec', { codec: java })).to.equal(false)
      })
    }
    const options = { absent, timeout: 30_000 }

    cell({ table: 'codecs', row, version: build.version, direction: 'Java → Node' }, options, async () => {
      const name = uniqueName('codec')
      const queue = makeClient().getBlockingQueue(name, { codec: node(build) })
      const javaQueue = side.jvm().queue(name, java)
      return expectAll(kinds, async (it) => {
        if (it.java === undefined) return
        await queue.clear()
        await javaQueue.add(it.java)
        assert.deepStrictEqual(await queue.peek(), 'decoded' in it ? it.decoded : it.node)
      })
    })

    cell({ table: 'codecs', row, version: build.version, direction: 'Node → Java' }, options, async () => {
      const name = uniqueName('codec')
      const codec = node(build)
      const queue = makeClient().getBlockingQueue(name, { codec })
      const javaQueue = side.jvm().queue(name, java)
      const encoded = async (value: Typed): Promise<string> =>
        Buffer.from(await side.jvm().request<string>('encode', { codec: java, value }), 'base64').toString('hex')
      return expectAll(
        kinds,
        async (it) => {
          if (!('node' in it)) return
          await queue.clear()
          await queue.offer(it.node)
          if (it.java !== undefined && it.sameBytes !== false) {
            assert.equal(codec.encode(it.node).toString('hex'), await encoded(it.java), 'the bytes')
          }
          const [got] = await javaQueue.drain()
          assert.deepStrictEqual(normalised(got!), normalised(it.seen ?? it.java!))
        },
        async (it) => {
          const value = it.seen ?? it.java!
          const bytes = Buffer.from(await encoded(value), 'hex').toString('base64')
          const again = await side.jvm().request<Typed>('decode', { codec: java, bytes })
          assert.deepStrictEqual(normalised(again), normalised(value))
        },
      )
    })
  }
}

/**
 * Tries all and names all that failed: one wrong kind should not hide another. What Java cannot read from its own bytes
 * either, which `javaAlone` finds out by throwing, is not held against Node, but said.
 */
async function expectAll(
  kinds: readonly Kind[],
  test: (kind: Kind) => Promise<void>,
  javaAlone: (kind: Kind) => Promise<void> = () => Promise.resolve(),
): Promise<string | undefined> {
  const problems: string[] = []
  const excused: string[] = []
  for (const kind of kinds) {
    try {
      await test(kind)
    } catch (error) {
      const itself = await javaAlone(kind).then(
        () => true,
        () => false,
      )
      if (itself) problems.push(`${kind.kind}: ${(error as Error).message.slice(0, 700)}`)
      else excused.push(kind.kind)
    }
  }
  expect(problems.slice(0, 8).join('\n'), `${problems.length} of ${kinds.length} kinds`).to.equal('')
  return excused.length === 0 ? undefined : `except what Java cannot read itself: ${excused.join(', ')}`
}
