import { javaCodecs } from '../../src/java/index.js'
import { expect } from 'chai'
import { Insertions } from '../../src/codecs/insertions.js'
import { type Codec } from '../../src/codecs/index.js'
import { DecodeError } from '../../src/errors.js'
import { randomFrom } from '../support/random.js'

const COUNT = 24_000
const list = javaCodecs.kryo5()

/** What V8 makes of an integer in a `Set`, without a seed: so that anybody can choose numbers that fall into one bucket. */
function hash(value: number): number {
  let h = value >>> 0
  h = (~h + (h << 15)) >>> 0
  h = (h ^ (h >>> 12)) >>> 0
  h = (h + (h << 2)) >>> 0
  h = (h ^ (h >>> 4)) >>> 0
  h = Math.imul(h, 2057) >>> 0
  return (h ^ (h >>> 16)) >>> 0
}

function collidingIntegers(count: number): number[] {
  const found: number[] = []
  for (let i = 1; found.length < count; i++) if ((hash(i) & 0x1fff) === 0) found.push(i)
  return found
}

/** V8 hashes the lowest 64 bits. */
const collidingBigints = (count: number) => Array.from({ length: count }, (_, i) => (BigInt(i + 1) << 64n) | 5n)

/** Milliseconds of CPU. */
function timeOf(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** Whether the numbers are as bad as their makers above believe: other versions of V8 may hash in another way. */
function collide(keys: readonly unknown[]): boolean {
  const some = keys.slice(0, 5000)
  return timeOf(() => new Set(some)) > 10 * timeOf(() => new Set(some.map((_, i) => i)))
}

const lastMarked = (name: string) => {
  const bytes = Buffer.from(name)
  bytes[bytes.length - 1]! |= 0x80
  return bytes
}

/** A list with the name of a set: made without filling one. */
function kryoSet(items: readonly unknown[]): Buffer {
  const bytes = list.encode(items)
  const name = lastMarked('java.util.ArrayList')
  const at = bytes.indexOf(name)
  return Buffer.concat([bytes.subarray(0, at), lastMarked('java.util.HashSet'), bytes.subarray(at + name.length)])
}

function kryoMap(keys: readonly unknown[]): Buffer {
  const length: number[] = []
  for (let rest = keys.length + 1; ; rest >>>= 7) {
    if (rest < 128) {
      length.push(rest)
      break
    }
    length.push((rest & 0x7f) | 0x80)
  }
  const one = list.encode(1)
  const head = [Buffer.of(1, 0), lastMarked('java.util.HashMap'), Buffer.from(length)]
  return Buffer.concat([...head, ...keys.flatMap((key) => [list.encode(key), one])])
}

const jsonSet = (items: readonly unknown[]) => `["java.util.HashSet",[${items.join(',')}]]`

describe('numbers chosen to collide', () => {
  let integers: number[]
  let collides = true
  before(() => {
    integers = collidingIntegers(COUNT)
    collides = collide(integers)
  })

  const jackson = javaCodecs.jsonJackson()
  const sets = () =>
    `["java.util.ArrayList",[${Array.from({ length: 60 }, () => jsonSet(integers.slice(0, 2500))).join(',')}]]`
  const ways: readonly [what: string, codec: Codec, bytes: () => Buffer][] = [
    ['a set of kryo5', list, () => kryoSet(integers)],
    ['a map of kryo5', list, () => kryoMap(integers)],
    ['a set with texts between', list, () => kryoSet(integers.flatMap((key, i) => ((i >> 10) % 2 ? [key] : [key, `t${i}`])))], // prettier-ignore
    ['a set of jsonJackson', jackson, () => Buffer.from(jsonSet(integers))],
    ['many sets of jsonJackson', jackson, () => Buffer.from(sets())],
  ]
  for (const [what, codec, bytes] of ways) {
    it(`are refused before they cost a second: ${what}`, function () {
      if (!collides) return this.skip()
      const message = bytes()
      let thrown: unknown
      const took = timeOf(() => {
        try {
          codec.decode(message)
        } catch (error) {
          thrown = error
        }
      })
      // many small sets are few enough for a fast machine: then nothing is refused, and it costs little all the same
      if (thrown !== undefined || !what.startsWith('many'))
        expect(thrown).to.be.instanceOf(DecodeError).with.property('message').that.includes('a set or map of numbers that collide') // prettier-ignore
      expect(took, 'ms of CPU').to.be.below(900)
    }).timeout(60_000)
  }

  it('are refused when they are bigints', function () {
    const bigints = collidingBigints(COUNT)
    if (!collide(bigints)) return this.skip()
    const codec = javaCodecs.typedJsonJackson({ type: 'Set<BigInteger>' })
    const bytes = Buffer.from(`[${bigints.join(',')}]`)
    expect(() => codec.decode(bytes)).to.throw(DecodeError, 'numbers that collide')
  }).timeout(60_000)

  it('are read when they are few', () => {
    const few = integers.slice(0, 1024)
    expect(list.decode(kryoSet(few))).to.deep.equal(new Set(few))
  })
})

describe('honest sets and maps', () => {
  const SIZE = 200_000
  const random = randomFrom(28)
  const kinds: Readonly<Record<string, (i: number) => unknown>> = {
    'random integers': () => Math.floor(random() * 2 ** 32) - 2 ** 31,
    'integers in order': (i) => i,
    doubles: () => random() * 1e12,
    bigints: () => BigInt(Math.floor(random() * 2 ** 53)) << 10n,
    texts: () => random().toString(36),
    objects: (i) => ({ i }),
  }
  for (const [what, make] of Object.entries(kinds)) {
    it(`are filled, in order: ${SIZE} ${what}`, () => {
      const items = Array.from({ length: SIZE }, (_, i) => make(i))
      const insertions = new Insertions()
      const set = new Set<unknown>()
      const map = new Map<unknown, unknown>()
      insertions.fillSet('codec', set, items)
      insertions.fillMap('codec', map, items, items)
      expect(set.size).to.equal(new Set(items).size)
      expect(map.size).to.equal(set.size)
      expect([...set].slice(0, 5000).every((item, i) => item === items[i])).to.equal(true)
      expect(map.get(items[SIZE - 1])).to.equal(items[SIZE - 1])
    }).timeout(60_000)
  }
})
