import { DecodeError, EncodeError, InvalidArgumentError, toError } from '../../errors.js'
import { onlyKnown, oneOf } from '../../options.js'
import { closeBudget, openBudget } from '../../codecs/budget.js'
import type { Codec } from '../../codecs/codec.js'
import { ValueReader } from './input.js'
import { ValueWriter } from './output.js'
import { NAME } from './reader.js'
import { Registry, type ClassDeclaration } from './registry.js'

/** Options of `kryo5`. Options that Java's codec also has must be equal on both sides. */
export interface Kryo5Options {
  /** Java classes of your own, by their binary names (`com.example.Order$Status` for a nested class). */
  readonly classes?: Readonly<Record<string, ClassDeclaration>> | undefined
  /**
   * The classes given to `Kryo5Codec(allowedClasses, useReferences)` (3.36 and later): only these can be written, by a
   * number. Java's own classes have to be among them, e.g. `java.util.ArrayList`, except boxes of primitives and String.
   */
  readonly allowedClasses?: readonly string[] | undefined
  /**
   * How classes are numbered: `'sorted'` (default) by name, as in Redisson 4.7; `'given'` in the order of `allowedClasses`,
   * as in Redisson 3.52 and before, which use the order of their `Set`. That order must be fixed, as
   * in a `LinkedHashSet`: a `Set.of` has another order in every JVM, so not even two JVMs can read each other's messages (Redisson
   * issue 6558).
   */
  readonly allowedClassesOrder?: 'sorted' | 'given' | undefined
  /** `useReferences` of `Kryo5Codec`: an object that occurs twice is written once, and cycles are possible. Default false. */
  readonly references?: boolean | undefined
  /** `'number'` (default): a Long is a number where that is exact, else a bigint. `'bigint'`: always a bigint. */
  readonly longs?: 'number' | 'bigint' | undefined
  /**
   * Whether decoded values keep their Java class, as a `JavaValue` if JavaScript has no type for it, so that encoding them again
   * gives the same bytes: for `remove` and `contains` with values that Java wrote. Longs are then bigints. Default false.
   */
  readonly exact?: boolean | undefined
}

/**
 * Redisson's default codec since 3.19, Kryo 5. In Java a number is an Integer, a Long if it is beyond 32 bits, and
 * a Double if it is not a safe integer; a bigint is a Long; `Date`, `Buffer`, arrays (ArrayList), `Set` (LinkedHashSet), `Map`
 * and objects (LinkedHashMap) have these classes; `java.float(1.5)` and the like create values of others. Maps with text as keys
 * are decoded to plain objects. Classes of your own have to be declared in `classes`: the wire has no field names.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an option or a declared class is wrong
 *
 * @example
 * ```ts
 * import { javaCodecs } from 'redelayed/java'
 *
 * const orders = client.getQueue('orders', { codec: javaCodecs.kryo5({ longs: 'bigint' }) })
 * ```
 */
export function kryo5<T = unknown>(options: Kryo5Options = {}): Codec<T> {
  onlyKnown(NAME, options, ['classes', 'allowedClasses', 'allowedClassesOrder', 'references', 'longs', 'exact'])
  const { classes = {}, allowedClasses, references = false, longs = 'number', exact = false } = options
  const order = oneOf(`${NAME}.allowedClassesOrder`, options.allowedClassesOrder ?? 'sorted', ['sorted', 'given'])
  oneOf(`${NAME}.longs`, longs, ['number', 'bigint'])
  if (allowedClasses !== undefined && !Array.isArray(allowedClasses)) {
    throw new InvalidArgumentError(`${NAME}.allowedClasses`, 'an array of class names', allowedClasses)
  }
  const allowed: readonly string[] | undefined = allowedClasses
  const registry = new Registry(classes, order === 'sorted' ? allowed?.toSorted() : allowed)
  const reading = { references, exact, bigints: exact || longs === 'bigint' }
  let idle: ValueWriter | undefined = new ValueWriter(registry, reading)
  return Object.freeze({
    name: NAME,
    encode(value: T): Buffer {
      // a getter of the value may call `encode`
      const writer = idle ?? new ValueWriter(registry, reading)
      idle = undefined
      try {
        return writer.encode(value)
      } catch (thrown) {
        if (thrown instanceof EncodeError) throw thrown
        throw new EncodeError(NAME, '$', toError(thrown).message, { cause: thrown })
      } finally {
        idle = writer
      }
    },
    decode(bytes: Buffer): T {
      const budget = openBudget()
      try {
        return new ValueReader(bytes, registry, reading, budget).decode() as T
      } catch (thrown) {
        if (thrown instanceof DecodeError) throw thrown
        throw new DecodeError(NAME, toError(thrown).message, { cause: thrown })
      } finally {
        closeBudget()
      }
    },
  })
}
