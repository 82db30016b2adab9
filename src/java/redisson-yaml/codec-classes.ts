import { codecs } from '../../codecs/index.js'
import { javaCodecs } from '../codecs.js'
import type { Codec } from '../../codecs/codec.js'
import { UnsupportedOperationError } from '../../errors.js'
import type { Section } from './section.js'

/** The codecs that need no options. The wrappers compress Kryo 5, as Redisson's do by default. */
const BY_CLASS: Readonly<Record<string, () => Codec>> = {
  'org.redisson.client.codec.StringCodec': () => codecs.string(),
  'org.redisson.client.codec.LongCodec': () => javaCodecs.long(),
  'org.redisson.client.codec.IntegerCodec': () => javaCodecs.integer(),
  'org.redisson.client.codec.DoubleCodec': () => javaCodecs.double(),
  'org.redisson.client.codec.ByteArrayCodec': () => javaCodecs.byteArray(),
  'org.redisson.codec.JsonJacksonCodec': () => javaCodecs.jsonJackson(),
  'org.redisson.codec.MsgPackJacksonCodec': () => javaCodecs.msgpackJackson(),
  'org.redisson.codec.CborJacksonCodec': () => javaCodecs.cborJackson(),
  'org.redisson.codec.Kryo5Codec': () => javaCodecs.kryo5(),
  'org.redisson.codec.LZ4Codec': () => javaCodecs.lz4(javaCodecs.kryo5()),
  'org.redisson.codec.LZ4CodecV2': () => javaCodecs.lz4V2(javaCodecs.kryo5()),
  'org.redisson.codec.ZStdCodec': () => javaCodecs.zstd(javaCodecs.kryo5()),
  'org.redisson.codec.SnappyCodecV2': () => javaCodecs.snappyV2(javaCodecs.kryo5()),
}

/** Redisson's own default since 3.19. */
const DEFAULT = 'org.redisson.codec.Kryo5Codec'

/** The codec that the file names: one given in code, else a built-in one. */
export function codecFor(config: Section, given: Readonly<Record<string, Codec>>): Codec {
  const { javaClass, settings } = config.object('codec') ?? { javaClass: DEFAULT, settings: undefined }
  if (Object.hasOwn(given, javaClass) && given[javaClass] !== undefined) return given[javaClass]
  const make = Object.hasOwn(BY_CLASS, javaClass) ? BY_CLASS[javaClass] : undefined
  if (make !== undefined && (settings?.rest.length ?? 0) === 0) return make()
  const known = Object.keys(BY_CLASS).join(', ')
  throw new UnsupportedOperationError(
    `${config.at('codec')}: ${javaClass} is not one of those that need no settings (${known}); give it in code: { codecs: { ${JSON.stringify(javaClass)}: … } }`,
  )
}
