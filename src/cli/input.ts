import { codecs, type Codec } from '../index.js'
import type { javaCodecs } from '../java/index.js'
import { quoted } from '../text.js'
import { millisOfText } from '../duration.js'
import { UsageError } from './failure.js'

/** The options of a command as cac passes them. */
export type RawOptions = Readonly<Record<string, unknown>>

export const DEFAULT_URL = 'redis://127.0.0.1:6379'

export interface GlobalOptions {
  readonly url: string
  readonly cluster: boolean
  readonly json: boolean
}

export function globalOptions(options: RawOptions): GlobalOptions {
  return {
    url: textOption(options, 'url') ?? (process.env['REDIS_URL'] || DEFAULT_URL),
    cluster: options['cluster'] === true,
    json: options['json'] === true,
  }
}

export function textOption(options: RawOptions, name: string): string | undefined {
  const value = options[name]
  if (value === undefined) return undefined
  if (Array.isArray(value)) throw new UsageError(`--${name}: given more than once`)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Parses `1500`, `500ms`, `1.5s`, `2m`, `1h` or `1d` into milliseconds. */
export function parseDelay(text: string, what = 'delay'): number {
  const millis = millisOfText(/[a-z]$/.test(text) ? text : `${text}ms`)
  if (Number.isSafeInteger(millis)) return millis
  throw new UsageError(
    `${what}: expected whole milliseconds such as 1500, 500ms, 5s, 2m, 1h or 1d, got ${quoted(text)}`,
  )
}

export function parseLimit(text: string | undefined, otherwise: number, max: number): number {
  return text === undefined ? otherwise : parseWhole('--limit', text, max)
}

export function parseWhole(what: string, text: string, max: number, least = 1): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : NaN
  if (number >= least && number <= max) return number
  throw new UsageError(`${what}: expected a whole number from ${least} to ${max}, got ${quoted(text)}`)
}

/** Parses `--count` and `--id`, of which only one can be given. */
export function parseWhich(options: RawOptions): {
  readonly count: number
  readonly ids: readonly string[] | undefined
} {
  const given = options['id']
  const ids = given === undefined ? undefined : [...new Set((Array.isArray(given) ? given : [given]).map(String))]
  const count = textOption(options, 'count')
  if (ids !== undefined && count !== undefined) throw new UsageError('--count: not together with --id')
  if (ids?.includes('') === true) throw new UsageError('--id: expected a non-empty string')
  return { ids, count: count === undefined ? Infinity : parseWhole('--count', count, 999_999_999) }
}

const OWN_CODECS = ['msgpack', 'json', 'string'] as const

/** The codecs of `redelayed/java` that need no options; the compressing ones contain Kryo. */
const JAVA_CODECS = [
  'jsonJackson',
  'typedJsonJackson',
  'msgpackJackson',
  'cborJackson',
  'kryo5',
  'lz4',
  'lz4V2',
  'zstd',
  'snappyV2',
  'long',
  'integer',
  'double',
  'byteArray',
] as const satisfies readonly (keyof typeof javaCodecs)[]

export const CODEC_NAMES = [...OWN_CODECS, ...JAVA_CODECS] as const

export type CodecName = (typeof CODEC_NAMES)[number]

export function parseCodec(options: RawOptions): CodecName {
  return oneOf('--codec', textOption(options, 'codec') ?? 'msgpack', CODEC_NAMES)
}

/** Makes a codec; those of Java are loaded on first use. */
export async function codecOf(name: CodecName): Promise<Codec> {
  const own = OWN_CODECS.find((known) => known === name)
  if (own !== undefined) return codecs[own]()
  const java = (await import('../java/index.js')).javaCodecs
  return java[name as (typeof JAVA_CODECS)[number]]()
}

export function parseLayout(options: RawOptions): 'redisson' | 'compact' | 'wheel' {
  return oneOf('--layout', textOption(options, 'layout') ?? 'redisson', ['redisson', 'compact', 'wheel'])
}

/** The value to offer: plain text for the codec `string`, JSON text for the others. */
export function parseValue(text: string, codec: CodecName): unknown {
  if (codec === 'string') return text
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`value: expected JSON, such as '{"id":1}' or '"text"', got ${describe(text)}`)
  }
}

export function oneOf<T extends string>(what: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((candidate) => candidate === text)
  if (found !== undefined) return found
  throw new UsageError(`${what}: expected ${allowed.join(', ')}, got ${quoted(text)}`)
}

/** The error does not quote the value, which would put payload into the log of the calling program. */
function describe(text: string): string {
  return `text of ${text.length} characters that is not JSON`
}
