import { javaCodecs, type CompressionOptions } from '../../src/java/index.js'
import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import zlib from 'node:zlib'
import fc from 'fast-check'
import { codecs } from '../../src/codecs/index.js'
import type { Codec } from '../../src/codecs/index.js'
import { DecodeError, EncodeError, InvalidArgumentError, UnsupportedOperationError } from '../../src/errors.js'
import { onlyDecodeErrors } from './fixtures/decoding.js'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
const zstdIsThere = 'zstdCompressSync' in zlib

type Wrapper = (inner?: Codec, options?: CompressionOptions) => Codec
const wrappers: Record<string, Wrapper> = {
  lz4: javaCodecs.lz4,
  lz4V2: javaCodecs.lz4V2,
  snappyV2: javaCodecs.snappyV2,
}
if (zstdIsThere) wrappers.zstd = javaCodecs.zstd

const vectors = readFileSync(new URL('fixtures/compression.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => {
    const [label = '', codec = '', bytes = ''] = line.split(' | ')
    const [name = '', inner] = codec.split('-')
    return { label, name, inner: inner === 'string' ? codecs.string() : javaCodecs.kryo5(), bytes: hex(bytes) }
  })

/** Text that repeats itself in places, as messages do. */
const text = fc
  .array(
    fc.oneof(fc.string({ unit: 'grapheme', maxLength: 40 }), fc.constantFrom('order ', 'a'.repeat(99), '{"id":')),
    {
      maxLength: 200,
    },
  )
  .map((parts) => parts.join(''))

describe('compression codecs', () => {
  it('name the codec within and are frozen', () => {
    expect(javaCodecs.lz4().name).to.equal('lz4(kryo5)')
    expect(javaCodecs.snappyV2(codecs.json()).name).to.equal('snappyV2(json)')
    expect(Object.isFrozen(javaCodecs.lz4V2())).to.equal(true)
  })

  for (const [name, wrapper] of Object.entries(wrappers)) {
    describe(name, () => {
      const own = vectors.filter((vector) => vector.name === name)

      it('reads what Java wrote', () => {
        expect(own.length).to.be.greaterThan(5)
        const values: Record<string, unknown> = {}
        for (const { label, inner, bytes } of own) {
          const codec = wrapper(inner)
          values[label] = codec.decode(bytes)
          expect(codec.decode(codec.encode(values[label])), label).to.deep.equal(values[label])
        }
        expect(values).to.include({ short: 'a', run: 'z'.repeat(2000), string: 'plain text, plain text, plain text' })
        expect(values.map).to.deep.equal({ id: 1, text: 'hello hello hello hello hello', list: [1, 2, 3] })
      })

      it('makes messages that repeat themselves small', () => {
        const value = { lines: Array.from({ length: 100 }, (_, i) => `order ${i} of customer 7`) }
        expect(wrapper().encode(value).length).to.be.below(javaCodecs.kryo5().encode(value).length / 2)
        expect(wrapper().encode('z'.repeat(100_000)).length).to.be.below(6_000)
      })

      it('gives back every text', () => {
        const codec = wrapper(codecs.string())
        fc.assert(
          fc.property(text, (value) => {
            fc.pre(!/\p{Surrogate}/u.test(value))
            expect(codec.decode(codec.encode(value))).to.equal(value)
          }),
          { numRuns: 500 },
        )
        const noise = Buffer.from(
          Array.from({ length: 200_000 }, (_, i) => (Math.imul(i * i + 7, 0x9e37_79b1) >>> 13) & 0xff),
        )
        const bytes = wrapper(codecs.bytes())
        for (const value of [noise, Buffer.concat([noise, noise]), Buffer.alloc(300_000, 'abcdefg')]) {
          expect(bytes.decode(bytes.encode(value))).to.deep.equal(value)
        }
      }).timeout(20_000)

      it('refuses every truncation', () => {
        for (const { label, inner, bytes } of own) {
          const codec = wrapper(inner)
          for (let length = 0; length < bytes.length; length += Math.ceil(bytes.length / 200)) {
            const what = `${label}, ${length} bytes`
            let value: unknown
            try {
              value = codec.decode(bytes.subarray(0, length))
            } catch (error) {
              expect(error, what).to.be.instanceOf(DecodeError)
              continue
            }
            // Node 22 takes a Zstandard frame of which only the end is missing: then everything is there
            expect(name, what).to.equal('zstd')
            expect(value, what).to.deep.equal(codec.decode(bytes))
          }
        }
      })

      it('refuses bombs before it allocates', () => {
        const limited = wrapper(codecs.bytes(), { maxBytes: 1000 })
        const bomb = wrapper(codecs.bytes()).encode(Buffer.alloc(10_000_000))
        expect(() => limited.decode(bomb)).to.throw(DecodeError, /decompress to 10000000 bytes, maxBytes is 1000/)
        expect(() => limited.encode(Buffer.alloc(1001))).to.throw(EncodeError, /1001 bytes before compression/)
        expect(limited.decode(limited.encode(Buffer.alloc(1000)))).to.deep.equal(Buffer.alloc(1000))
        const before = process.memoryUsage().arrayBuffers
        for (let i = 0; i < 200; i++) {
          for (const length of ['00ffffff', '7fffffff', 'ffffffff', '00100000', 'ffffff07 ', '80808004']) {
            expect(() => wrapper().decode(hex(`${length} 00`))).to.throw(DecodeError)
          }
        }
        expect(process.memoryUsage().arrayBuffers - before).to.be.below(50_000_000)
      })

      it('never fails in another way than with a DecodeError', () => {
        onlyDecodeErrors(wrapper(), fc.constantFrom(...own.map(({ bytes }) => bytes)), { numRuns: 2000, atLeast: -1 })
      }).timeout(20_000)
    })
  }

  it('reads copies of every kind that other compressors write', () => {
    const snappy = javaCodecs.snappyV2(codecs.string())
    // a literal, then copies with offsets in 1 and 4 bytes; a literal with a long length, then an offset in 2 bytes
    expect(snappy.decode(hex('0c 0c 61626364 01 04 0f 04000000'))).to.equal('abcdabcdabcd')
    expect(snappy.decode(hex('08 f003 61626364 0e 0400'))).to.equal('abcdabcd')
    expect(() => snappy.decode(hex('08 0c 61626364 0e 0500'))).to.throw(DecodeError, /damaged/)
    expect(() => snappy.decode(hex('08 0c 61626364 0e 0000'))).to.throw(DecodeError, /damaged/)
    const lz4 = javaCodecs.lz4(codecs.string())
    expect(() => lz4.decode(hex('00000008 40 61626364 0500 00'))).to.throw(DecodeError, /damaged/)
    expect(() => lz4.decode(hex('00000009 40 61626364 0400 00'))).to.throw(DecodeError, /damaged/)
  })

  it('takes another implementation of Zstandard, or names the missing one', () => {
    // one raw block in a frame with its length in a byte: any Zstandard reads it
    const raw = {
      compress: (bytes: Buffer) =>
        Buffer.concat([
          hex('28b52ffd 20'),
          Buffer.of(bytes.length, (bytes.length << 3) | 1, bytes.length >> 5, 0),
          bytes,
        ]),
      decompress: (bytes: Buffer) => bytes.subarray(9),
    }
    const codec = javaCodecs.zstd(codecs.string(), { implementation: raw })
    expect(codec.decode(codec.encode('hello'))).to.equal('hello')
    if (zstdIsThere) expect(javaCodecs.zstd(codecs.string()).decode(codec.encode('hello'))).to.equal('hello')
    else
      expect(() => javaCodecs.zstd()).to.throw(UnsupportedOperationError, /has no Zstandard: use Node 22.15 or later/)
  })

  it('refuses options that it does not understand', () => {
    for (const wrapper of Object.values(wrappers)) {
      expect(() => wrapper({} as Codec)).to.throw(InvalidArgumentError, /inner codec/)
      expect(() => wrapper(codecs.json(), { maxBytes: 0 })).to.throw(InvalidArgumentError, /maxBytes/)
      expect(() => wrapper(codecs.json(), { maxbytes: 5 } as CompressionOptions)).to.throw(InvalidArgumentError)
    }
  })
})
