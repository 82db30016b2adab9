import { javaCodecs } from '../../src/java/index.js'
import { expect } from 'chai'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { fileURLToPath } from 'node:url'
import { codecs } from '../../src/codecs/index.js'
import { MAX_ELEMENTS } from '../../src/codecs/budget.js'
import { EncodeError } from '../../src/errors.js'
import { bombs, kryoList, largest } from './bombs.js'
import { allCodecs, wrapping } from './codecs.js'

const HEAP_MIB = 256

interface Outcome {
  readonly what: string
  readonly outcome: string
  readonly grown: number
}

describe('object bombs', () => {
  it(`are refused by a process of ${HEAP_MIB} MiB, which reads the largest messages`, async () => {
    const script = fileURLToPath(new URL('fixtures/object-bombs-process.ts', import.meta.url))
    const args = [`--max-old-space-size=${HEAP_MIB}`, '--expose-gc', '--import=tsx', script]
    const { stdout, error } = await promisify(execFile)(process.execPath, args, { timeout: 120_000 }).then(
      ({ stdout }) => ({ stdout, error: undefined }),
      (error: Error & { stdout: string }) => ({ stdout: error.stdout, error }),
    )
    const outcomes = stdout
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Outcome)
    const last = outcomes.at(-1)?.what ?? 'none'
    expect(error, `the last one was ${last}`).to.equal(undefined)
    expect(outcomes.map(({ what, outcome }) => `${what}: ${outcome}`)).to.deep.equal([
      ...bombs.map(({ what }) => `${what}: refused`),
      ...largest.map(({ what }) => `${what}: read`),
    ])
    for (const { what, grown } of outcomes) expect(grown, what).to.be.below(HEAP_MIB)
  }).timeout(150_000)

  it('are small: 16 MiB of nulls are 66 KB of lz4', () => {
    const message = wrapping['lz4 of kryo5']!(kryoList('00', 16 * 1024 * 1024 - 64))
    expect(message.length).to.be.below(70_000)
    expect(() => allCodecs['lz4 of kryo5']!.decode(message)).to.throw(/more than 1000000 elements/)
  })

  it('draw from one budget, however many compressions are around them', () => {
    const bytes = Buffer.alloc(15 * 1024 * 1024)
    const once = javaCodecs.lz4(codecs.bytes())
    const five = javaCodecs.lz4(javaCodecs.lz4(javaCodecs.lz4(javaCodecs.lz4(once))))
    expect(once.decode(once.encode(bytes))).to.have.length(bytes.length)
    expect(five.decode(five.encode(bytes))).to.have.length(bytes.length)
    const large = javaCodecs.lz4(codecs.bytes(), { maxBytes: 80 * 1024 * 1024 })
    expect(large.decode(large.encode(Buffer.alloc(70 * 1024 * 1024)))).to.have.length(70 * 1024 * 1024)
  })

  it('leave a full budget to the next message', () => {
    const codec = javaCodecs.kryo5()
    for (let i = 0; i < 5; i++) {
      expect(() => codec.decode(kryoList('00', MAX_ELEMENTS + 1))).to.throw(/more than 1000000 elements/)
      expect(codec.decode(kryoList('00', MAX_ELEMENTS - 1))).to.have.length(MAX_ELEMENTS - 1)
    }
  })

  it('are not written: a value with more elements than a reader accepts is refused with its path', () => {
    const longs = Array<number>(400_000).fill(3_000_000_000)
    const items = Array<number>(MAX_ELEMENTS + 1).fill(1)
    for (const name of [
      'msgpack',
      'json',
      'jsonJackson',
      'typedJsonJackson',
      'msgpackJackson',
      'cborJackson',
      'kryo5',
    ]) {
      const codec = allCodecs[name]!
      expect(() => codec.encode({ items }), name)
        .to.throw(EncodeError, /more than 1000000 elements/)
        .with.property('path', '$.items')
      const fits = items.slice(0, 300_000)
      expect(codec.decode(codec.encode({ fits })), name).to.deep.equal({ fits })
    }
    // each Long has its class beside it on the wire
    for (const name of ['jsonJackson', 'cborJackson', 'msgpackJackson']) {
      expect(() => allCodecs[name]!.encode(longs), name).to.throw(EncodeError, /more than 1000000 elements/)
    }
  }).timeout(60_000)
})
