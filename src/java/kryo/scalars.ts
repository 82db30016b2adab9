import { describe } from '../../errors.js'
import { BYTES_OF } from '../../codecs/budget.js'
import { MAX_MAGNITUDE, formatDecimal, fromBytes, parseDecimal, toBytes } from './decimal.js'
import { JavaValue } from './java-values.js'
import type { Input, Output, Serializer } from './serializer.js'

const MIN_INT64 = -(2n ** 63n)
const MAX_INT64 = 2n ** 63n - 1n

/** The serializer of a box and its primitive, which share a class on the wire. */
function box(name: string, id: number, natural: boolean, part: Pick<Serializer, 'write' | 'read'>): Serializer {
  return { name, id, natural, referable: false, ...part }
}

export function integer(out: Output, value: unknown, bits: 8 | 16 | 32): number {
  if (typeof value === 'number' && Number.isInteger(value)) {
    const limit = 2 ** (bits - 1)
    if (value >= -limit && value < limit && !Object.is(value, -0)) return value
  }
  return out.refuse(`expected an integer of ${bits} bits, got ${describe(value)}`)
}

export const INTEGER = box('java.lang.Integer', 0, true, {
  write: (out, value) => out.zigzag(integer(out, value, 32)),
  read: (input) => input.zigzag(),
})

export const STRING: Serializer = {
  name: 'java.lang.String',
  id: 1,
  nullByte: 0x80,
  referable: true,
  natural: true,
  write: (out, value) => {
    if (typeof value !== 'string') return out.refuse(`expected a string, got ${describe(value)}`)
    out.string(value)
  },
  read: (input) => input.string(),
}

export const FLOAT = box('java.lang.Float', 2, false, {
  write: (out, value) => {
    if (typeof value !== 'number') return out.refuse(`expected a number, got ${describe(value)}`)
    if (Number.isFinite(value) && !Number.isFinite(Math.fround(value)))
      return out.refuse(`${value} is too large for a float`)
    out.float(value)
  },
  read: (input) => input.wrap(FLOAT, input.float()),
})

export const BOOLEAN = box('java.lang.Boolean', 3, true, {
  write: (out, value) => {
    if (typeof value !== 'boolean') return out.refuse(`expected a boolean, got ${describe(value)}`)
    out.byte(value ? 1 : 0)
  },
  read: (input) => input.boolean(),
})

export const BYTE = box('java.lang.Byte', 4, false, {
  write: (out, value) => out.byte(integer(out, value, 8)),
  read: (input) => input.wrap(BYTE, input.int8()),
})

export const CHARACTER = box('java.lang.Character', 5, false, {
  write: (out, value) => {
    if (typeof value !== 'string' || value.length !== 1)
      return out.refuse(`expected one UTF-16 unit, got ${describe(value)}`)
    out.int16(value.charCodeAt(0))
  },
  read: (input) => input.wrap(CHARACTER, String.fromCharCode(input.int16() & 0xffff)),
})

export const SHORT = box('java.lang.Short', 6, false, {
  write: (out, value) => out.int16(integer(out, value, 16)),
  read: (input) => input.wrap(SHORT, input.int16()),
})

export function longOf(out: Output, value: unknown): number | bigint {
  if (typeof value === 'bigint' && value >= MIN_INT64 && value <= MAX_INT64) return value
  if (typeof value === 'number' && Number.isSafeInteger(value) && !Object.is(value, -0)) return value
  return out.refuse(`expected a safe integer or a bigint of 64 bits, got ${describe(value)}`)
}

export function asLong(input: Input, value: number | bigint): number | bigint {
  return input.bigints ? BigInt(value) : value
}

export const LONG = box('java.lang.Long', 7, true, {
  write: (out, value) => out.zigzagLong(longOf(out, value)),
  read: (input) => asLong(input, input.zigzagLong()),
})

export const DOUBLE = box('java.lang.Double', 8, false, {
  write: (out, value) => {
    if (typeof value !== 'number') return out.refuse(`expected a number, got ${describe(value)}`)
    out.double(value)
  },
  read: (input) => {
    const value = input.double()
    // an integer would be encoded as one
    return input.exact && Number.isSafeInteger(value) ? input.wrap(DOUBLE, value) : value
  },
})

/** A class written by name. */
function named(name: string, part: Omit<Serializer, 'name' | 'referable' | 'natural'>, natural = false): Serializer {
  return { name, natural, referable: true, ...part }
}

function date(name: string, natural: boolean): Serializer {
  const serializer = named(
    name,
    {
      write: (out, value) => {
        if (!(value instanceof Date) || Number.isNaN(value.getTime())) {
          return out.refuse(`expected a valid Date, got ${describe(value)}`)
        }
        out.varlongOf(value.getTime())
      },
      read: (input) => {
        input.spend(BYTES_OF.date)
        const value = new Date(Number(input.varlong()))
        if (Number.isNaN(value.getTime())) input.fail(`a date at ${input.at} is out of the range of Date`)
        return input.wrap(serializer, value)
      },
    },
    natural,
  )
  return serializer
}

const UUID_TEXT = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i

export const UUID = named('java.util.UUID', {
  write: (out, value) => {
    if (typeof value !== 'string' || !UUID_TEXT.test(value))
      return out.refuse(`expected a UUID, got ${describe(value)}`)
    const hex = value.replaceAll('-', '')
    out.int64(BigInt.asIntN(64, BigInt(`0x${hex.slice(0, 16)}`)))
    out.int64(BigInt.asIntN(64, BigInt(`0x${hex.slice(16)}`)))
  },
  read: (input) => {
    const hex = Buffer.from(input.raw(16))
    hex.subarray(0, 8).reverse()
    hex.subarray(8).reverse()
    const text = hex.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
    return new JavaValue(UUID.name, text)
  },
})

/** The bytes of a number after their length + 1, or undefined for null. */
function magnitude(input: Input): Buffer | undefined {
  const length = input.length() - 1
  if (length < 0) return undefined
  if (length > MAX_MAGNITUDE) input.fail(`a number at ${input.at} has ${length} bytes, the limit is ${MAX_MAGNITUDE}`)
  return input.raw(length)
}

function writeMagnitude(out: Output, value: bigint): void {
  const bytes = toBytes(value)
  if (bytes.length > MAX_MAGNITUDE)
    return out.refuse(`the number has ${bytes.length} bytes, the limit is ${MAX_MAGNITUDE}`)
  out.varint(bytes.length + 1)
  out.raw(bytes)
}

export const BIG_INTEGER = named('java.math.BigInteger', {
  nullByte: 0,
  write: (out, value) => {
    if (typeof value !== 'bigint') return out.refuse(`expected a bigint, got ${describe(value)}`)
    writeMagnitude(out, value)
  },
  read: (input) => {
    const bytes = magnitude(input)
    return bytes === undefined ? null : new JavaValue(BIG_INTEGER.name, fromBytes(bytes))
  },
})

export const BIG_DECIMAL = named('java.math.BigDecimal', {
  nullByte: 0,
  write: (out, value) => {
    const text = typeof value === 'string' && value.length <= 3 * MAX_MAGNITUDE ? value : ''
    const decimal = parseDecimal(text)
    if (decimal === undefined) return out.refuse(`expected the text of a decimal number, got ${describe(value)}`)
    writeMagnitude(out, decimal.unscaled)
    out.zigzag(decimal.scale)
  },
  read: (input) => {
    const bytes = magnitude(input)
    if (bytes === undefined) return null
    return new JavaValue(BIG_DECIMAL.name, formatDecimal({ unscaled: fromBytes(bytes), scale: input.zigzag() }))
  },
})

/** Classes whose value is one text. */
function text(name: string, nullByte?: number): Serializer {
  const serializer = named(name, {
    ...(nullByte === undefined ? {} : { nullByte }),
    write: (out, value) => STRING.write(out, value),
    read: (input) => {
      const value = input.string()
      return value === null ? null : new JavaValue(name, value)
    },
  })
  return serializer
}

/** The counters of `java.util.concurrent.atomic`, which have a fixed length. */
const ATOMIC = 'java.util.concurrent.atomic.Atomic'
const ATOMICS: readonly Serializer[] = [
  named(`${ATOMIC}Integer`, {
    write: (out, value) => out.int32(integer(out, value, 32)),
    read: (input) => new JavaValue(`${ATOMIC}Integer`, input.int32()),
  }),
  named(`${ATOMIC}Long`, {
    write: (out, value) => out.int64(BigInt(longOf(out, value))),
    read: (input) => {
      const value = input.int64()
      const exact = BigInt.asIntN(53, value) === value && !input.bigints
      return new JavaValue(`${ATOMIC}Long`, exact ? Number(value) : value)
    },
  }),
  named(`${ATOMIC}Boolean`, {
    write: (out, value) => BOOLEAN.write(out, value),
    read: (input) => new JavaValue(`${ATOMIC}Boolean`, input.boolean()),
  }),
]

/** The bits as one number: bit 0 is the lowest. */
const BIT_SET = named('java.util.BitSet', {
  write: (out, value) => {
    if (typeof value !== 'bigint' || value < 0n || value >> BigInt(8 * MAX_MAGNITUDE) > 0n)
      return out.refuse(`expected a bigint of ${8 * MAX_MAGNITUDE} bits without a sign, got ${describe(value)}`)
    const words = value === 0n ? 0 : Math.ceil(value.toString(16).length / 16)
    out.varint(words)
    for (let i = 0; i < words; i++) out.int64(BigInt.asIntN(64, value >> BigInt(64 * i)))
  },
  read: (input) => {
    const words = input.length()
    if (words > MAX_MAGNITUDE / 8) input.fail(`a BitSet at ${input.at} has more than ${8 * MAX_MAGNITUDE} bits`)
    const bytes = Buffer.from(input.raw(8 * words)).reverse()
    return new JavaValue(BIT_SET.name, BigInt(`0x0${bytes.toString('hex')}`))
  },
})

/** A locale as its `toString`, e.g. `de_DE`. Kryo writes neither the script nor extensions. */
const LOCALE = named('java.util.Locale', {
  write: (out, value) => {
    const parts = typeof value === 'string' ? /^([a-z]{0,8})(?:_([a-z\d]{0,3})(?:_(\w{1,100}))?)?$/i.exec(value) : null
    if (parts === null) return out.refuse(`expected a locale such as de_DE, got ${describe(value)}`)
    for (const part of parts.slice(1)) out.string(part ?? '')
  },
  read: (input) => {
    const parts = [input.string() ?? '', input.string() ?? '', input.string() ?? '']
    return new JavaValue(LOCALE.name, parts.join('_').replace(/_{1,2}$/, ''))
  },
})

export const SCALARS: readonly Serializer[] = [
  ...[INTEGER, STRING, FLOAT, BOOLEAN, BYTE, CHARACTER, SHORT, LONG, DOUBLE],
  date('java.util.Date', true),
  date('java.sql.Timestamp', false),
  date('java.sql.Date', false),
  date('java.sql.Time', false),
  ...[UUID, BIG_INTEGER, BIG_DECIMAL],
  ...ATOMICS,
  BIT_SET,
  LOCALE,
  text('java.net.URI'),
  text('java.net.URL'),
  text('java.util.Currency', 0x80),
  text('java.lang.StringBuilder', 0x80),
  text('java.lang.StringBuffer', 0x80),
]
