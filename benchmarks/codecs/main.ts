import { javaCodecs } from '../../dist/java/index.js'
import * as zlib from 'node:zlib'
import { codecs, type Codec } from '../../dist/index.js'
import { atMost, medianOf, rounds, type Row, type Scenario } from '../lib/scenario.js'
import { order } from './order.js'

/** A batch is short, and the fastest of many counts: what interrupts the process makes others slower, never one faster. */
const BATCH = 500
const WARM_UP = 20

const text: Codec = {
  name: 'JSON.stringify and JSON.parse',
  encode: (value) => Buffer.from(JSON.stringify(value)),
  decode: (bytes) => JSON.parse(bytes.toString()) as unknown,
}

/** Node has it from 22.15 on. */
const hasZstd = 'zstdCompressSync' in zlib

const ofOrders: readonly Codec[] = [
  text,
  codecs.json(),
  javaCodecs.jsonJackson(),
  javaCodecs.typedJsonJackson(),
  codecs.msgpack(),
  javaCodecs.msgpackJackson(),
  javaCodecs.cborJackson(),
  javaCodecs.kryo5(),
  named('kryo5, references', javaCodecs.kryo5({ references: true })),
  named('composite of json', javaCodecs.composite({ value: codecs.json() })),
  named('lz4 of json', javaCodecs.lz4(codecs.json())),
  named('lz4V2 of json', javaCodecs.lz4V2(codecs.json())),
  named('snappyV2 of json', javaCodecs.snappyV2(codecs.json())),
  ...(hasZstd ? [named('zstd of json', javaCodecs.zstd(codecs.json()))] : []),
]

interface Subject {
  readonly codec: Codec
  readonly value: unknown
}

const TEXT = JSON.stringify(order)

/** Codecs of single values cannot hold an order: they get its text, its bytes, or a number. */
const subjects: readonly Subject[] = [
  ...ofOrders.map((codec) => ({ codec, value: order })),
  of("string, the order's text", codecs.string(), TEXT),
  of("bytes, the order's text", codecs.bytes(), Buffer.from(TEXT)),
  of("byteArray, the order's text", javaCodecs.byteArray(), Buffer.from(TEXT)),
  of('long, one number', javaCodecs.long(), 1_764_000_000_000),
  of('integer, one number', javaCodecs.integer(), 1_764_000_000),
  of('double, one number', javaCodecs.double(), 1_764.5),
]

function named(name: string, codec: Codec): Codec {
  return { ...codec, name }
}

function of<T>(name: string, codec: Codec<T>, value: T): Subject {
  return { codec: named(name, codec), value }
}

/** Microseconds of one call in the fastest batch. */
function fastest(batches: number, call: () => void): number {
  let best = Infinity
  for (let batch = -WARM_UP; batch < batches; batch++) {
    const started = performance.now()
    for (let i = 0; i < BATCH; i++) call()
    if (batch >= 0) best = Math.min(best, performance.now() - started)
  }
  return (best * 1000) / BATCH
}

function measure({ codec, value }: Subject, batches: number): Promise<Record<string, number>> {
  const bytes = codec.encode(value)
  const encode = fastest(batches, () => void codec.encode(value))
  const decode = fastest(batches, () => void codec.decode(bytes))
  return Promise.resolve({
    bytes: bytes.length,
    'encode/s': 1e6 / encode,
    'decode/s': 1e6 / decode,
    'both, us': encode + decode,
  })
}

function ratio(rows: readonly Row[], subject: string, base: string): number {
  return medianOf(rows, subject, 'both, us') / medianOf(rows, base, 'both, us')
}

export const codecSpeed: Scenario = {
  name: 'codecs',
  promise: 'no queue',
  maxRuns: 3,
  description:
    'Encoding and decoding of an order of about 1 kB, in this process and without Redis. The base is `JSON.stringify` and ' +
    '`JSON.parse` with the conversion to bytes and back that every codec has to do.',
  async run(bench) {
    const batches = bench.quick ? 60 : 300
    const rows = await rounds(
      bench,
      Object.fromEntries(subjects.map((subject) => [subject.codec.name, () => measure(subject, batches)])),
    )
    return {
      notes: hasZstd
        ? []
        : ['zstd needs Node 22.15 or an implementation given in code; see the figure of a newer Node.'],
      rows: rows.map((row) =>
        ofOrders.some(({ name }) => name === row.subject)
          ? { ...row, figures: { ...row.figures, 'times JSON': [ratio(rows, row.subject, text.name)] } }
          : row,
      ),
      goals: [
        atMost('jsonJackson, times JSON', ratio(rows, 'jsonJackson', text.name), 2, 'x'),
        atMost('kryo5, times msgpackr', ratio(rows, 'kryo5', 'msgpack'), 3, 'x'),
      ],
    }
  },
}
