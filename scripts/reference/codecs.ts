// The table of what each codec keeps, made by encoding and decoding a value of each kind: it is in docs/codecs.md between two comments.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { codecs } from '../../src/codecs/index.js'
import type { Codec } from '../../src/codecs/codec.js'
import { EncodeError } from '../../src/errors.js'
import { javaCodecs } from '../../src/java/codecs.js'
import { root } from '../ensure-installed.mjs'
import type { Page } from './source.js'

const [BEGIN, END] = ['<!-- table by scripts/reference/codecs.ts -->', '<!-- end of the table -->']

class Money {
  constructor(readonly cents: number) {}
}
class Dated {
  toJSON() {
    return { at: 'text' }
  }
}
class Box extends Array<number> {}
const cycle: Record<string, unknown> = {}
cycle['self'] = cycle

/** Each as the property of an object: so are most payloads. */
const VALUES: readonly (readonly [what: string, value: unknown])[] = [
  ['`null`', null],
  ['`undefined`', undefined],
  ['`true`, `false`', true],
  ['text', 'Zoë 🙂'],
  ['text with half of a surrogate pair', 'a\ud800'],
  ['whole number of 32 bits', 17],
  ['whole number up to 2^53 - 1', 2 ** 40],
  ['whole number beyond 2^53', 2 ** 60],
  ['number with a fraction', 1.5],
  ['`NaN`, `Infinity`', Number.NaN],
  ['`-0`', -0],
  ['bigint of 64 bits, beyond 2^53', 2n ** 60n],
  ['bigint of 64 bits, a small one', 5n],
  ['bigint of more than 64 bits', 2n ** 100n],
  ['`Date`', new Date(1_700_000_000_123)],
  ['invalid `Date`', new Date(Number.NaN)],
  ['`Buffer`', Buffer.of(1, 2, 255)],
  ['`Uint8Array`', Uint8Array.of(1, 2, 255)],
  ['`Float64Array`', Float64Array.of(1.5)],
  ['array', [1, 'a', null]],
  ['array with `undefined` or a hole', [1, undefined]],
  ['object', { a: { b: 1 } }],
  ['`Map` with texts as keys', new Map([['a', 1]])],
  ['`Map` with other keys', new Map([[1, 'a']])],
  ['`Set`', new Set([1, 2])],
  ['instance of a class', new Money(5)],
  ['instance of a class with `toJSON`', new Dated()],
  ['subclass of `Array`', Box.of(1, 2)],
  ['function, symbol', () => 1],
  ['`RegExp`, `Promise`, `WeakMap`', /a/],
  ['`Error`', new Error('text')],
  ['an object that contains itself', cycle],
]

const TABLES: readonly (readonly [title: string, columns: Readonly<Record<string, Codec>>])[] = [
  ['', { '`codecs.msgpack()`': codecs.msgpack(), '`codecs.json()`': codecs.json() }],
  [
    'The codecs of `redelayed/java`, without options:',
    {
      '`kryo5()`': javaCodecs.kryo5(),
      '`jsonJackson()`': javaCodecs.jsonJackson(),
      '`typedJsonJackson()`': javaCodecs.typedJsonJackson(),
      '`msgpackJackson()`': javaCodecs.msgpackJackson(),
      '`cborJackson()`': javaCodecs.cborJackson(),
    },
  ],
]

export function codecsPage(): Page {
  const page = readFileSync(join(root, 'docs/codecs.md'), 'utf8')
  const [before = '', rest] = page.split(BEGIN)
  const [, after] = rest?.split(END) ?? []
  if (after === undefined) return { text: page, count: 0, problems: [`docs/codecs.md: no "${BEGIN}" and "${END}"`] }
  const lines = TABLES.flatMap(([title, columns]) => [
    ...(title === '' ? [] : [title, '']),
    `| in an object | ${Object.keys(columns).join(' | ')} |`,
    `|---|${'---|'.repeat(Object.keys(columns).length)}`,
    ...VALUES.map(
      ([what, value]) =>
        `| ${what} | ${Object.values(columns)
          .map((codec) => outcome(codec, value))
          .join(' | ')} |`,
    ),
    '',
  ])
  return { text: `${before}${BEGIN}\n\n${lines.join('\n')}${END}${after}`, count: VALUES.length, problems: [] }
}

/** What comes out of what goes in. */
function outcome(codec: Codec, value: unknown): string {
  let decoded: unknown
  try {
    decoded = codec.decode(codec.encode({ value }))
  } catch (error) {
    if (error instanceof EncodeError) return '**refused**'
    throw error
  }
  const result = (decoded as { value?: unknown }).value
  if (!Object.hasOwn(decoded as object, 'value')) return 'left out'
  return isDeepStrictEqual(result, value) ? 'kept' : nameOf(result)
}

function nameOf(value: unknown): string {
  if (value === null) return '`null`'
  if (Object.is(value, 0)) return '`0`'
  if (Array.isArray(value)) return value.includes(null) ? 'array with `null`' : 'array'
  if (typeof value === 'object') {
    const { name } = value.constructor
    return name === 'Object' ? 'plain object' : `\`${name}\``
  }
  if (typeof value === 'string') return Number.isNaN(Date.parse(value)) ? 'text' : 'ISO text'
  return typeof value
}
