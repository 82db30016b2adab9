import * as zlib from 'node:zlib'
import { codecs, type Codec } from '../../src/codec/index.js'

const classes = {
  V$Point: { fields: { x: 'int', name: 'String', tags: 'List<String>' } },
  V$Color: { enum: ['RED', 'GREEN'] },
  V$Empty: { fields: {} },
}
const fields = { id: 'long', at: 'Date', raw: 'byte[]', grid: 'int[][]', set: 'Set<String>' }
const jackson = { classes: { V$Point: { fields } } }

/** Every codec of the package, with its options where they change what is read. */
export const allCodecs: Readonly<Record<string, Codec>> = {
  msgpack: codecs.msgpack(),
  json: codecs.json(),
  string: codecs.string(),
  bytes: codecs.bytes(),
  long: codecs.long(),
  integer: codecs.integer(),
  double: codecs.double(),
  jsonJackson: codecs.jsonJackson(jackson),
  'jsonJackson, exact': codecs.jsonJackson({ ...jackson, exact: true }),
  typedJsonJackson: codecs.typedJsonJackson(),
  'typedJsonJackson of a set': codecs.typedJsonJackson({ type: 'Set<Object>' }),
  msgpackJackson: codecs.msgpackJackson(jackson),
  cborJackson: codecs.cborJackson(jackson),
  'cborJackson, exact': codecs.cborJackson({ ...jackson, exact: true }),
  kryo5: codecs.kryo5({ classes }),
  'kryo5, references': codecs.kryo5({ classes, references: true }),
  'kryo5, exact': codecs.kryo5({ classes, exact: true }),
  composite: codecs.composite({ value: codecs.json() }),
  'lz4 of kryo5': codecs.lz4(codecs.kryo5({ classes })),
  'lz4V2 of json': codecs.lz4V2(codecs.json()),
  'snappyV2 of cborJackson': codecs.snappyV2(codecs.cborJackson()),
  'lz4 of lz4 of msgpack': codecs.lz4(codecs.lz4(codecs.msgpack())),
  ...('zstdCompressSync' in zlib ? { 'zstd of jsonJackson': codecs.zstd(codecs.jsonJackson()) } : {}),
}

/** Puts bytes into the formats that compress, so that what is inside reaches the inner decoder. */
export const wrapping: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  'lz4 of kryo5': (bytes) => codecs.lz4(codecs.bytes()).encode(bytes),
  'lz4V2 of json': (bytes) => codecs.lz4(codecs.bytes()).encode(bytes),
  'snappyV2 of cborJackson': (bytes) => codecs.snappyV2(codecs.bytes()).encode(bytes),
  'lz4 of lz4 of msgpack': (bytes) => codecs.lz4(codecs.lz4(codecs.bytes())).encode(bytes),
  'zstd of jsonJackson': (bytes) => codecs.zstd(codecs.bytes()).encode(bytes),
}
