/**
 * A value with the Java class it has on the wire, for classes without a JavaScript type. `value` is the nearest
 * JavaScript value; `toString` and `JSON.stringify` use it.
 */
export class JavaValue<T = unknown> {
  /** The Java class by its binary name, e.g. `java.lang.Float`, `[I`, `com.example.Order$Status`. */
  readonly type: string
  readonly value: T

  constructor(type: string, value: T) {
    this.type = type
    this.value = value
  }

  /**
   * `value` as text.
   *
   * @throws nothing for values that a codec decoded
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(String(java.int(5))) // 5
   * ```
   */
  toString(): string {
    return String(this.value)
  }

  /**
   * `value` for `JSON.stringify`; a bigint as text.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(JSON.stringify(java.long(5n))) // "5"
   * ```
   */
  toJSON(): unknown {
    return typeof this.value === 'bigint' ? String(this.value) : this.value
  }
}

/** A constant of a Java enum. The wire has its ordinal only; the name is there when the codec knows the constants. */
export class JavaEnum extends JavaValue<string | undefined> {
  readonly ordinal: number

  constructor(type: string, ordinal: number, name?: string) {
    super(type, name)
    this.ordinal = ordinal
  }

  /**
   * The name, or the ordinal where the name is unknown.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(String(java.enumValue('com.example.Status', 1, 'PAID'))) // PAID
   * ```
   */
  override toString(): string {
    return this.value ?? String(this.ordinal)
  }

  /**
   * The name, or the ordinal where the name is unknown, for `JSON.stringify`.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(JSON.stringify(java.enumValue('com.example.Status', 1))) // 1
   * ```
   */
  override toJSON(): unknown {
    return this.value ?? this.ordinal
  }
}

/** Creates Java values for codecs that keep Java's types. A codec refuses values that it cannot write when it encodes them. */
export const java = Object.freeze({
  /**
   * Any value of a class that the codec knows, such as a declared one.
   *
   * @throws nothing: the codec refuses what it cannot write
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(java.of('java.util.TreeMap', { a: 1 }))
   * ```
   */
  of: <T>(type: string, value: T): JavaValue<T> => new JavaValue(type, value),
  /**
   * A `java.lang.Integer`.
   *
   * @throws nothing: the codec refuses what it cannot write
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(java.int(5))
   * ```
   */
  int: (value: number): JavaValue<number> => new JavaValue('java.lang.Integer', value),
  /**
   * A `java.lang.Long`.
   *
   * @throws nothing: the codec refuses what it cannot write
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(java.long(5n))
   * ```
   */
  long: (value: number | bigint): JavaValue<number | bigint> => new JavaValue('java.lang.Long', value),
  /**
   * A `java.lang.Double`.
   *
   * @throws nothing: the codec refuses what it cannot write
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(java.double(5))
   * ```
   */
  double: (value: number): JavaValue<number> => new JavaValue('java.lang.Double', value),
  /**
   * A `java.lang.Float`.
   *
   * @throws nothing: the codec refuses what it cannot write
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(java.float(1.5))
   * ```
   */
  float: (value: number): JavaValue<number> => new JavaValue('java.lang.Float', value),
  /**
   * A `java.lang.Short`.
   *
   * @throws nothing: the codec refuses what it cannot write
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(java.short(5))
   * ```
   */
  short: (value: number): JavaValue<number> => new JavaValue('java.lang.Short', value),
  /**
   * A `java.lang.Byte`.
   *
   * @throws nothing: the codec refuses what it cannot write
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(java.byte(-1))
   * ```
   */
  byte: (value: number): JavaValue<number> => new JavaValue('java.lang.Byte', value),
  /**
   * A `java.lang.Character`: one UTF-16 unit.
   *
   * @throws nothing: the codec refuses what it cannot write
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(java.char('a'))
   * ```
   */
  char: (value: string): JavaValue<string> => new JavaValue('java.lang.Character', value),
  /**
   * A `java.util.UUID`.
   *
   * @throws nothing: the codec refuses what it cannot write
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(java.uuid('6ba7b810-9dad-11d1-80b4-00c04fd430c8'))
   * ```
   */
  uuid: (text: string): JavaValue<string> => new JavaValue('java.util.UUID', text.toLowerCase()),
  /**
   * A `java.math.BigDecimal`, by the text that Java reads; `1.10` and `1.1` are different values.
   *
   * @throws nothing: the codec refuses what it cannot write
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(java.bigDecimal('1.10'))
   * ```
   */
  bigDecimal: (text: string): JavaValue<string> => new JavaValue('java.math.BigDecimal', text),
  /**
   * A `java.math.BigInteger`.
   *
   * @throws nothing: the codec refuses what it cannot write
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(java.bigInteger(10n ** 30n))
   * ```
   */
  bigInteger: (value: bigint): JavaValue<bigint> => new JavaValue('java.math.BigInteger', value),
  /**
   * A constant of an enum, by its ordinal; Kryo writes no more than that.
   *
   * @throws nothing: the codec refuses what it cannot write
   *
   * @example
   * ```ts
   * import { java } from 'redelayed/java'
   *
   * console.log(java.enumValue('com.example.Status', 1, 'PAID'))
   * ```
   */
  enumValue: (type: string, ordinal: number, name?: string): JavaEnum => new JavaEnum(type, ordinal, name),
})
