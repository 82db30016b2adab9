import { bytes } from './bytes.js'
import { composite } from './composite.js'
import { lz4, lz4V2, snappyV2, zstd } from './compression/compression.js'
import { cborJackson, jsonJackson, msgpackJackson, typedJsonJackson } from './jackson/codecs.js'
import { json } from './json.js'
import { kryo5 } from './kryo/kryo5.js'
import { msgpack } from './msgpack.js'
import { byteArray, double, integer, long } from './scalars.js'
import { string } from './string.js'

export type { Codec } from './codec.js'
export type { CompositeParts } from './composite.js'
export type { FieldType } from './jackson/field-types.js'
export type { CompressionOptions, ZstdOptions } from './compression/compression.js'
export type { ZstdImplementation } from './compression/zstd.js'
export type { JacksonOptions, JavaClass, TypedJacksonOptions } from './jackson/plan.js'
export { java, JavaEnum, JavaValue } from './kryo/java-values.js'
export type { Kryo5Options } from './kryo/kryo5.js'
export type { ClassDeclaration } from './kryo/registry.js'

/** The codecs that come with the package; `msgpack` is the default. */
export const codecs = Object.freeze({
  msgpack,
  json,
  string,
  bytes,
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
