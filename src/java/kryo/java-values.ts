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
  /** Any value of a class that the codec knows, e.g. `java.of('java.util.TreeMap', { a: 1 })` or a declared class. */
  of: <T>(type: string, value: T): JavaValue<T> => new JavaValue(type, value),
  int: (value: number): JavaValue<number> => new JavaValue('java.lang.Integer', value),
  long: (value: number | bigint): JavaValue<number | bigint> => new JavaValue('java.lang.Long', value),
  double: (value: number): JavaValue<number> => new JavaValue('java.lang.Double', value),
  float: (value: number): JavaValue<number> => new JavaValue('java.lang.Float', value),
  short: (value: number): JavaValue<number> => new JavaValue('java.lang.Short', value),
  byte: (value: number): JavaValue<number> => new JavaValue('java.lang.Byte', value),
  /** One UTF-16 unit. */
  char: (value: string): JavaValue<string> => new JavaValue('java.lang.Character', value),
  uuid: (text: string): JavaValue<string> => new JavaValue('java.util.UUID', text.toLowerCase()),
  /** Text as Java's BigDecimal reads it; `1.10` and `1.1` are different values. */
  bigDecimal: (text: string): JavaValue<string> => new JavaValue('java.math.BigDecimal', text),
  bigInteger: (value: bigint): JavaValue<bigint> => new JavaValue('java.math.BigInteger', value),
  enumValue: (type: string, ordinal: number, name?: string): JavaEnum => new JavaEnum(type, ordinal, name),
})
