import { composite } from './composite.js'
import { lz4, lz4V2, snappyV2, zstd } from './compression/compression.js'
import { cborJackson, jsonJackson, msgpackJackson, typedJsonJackson } from './jackson/codecs.js'
import { kryo5 } from './kryo/kryo5.js'
import { byteArray, double, integer, long } from './scalars.js'

/** The codecs of Redisson, for the bytes that Java services read and write. */
export const javaCodecs = Object.freeze({
  long,
  integer,
  double,
  byteArray,
  jsonJackson,
  typedJsonJackson,
  msgpackJackson,
  cborJackson,
  composite,
  kryo5,
  lz4,
  lz4V2,
  zstd,
  snappyV2,
})
