import { javaCodecs } from '../../src/java/index.js'
import { expect } from 'chai'
import { codecs } from '../../src/codecs/index.js'
import { DecodeError } from '../../src/errors.js'
import { randomFrom } from '../support/random.js'
import { kryoList, kryoListOf } from './bombs.js'
import { allCodecs, wrapping } from './codecs.js'
import { leastCpuMs } from '../support/cpu.js'
import { rounds as longForm } from '../support/long-form.js'

const MIB = 1024 * 1024
const LIMIT_MS = 200

const fill = (text: string, size = MIB) => Buffer.alloc(size, text)
const list = (item: string) =>
  Buffer.from(
    `[${fill(`${item},`)
      .toString()
      .slice(0, -1)
      .replace(/,[^,]*$/, '')}]`,
  )
const kryoName = (name: string) => {
  const bytes = Buffer.from(name)
  bytes[bytes.length - 1]! |= 0x80
  return Buffer.concat([Buffer.of(1, 0), bytes, Buffer.of(2, 0)])
}

/** 1 MiB of each, for every decoder; most are meant for one of them. */
const inputs: Readonly<Record<string, () => Buffer>> = {
  spaces: () => fill(' '),
  zeros: () => Buffer.alloc(MIB),
  'bytes of 255': () => Buffer.alloc(MIB, 0xff),
  noise: () => Buffer.from(Array.from({ length: MIB }, randomByte(1))),
  'open brackets': () => fill('['),
  'open braces': () => fill('{"a":'),
  'an unfinished text': () => Buffer.concat([Buffer.from('"'), fill('\\')]),
  'a long number': () => fill('1'),
  'numbers beyond 2^53': () => list('9007199254740993'),
  'decimals in pairs': () => list('["java.math.BigDecimal",1.10]'),
  'an array class of many dimensions': () => Buffer.from(`["${'['.repeat(MIB)}I",[1]]`),
  'array classes of many dimensions': () => list(`["${'['.repeat(190)}I",[1]]`),
  'class names that are nearly maps': () => list(`["java.util.${'Map'.repeat(60)}!",1]`),
  'class names that are nearly lists': () => list(`["java.util.${'List'.repeat(45)}!",1]`),
  'class names of deep packages': () => list(`["${'a.'.repeat(240)}",1]`),
  'a long @class': () => Buffer.from(`{"@class":"${'a.'.repeat(MIB / 2)}B"}`),
  'type arguments without end': () => Buffer.from(`["java.util.EnumMap${'<'.repeat(MIB)}",{}]`),
  'base64 that ends wrongly': () => Buffer.from(`["[B","${'A'.repeat(MIB)}!"]`),
  'keys that differ': () => Buffer.from(`{${Array.from({ length: 90_000 }, (_, i) => `"k${i}":1`).join(',')}}`),
  'keys that are numbers': () =>
    Buffer.from(`{${Array.from({ length: 90_000 }, (_, i) => `"${i * 7919}":1`).join(',')}}`),
  'keys called __proto__': () => Buffer.from(`{${fill('"__proto__":{"a":1},').toString().slice(0, MIB - 2).replace(/,[^,]*$/, '')}}`), // prettier-ignore
  'Kryo: an array class of many dimensions': () => kryoName(`${'['.repeat(MIB)}I`),
  'Kryo: an array in the words of the source': () => kryoName(`[Lint${'[]'.repeat(MIB / 2)};`),
  'Kryo: a class with a long name': () => kryoName(`V$Color${'$1'.repeat(MIB / 2)}`),
  'Kryo: lists in lists': () => kryoListOf('java.util.ArrayList', '02', 500_000),
  'Kryo: nulls': () => kryoList('00', MIB - 40),
  'Kryo: sets': () => kryoListOf('java.util.HashSet', '01', MIB - 60),
  'Kryo: long numbers': () => kryoListOf('java.math.BigInteger', `8120${'7f'.repeat(4096)}`, 250),
  'Kryo: long decimals': () => kryoListOf('java.math.BigDecimal', `8120${'7f'.repeat(4096)}02`, 250),
  'MessagePack: maps in arrays': () => Buffer.concat([Buffer.from('dd000fffff', 'hex'), Buffer.alloc(MIB, 0x80)]),
  'MessagePack: nested arrays': () => Buffer.alloc(MIB, 0x91),
  'MessagePack: arrays as keys': () => Buffer.concat([Buffer.from('df0001ffff', 'hex'), Buffer.alloc(MIB, Buffer.from('9301020300', 'hex'))]), // prettier-ignore
  'CBOR: nested tags': () => Buffer.alloc(MIB, 0xc2),
  'CBOR: text in parts': () => Buffer.concat([Buffer.of(0x7f), Buffer.alloc(MIB, Buffer.from('6161', 'hex')), Buffer.of(0xff)]), // prettier-ignore
  'CBOR: decimals': () => Buffer.concat([Buffer.of(0x9f), Buffer.alloc(MIB, Buffer.from('c4821a7fffffff01', 'hex')), Buffer.of(0xff)]), // prettier-ignore
}

function randomByte(seed: number): () => number {
  const random = randomFrom(seed)
  return () => Math.floor(random() * 256)
}

/** Asserts that the thrown value is a `DecodeError`. */
function decode(name: string, bytes: Buffer): unknown {
  try {
    return allCodecs[name]!.decode(bytes)
  } catch (error) {
    if (error instanceof DecodeError) return error
    throw error
  }
}

describe('every decoder', () => {
  for (const [what, make] of Object.entries(inputs)) {
    it(`is done at once with 1 MiB of ${what}`, async () => {
      const bytes = make()
      const forms: [name: string, bytes: Buffer][] = Object.keys(allCodecs).flatMap((name) => {
        const wrap = wrapping[name]
        return wrap === undefined ? [[name, bytes]] : [[name, bytes], [name, wrap(bytes)]] // prettier-ignore
      })
      for (const [name, form] of forms) {
        const least = await leastCpuMs(LIMIT_MS, () => decode(name, form))
        expect(least, `${name}, ms of CPU`).to.be.below(LIMIT_MS)
      }
    }).timeout(60_000)
  }
})

/** Bytes that every codec wrote, as seeds of the mutations. */
const samples: readonly (readonly [name: string, bytes: Buffer])[] = Object.entries(allCodecs).flatMap(
  ([name, codec]) => {
    const values: unknown[] = [
      { id: 1, list: [1, 'two', null, true, { deep: [[]] }], text: 'é'.repeat(30), big: 2 ** 40, part: 1.5 },
      { raw: Buffer.alloc(20, 7), at: new Date(0), set: new Set([1, 2]), map: new Map([['k', 1]]) },
      ['text', 'text', { '@class': 'V$Point', x: 1, name: 'n', tags: ['a'] }],
      ...['short', 5, 2n ** 40n, 1.5, Buffer.of(1, 2, 3)],
    ]
    return values.flatMap((value): [string, Buffer][] => {
      try {
        return [[name, codec.encode(value)]]
      } catch {
        return [] // not for this codec
      }
    })
  },
)

const HOSTILE = [0x00, 0x01, 0x7f, 0x80, 0x81, 0x9f, 0xbf, 0xc1, 0xdd, 0xdf, 0xff, 0x5b, 0x7b, 0x22, 0x5c]

function mutate(bytes: Buffer, random: () => number): Buffer {
  const at = (length: number) => Math.floor(random() * length)
  let changed = Buffer.from(bytes)
  for (let changes = 1 + at(4); changes > 0 && changed.length > 0; changes--) {
    const from = at(changed.length)
    switch (at(5)) {
      case 0:
        changed[from] = at(256)
        break
      case 1:
        changed[from] = HOSTILE[at(HOSTILE.length)]!
        break
      case 2:
        changed[from]! ^= 1 << at(8)
        break
      case 3:
        changed = Buffer.concat([changed.subarray(0, from), changed.subarray(from + 1 + at(4))])
        break
      default: {
        const [, other] = samples[at(samples.length)]!
        const piece = other.subarray(at(other.length), at(other.length) + 1 + at(16))
        changed = Buffer.concat([changed.subarray(0, from), piece, changed.subarray(from)])
      }
    }
  }
  return changed
}

describe('mutations of what every codec writes', () => {
  const seed = Number(process.env.REDELAYED_FUZZ_SEED ?? Date.now() % 1_000_000)
  const rounds = Number(process.env.REDELAYED_FUZZ_ROUNDS ?? longForm(40_000))

  it(`end in a value or a DecodeError, soon and in little memory: ${rounds} rounds of seed ${seed}`, async () => {
    const random = randomFrom(seed)
    const heap = process.memoryUsage().heapUsed
    let read = 0
    let most = 0
    for (let round = 0; round < rounds; round++) {
      const [name, bytes] = samples[Math.floor(random() * samples.length)]!
      const plain = mutate(bytes, random)
      const message = random() < 0.3 ? (wrapping[name]?.(plain) ?? plain) : plain
      const where = `seed ${seed}, round ${round}, ${name}, ${message.toString('hex')}`
      const least = await leastCpuMs(LIMIT_MS, () => {
        const result = decode(name, message)
        if (result instanceof DecodeError) expect(result.message.length, where).to.be.below(1000)
        else read++
      })
      expect(least, where).to.be.below(LIMIT_MS)
      if (round % 1000 === 0) most = Math.max(most, process.memoryUsage().heapUsed - heap)
    }
    expect(read).to.be.greaterThan(rounds / 100)
    expect(most).to.be.below(256 * MIB)
    expect(({} as Record<string, unknown>).polluted).to.equal(undefined)
  }).timeout(10_000 + rounds)

  it('compose: a wrapper around a decoder changes neither its result nor its refusal', () => {
    const inner = codecs.msgpack()
    const outer = javaCodecs.lz4(javaCodecs.composite({ value: inner }))
    const [, bytes] = samples.find(([name]) => name === 'msgpack')!
    expect(outer.decode(wrapping['lz4 of kryo5']!(bytes))).to.deep.equal(inner.decode(bytes))
  })
})
