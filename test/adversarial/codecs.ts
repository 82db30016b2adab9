import { javaCodecs } from '../../src/java/index.js'
import * as zlib from 'node:zlib'
import { codecs, type Codec } from '../../src/codecs/index.js'

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
  long: javaCodecs.long(),
  integer: javaCodecs.integer(),
  double: javaCodecs.double(),
  jsonJackson: javaCodecs.jsonJackson(jackson),
  'jsonJackson, exact': javaCodecs.jsonJackson({ ...jackson, exact: true }),
  typedJsonJackson: javaCodecs.typedJsonJackson(),
  'typedJsonJackson of a set': javaCodecs.typedJsonJackson({ type: 'Set<Object>' }),
  msgpackJackson: javaCodecs.msgpackJackson(jackson),
  cborJackson: javaCodecs.cborJackson(jackson),
  'cborJackson, exact': javaCodecs.cborJackson({ ...jackson, exact: true }),
  kryo5: javaCodecs.kryo5({ classes }),
  'kryo5, references': javaCodecs.kryo5({ classes, references: true }),
  'kryo5, exact': javaCodecs.kryo5({ classes, exact: true }),
  composite: javaCodecs.composite({ value: codecs.json() }),
  'lz4 of kryo5': javaCodecs.lz4(javaCodecs.kryo5({ classes })),
  'lz4V2 of json': javaCodecs.lz4V2(codecs.json()),
  'snappyV2 of cborJackson': javaCodecs.snappyV2(javaCodecs.cborJackson()),
  'lz4 of lz4 of msgpack': javaCodecs.lz4(javaCodecs.lz4(codecs.msgpack())),
  ...('zstdCompressSync' in zlib ? { 'zstd of jsonJackson': javaCodecs.zstd(javaCodecs.jsonJackson()) } : {}),
}

/** Puts bytes into the formats that compress, so that what is inside reaches the inner decoder. */
export const wrapping: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  'lz4 of kryo5': (bytes) => javaCodecs.lz4(codecs.bytes()).encode(bytes),
  'lz4V2 of json': (bytes) => javaCodecs.lz4(codecs.bytes()).encode(bytes),
  'snappyV2 of cborJackson': (bytes) => javaCodecs.snappyV2(codecs.bytes()).encode(bytes),
  'lz4 of lz4 of msgpack': (bytes) => javaCodecs.lz4(javaCodecs.lz4(codecs.bytes())).encode(bytes),
  'zstd of jsonJackson': (bytes) => javaCodecs.zstd(codecs.bytes()).encode(bytes),
}
