/**
 * For fleets with services in Java: Redisson's codecs and its configuration files. Exports for services without Java do
 * not belong here.
 *
 * @packageDocumentation
 */
export { createClientFromRedissonYaml } from './client-from-yaml.js'
export { javaCodecs } from './codecs.js'
export { java, JavaEnum, JavaValue } from './kryo/java-values.js'
export type { CompositeParts } from './composite.js'
export type { CompressionOptions, ZstdOptions } from './compression/compression.js'
export type { ZstdImplementation } from './compression/zstd.js'
export type { FieldType } from './jackson/field-types.js'
export type { JacksonOptions, JavaClass, TypedJacksonOptions } from './jackson/plan.js'
export type { Kryo5Options } from './kryo/kryo5.js'
export type { ClassDeclaration } from './kryo/registry.js'
export type { RedissonYamlOptions } from './redisson-yaml/redisson-yaml.js'
