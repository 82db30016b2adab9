import { DecodeError, toError } from '../../errors.js'
import { closeBudget, openBudget, type Budget } from '../../codecs/budget.js'
import type { Codec } from '../../codecs/codec.js'
import { parseCbor } from './cbor-parser.js'
import { CborFormat } from './cbor-format.js'
import { speedUpStrings } from './fast-strings.js'
import { jsonText, parseJson, parseJsonExactly } from './json-parser.js'
import { JsonFormat } from './json-format.js'
import { parseMsgpack } from './msgpack-parser.js'
import { MsgpackFormat } from './msgpack-format.js'
import { typedPlan, wrappedPlan, type JacksonOptions, type Plan, type TypedJacksonOptions } from './plan.js'
import { Reader } from './reader.js'
import { INEXACT } from './scalars-in.js'
import { Writer } from './writer.js'
import type { Fail, Format } from './format.js'

/**
 * Redisson's `JsonJacksonCodec`: JSON with Java's types in it, byte for byte as Jackson writes it.
 *
 * | JavaScript | Java |
 * |---|---|
 * | whole number of 32 bits, string, boolean | `Integer`, `String`, `Boolean` |
 * | other safe integer, bigint of 64 bits | `Long`; read as a number where exact, else a bigint (option `longs`) |
 * | other finite number | `Double` |
 * | `Date`, `Buffer`, array, `Set`, object or `Map` | `java.util.Date`, `byte[]`, `ArrayList`, `HashSet`, `LinkedHashMap` |
 * | object with the `@class` of a declared class, instance of such a class | an object of that class |
 * | `JavaValue`, made with `java` | `UUID`, `BigDecimal`, `BigInteger`, `Float` and other classes |
 *
 * Lists, sets and maps of every kind in `java.util` are read as array, `Set` and plain object; `Short`, `Byte`, `Float` and
 * `Character` as number and string. Java writes a `byte[]` that is the whole message as bare base64, which is read as a
 * string. A property that is `undefined` is omitted, and so is a null in a class, as in Jackson; in a map a null stays. A value that
 * cannot be written, such as NaN outside a field declared as `double`, is an `EncodeError` with its path.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an option or a declared class is wrong
 *
 * @example
 * ```ts
 * import { javaCodecs } from 'redelayed/java'
 *
 * const codec = javaCodecs.jsonJackson<Order>({ classes: { 'com.example.Order': { fields: { amount: 'long' } } } })
 * const orders = client.getQueue<Order>('orders', { codec })
 * ```
 */
export function jsonJackson<T = unknown>(options: JacksonOptions = {}): Codec<T> {
  const plan = wrappedPlan('jsonJackson', options)
  return jsonCodec(plan)
}

/**
 * Redisson's `TypedJsonJacksonCodec`: plain JSON, for when both sides know the type. A bigint is written as a bare number,
 * and an integer beyond 2^53 read as a bigint; a `Date` is written as milliseconds and bytes in base64, and both are read
 * back as `Date` and `Buffer` only if `type` declares them.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an option or a declared class is wrong
 *
 * @example
 * ```ts
 * import { javaCodecs } from 'redelayed/java'
 *
 * const orders = client.getQueue<Order>('orders', { codec: javaCodecs.typedJsonJackson() })
 * ```
 */
export function typedJsonJackson<T = unknown>(options: TypedJacksonOptions = {}): Codec<T> {
  const plan = typedPlan('typedJsonJackson', options)
  return jsonCodec(plan)
}

/**
 * Redisson's `MsgPackJacksonCodec`: the type information of {@link jsonJackson} in MessagePack, where bytes and NaN have a
 * form of their own. A BigInteger has at most 64 bits, and a BigDecimal loses its scale and is refused where it would be
 * rounded, as in Java.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an option or a declared class is wrong
 *
 * @example
 * ```ts
 * import { javaCodecs } from 'redelayed/java'
 *
 * const orders = client.getQueue<Order>('orders', { codec: javaCodecs.msgpackJackson() })
 * ```
 */
export function msgpackJackson<T = unknown>(options: JacksonOptions = {}): Codec<T> {
  const plan = wrappedPlan('msgpackJackson', options)
  return codec(
    plan,
    (fail) => new MsgpackFormat(fail),
    (bytes, budget) => new Reader(plan, budget).read(parseMsgpack(plan.codec, bytes, plan.exact, budget)),
  )
}

/**
 * Redisson's `CborJacksonCodec`: the type information of {@link jsonJackson} in CBOR, with exact big numbers.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an option or a declared class is wrong
 *
 * @example
 * ```ts
 * import { javaCodecs } from 'redelayed/java'
 *
 * const orders = client.getQueue<Order>('orders', { codec: javaCodecs.cborJackson() })
 * ```
 */
export function cborJackson<T = unknown>(options: JacksonOptions = {}): Codec<T> {
  const plan = wrappedPlan('cborJackson', options)
  return codec(
    plan,
    (fail) => new CborFormat(fail),
    (bytes, budget) => new Reader(plan, budget).read(parseCbor(plan.codec, bytes, plan.exact, budget)),
  )
}

function jsonCodec<T>(plan: Plan): Codec<T> {
  return codec(
    plan,
    (fail) => new JsonFormat(fail),
    (bytes, budget) => {
      const text = jsonText(plan.codec, bytes)
      if (!plan.exact) {
        try {
          return new Reader(plan, budget, true).read(parseJson(plan.codec, text))
        } catch (thrown) {
          if (thrown !== INEXACT) throw thrown
        }
      }
      return new Reader(plan, budget).read(parseJsonExactly(plan.codec, text))
    },
  )
}

function codec<T>(
  plan: Plan,
  formatOf: (fail: Fail) => Format,
  read: (bytes: Buffer, budget: Budget) => unknown,
): Codec<T> {
  speedUpStrings()
  let idle: Writer | undefined
  return Object.freeze({
    name: plan.codec,
    encode(value: T): Buffer {
      // a getter of the value may call `encode`
      const writer = idle ?? new Writer(plan, formatOf)
      idle = undefined
      try {
        return writer.encode(value)
      } finally {
        idle = writer
      }
    },
    decode(bytes: Buffer): T {
      const budget = openBudget()
      try {
        return read(bytes, budget) as T
      } catch (thrown) {
        if (thrown instanceof DecodeError) throw thrown
        throw new DecodeError(plan.codec, toError(thrown).message, { cause: thrown })
      } finally {
        closeBudget()
      }
    },
  })
}
