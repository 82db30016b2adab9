import { javaCodecs } from '../../src/java/index.js'
import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { DecodeError } from '../../src/errors.js'
import { allowedClasses, classes } from './fixtures/kryo5-classes.js'
import { encodable } from './fixtures/kryo5-values.js'
import { cpuMsSince } from '../support/cpu.js'
import { isLongForm } from '../support/long-form.js'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
const readers = [
  javaCodecs.kryo5({ classes }),
  javaCodecs.kryo5({ classes, references: true }),
  javaCodecs.kryo5({ classes, references: true, exact: true }),
  javaCodecs.kryo5({ classes, allowedClasses }),
]
const codec = readers[0]!

/** The bytes of Java, for each way of writing. */
const samples = ['kryo5.txt', 'kryo5-more.txt']
  .flatMap((file) => readFileSync(new URL(`fixtures/${file}`, import.meta.url), 'utf8').split('\n'))
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => {
    const parts = line.split(' | ')
    const variant = parts.length === 3 ? parts[1]! : 'names'
    return { variant, label: `${parts[0]} (${variant})`, bytes: hex(parts.at(-1)!) }
  })

const name = (text: string) => {
  const bytes = Buffer.from(text)
  bytes[bytes.length - 1]! |= 0x80
  return Buffer.concat([hex('01 00'), bytes])
}
const of = (className: string, text: string) => Buffer.concat([name(className), hex(text)])

/** Neither a hang nor an error of another kind. */
function readAll(bytes: Buffer): number {
  let read = 0
  for (const reader of readers) {
    try {
      reader.decode(Buffer.from(bytes))
      read++
    } catch (error) {
      expect(error).to.be.instanceOf(DecodeError)
    }
  }
  return read
}

describe('kryo5 codec with bytes that are not a value', () => {
  it('refuses every truncation of what Java wrote', () => {
    const reader = { names: readers[0]!, references: readers[1]!, allowed: readers[3]! } as Record<string, typeof codec>
    for (const { variant, label, bytes } of samples) {
      const step = Math.ceil(bytes.length / 100)
      for (let length = 0; length < bytes.length; length += step) {
        const cut = bytes.subarray(0, length)
        expect(() => (reader[variant] ?? readers[1]!).decode(cut), `${label}, ${length} bytes`).to.throw(DecodeError)
      }
    }
  })

  it('refuses bytes behind the value, and none at all', () => {
    expect(() => codec.decode(hex('0202 00'))).to.throw(DecodeError, /1 bytes follow the value/)
    expect(() => codec.decode(Buffer.alloc(0))).to.throw(DecodeError)
    expect(() => codec.decode(hex('00'))).to.throw(DecodeError, /null/)
  })

  const bad: [what: string, bytes: Buffer, message: RegExp][] = [
    ['an unknown class', of('com.example.Order', '00'), /class com.example.Order is neither built in nor declared/],
    ['a class number', hex('0c 00'), /class number 10 is not registered/],
    ['a name that was not given', hex('01 05'), /class name 5 at 2 was not given before/],
    ['a comparator', of('java.util.TreeSet', '82 03'), /comparator/],
    ['an unknown constant', of('V$Color', '07'), /enum V\$Color has no constant 6/],
    ['a negative length', of('[I', 'ffffffff0f'), /negative/],
    ['an impossible date', of('java.util.Date', 'ffffffffffffffff7f'), /out of the range of Date/],
    ['an impossible day', of('java.time.LocalDate', 'ea0f 02 1e'), /out of range/],
    ['an impossible time', of('java.time.LocalTime', '18 05 06 07'), /out of range/],
    ['a lone continuation byte', hex('03 84 80 80 80'), /starts no character/],
    ['a broken sequence', hex('03 84 e2 28 a1 61 61'), /continues no character/],
    ['an enormous number', of('java.math.BigInteger', 'ffff03'), /the limit is 4096/],
    ['a Throwable', of('java.lang.RuntimeException', 'aced0005'), /neither built in nor declared/],
    ['an array in too many dimensions', of(`${'['.repeat(40)}I`, '02 02'), /neither built in nor declared/],
  ]
  for (const [what, bytes, message] of bad) {
    it(`refuses ${what}`, () => {
      expect(() => codec.decode(bytes)).to.throw(DecodeError, message)
    })
  }

  it('refuses references that lead nowhere', () => {
    const references = readers[1]!
    for (const text of ['03 02', '03 05', '03 ffffffff0f', '03 00']) {
      expect(() => references.decode(hex(text)), text).to.throw(DecodeError)
    }
    // a list of one element that is an object of its own, unfinished
    expect(() => references.decode(of('java.util.Collections$SingletonList', '01 01 00 02'))).to.throw(DecodeError)
  })

  it('refuses lengths beyond the bytes before anything is built', () => {
    const lengths = ['ffffffff07', '808080807f', '80808040', 'ffff7f', 'feffffff0f']
    const flagged = ['ffffffff0f', 'c0ffffff07', 'ff8080800f', 'bfffff7f']
    const bombs = [
      ...lengths.flatMap((length) =>
        ['[I', '[J', '[B', '[Z', '[Ljava.lang.Object;', '[[I', 'java.util.HashMap', 'java.util.TreeMap'].map((type) =>
          of(type, length),
        ),
      ),
      ...flagged.flatMap((length) => [
        hex(`03 ${length} 61`),
        of('java.util.ArrayList', `${length} 00`),
        of('java.util.HashSet', `${length} 03 00`),
        // elements that take no bytes
        of('java.util.ArrayList', `${length} 01 01 ${name('V$Empty').subarray(2).toString('hex')} 00`),
      ]),
    ]
    const before = process.memoryUsage()
    const started = process.cpuUsage()
    for (let i = 0; i < 50; i++) {
      for (const bomb of bombs) expect(() => codec.decode(bomb), bomb.toString('hex')).to.throw(DecodeError)
    }
    const after = process.memoryUsage()
    expect(after.external + after.arrayBuffers - before.external - before.arrayBuffers).to.be.below(50_000_000)
    expect(cpuMsSince(started)).to.be.below(3_000)
  }).timeout(10_000)

  it('refuses lists of nothing that multiply', () => {
    // 4000 lists of 4000 nulls each, in a few bytes for each list
    const inner = 'df3e 00'
    const outer = of('java.util.ArrayList', `df3e 01 00 00 ${inner.repeat(4000)}`)
    expect(() => codec.decode(outer)).to.throw(DecodeError, /exceeds the bytes that follow/)
    expect(codec.decode(of('java.util.ArrayList', 'e51f 00'))).to.have.length.greaterThan(1000)
  })

  it('refuses deep nesting at once', () => {
    const started = process.cpuUsage()
    for (const open of ['02 01 00', '82 01 00 00']) {
      const deep = Buffer.concat([name('java.util.ArrayList'), hex(open.repeat(100_000))])
      expect(() => codec.decode(deep)).to.throw(DecodeError, /nest deeper than 128/)
    }
    const optional = Buffer.concat([name('java.util.Optional'), hex('01 00'.repeat(100_000))])
    expect(() => codec.decode(optional)).to.throw(DecodeError, /nest deeper/)
    expect(cpuMsSince(started)).to.be.below(2_000)
  })

  it('never fails in another way than with a DecodeError', () => {
    const random = fc.uint8Array({ maxLength: 200 })
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 })
    const change = (bytes: Buffer, some: [number, number][]) => {
      const changed = Buffer.from(bytes)
      for (const [at, byte] of some) changed[at % changed.length] = byte
      return changed
    }
    const own = fc.tuple(encodable, changes).map(([value, some]) => change(codec.encode(value), some))
    const java = fc.tuple(fc.constantFrom(...samples), changes).map(([{ bytes }, some]) => change(bytes, some))
    let read = 0
    fc.assert(
      fc.property(fc.oneof(random, own, java), (bytes) => {
        read += readAll(Buffer.from(bytes))
      }),
      { numRuns: 2000 },
    )
    expect(read).to.be.greaterThan(100)
  }).timeout(30_000)

  it(`changes ${isLongForm ? 'every byte' : 'every fourth byte'} of what Java wrote, one at a time`, () => {
    const step = isLongForm ? 1 : 4
    for (const [sample, { bytes }] of samples.entries()) {
      if (bytes.length > 60) continue
      for (let at = sample % step; at < bytes.length; at += step) {
        for (const flip of [0x01, 0x80]) {
          const changed = Buffer.from(bytes)
          changed[at]! ^= flip
          readAll(changed)
        }
      }
    }
  }).timeout(30_000)

  it('sets no prototype', () => {
    const polluting = samples.find((sample) => sample.label.startsWith('map proto'))!
    const value = codec.decode(polluting.bytes) as Record<string, unknown>
    expect(Object.getPrototypeOf(value)).to.equal(Object.prototype)
    expect(Object.keys(value)).to.deep.equal(['__proto__', 'constructor'])
    expect(value.polluted).to.equal(undefined)
    expect(({} as Record<string, unknown>).polluted).to.equal(undefined)
    expect(codec.encode(value).toString('hex')).to.equal(polluting.bytes.toString('hex'))
  })
})
