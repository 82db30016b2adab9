import { InvalidArgumentError } from '../../errors.js'
import { boolean, nonEmptyString, oneOf, onlyKnown } from '../../options.js'
import { parseFieldType, type FieldType, type Spec } from './field-types.js'

/** A Java class whose objects are written and read with declared fields. */
export interface JavaClass {
  /**
   * The JavaScript class of such objects: its instances are written as this Java class, and decoded objects become its
   * instances, without a call of the constructor. Without it decoded objects are plain objects with their `@class`.
   */
  readonly type?: (abstract new (...args: never[]) => object) | undefined
  /**
   * The declared Java types of the fields. Needed for `Long` (written with its wrapper, which Java insists on), `long` (must
   * have none), `Date`, `UUID`, `byte[]`, `BigDecimal`, arrays and numbers that may be whole; harmless for all others.
   */
  readonly fields?: Readonly<Record<string, FieldType>> | undefined
}

/** Options of the codecs that carry Java's type information. */
export interface JacksonOptions {
  /** Java classes by their full names, e.g. `{ 'com.x.Order': { type: Order, fields: { id: 'long', at: 'Date' } } }`. */
  readonly classes?: Readonly<Record<string, JavaClass>> | undefined
  /**
   * How objects of other classes are read: `'data'` (default) keeps them as plain objects with their `@class`,
   * `'map'` drops the `@class`, `'refuse'` is a `DecodeError`.
   */
  readonly unknownClass?: 'data' | 'map' | 'refuse' | undefined
  /**
   * How a Java `Long` is read: `'number'` (default) where that is exact (up to 2^53 - 1 on either side of 0) and else a
   * bigint; `'bigint'` always, so that it is written as a `Long` again.
   */
  readonly longs?: 'number' | 'bigint' | undefined
  /**
   * Whether decoded values keep their Java class, as a `JavaValue` if JavaScript has no type for it, so that encoding them again
   * gives the same bytes: for `remove` and `contains` with values that Java wrote. Longs are then bigints. Default false.
   */
  readonly exact?: boolean | undefined
  /**
   * Whether plain objects are written as any class that their `@class` names, to forward values that Java wrote. Only for values
   * that do not come from users, because the class decides which code Java runs. Default `false`: such an object is
   * an `EncodeError`, unless its class is one of `classes`; a value made by `java.of` needs neither.
   */
  readonly plainClasses?: boolean | undefined
  /** How fields of type `UUID` are written: `'wrapped'` for Redisson 4 (default), `'bare'` for 3.x; both are read. */
  readonly uuidFields?: 'wrapped' | 'bare' | undefined
}

/** Options of `typedJsonJackson`. */
export interface TypedJacksonOptions extends Pick<JacksonOptions, 'classes' | 'longs'> {
  /** The Java type given to `TypedJsonJacksonCodec`: the name of one of `classes`, or e.g. `'Date'`, `'List<Long>'`. */
  readonly type?: FieldType | undefined
}

/** One registered class, ready for use. */
export interface ClassPlan {
  readonly name: string
  readonly prototype: object | undefined
  readonly fields: ReadonlyMap<string, Spec>
}

/** The checked options of one codec. */
export interface Plan {
  readonly codec: string
  /** Whether type information is on the wire. */
  readonly wrapped: boolean
  readonly root: Spec
  readonly classes: ReadonlyMap<string, ClassPlan>
  readonly byPrototype: ReadonlyMap<object, ClassPlan>
  readonly unknownClass: 'data' | 'map' | 'refuse'
  readonly bigintLongs: boolean
  readonly exact: boolean
  readonly bareUuidFields: boolean
  readonly plainClasses: boolean
}

export function typedPlan(codec: string, options: TypedJacksonOptions): Plan {
  onlyKnown(codec, options, ['classes', 'longs', 'type'])
  return makePlan(codec, false, options, options.type)
}

export function wrappedPlan(codec: string, options: JacksonOptions): Plan {
  onlyKnown(codec, options, ['classes', 'unknownClass', 'longs', 'exact', 'uuidFields', 'plainClasses'])
  return makePlan(codec, true, options, undefined)
}

function makePlan(codec: string, wrapped: boolean, options: JacksonOptions, type: FieldType | undefined): Plan {
  const exact = boolean(`${codec}.exact`, options.exact ?? false)
  const given = options.classes ?? {}
  if (typeof given !== 'object') throw new InvalidArgumentError(`${codec}.classes`, 'an object', given)
  const isClass = (name: string): boolean => Object.hasOwn(given, name)
  const classes = new Map<string, ClassPlan>()
  const byPrototype = new Map<object, ClassPlan>()
  const parse = (what: string, fieldType: unknown): Spec => parseFieldType(what, fieldType, isClass)
  for (const [name, spec] of Object.entries(given)) {
    const what = `${codec}.classes[${JSON.stringify(name)}]`
    nonEmptyString(what, name)
    onlyKnown(what, spec, ['type', 'fields'])
    const fields = new Map<string, Spec>()
    for (const [field, fieldType] of Object.entries(spec.fields ?? {})) {
      fields.set(field, parse(`${what}.fields.${field}`, fieldType))
    }
    const plan: ClassPlan = { name, prototype: prototypeOf(`${what}.type`, spec.type), fields }
    classes.set(name, plan)
    if (plan.prototype === undefined) continue
    const other = byPrototype.get(plan.prototype)
    if (other !== undefined)
      throw new InvalidArgumentError(`${what}.type`, `another class than ${other.name} has`, spec.type)
    byPrototype.set(plan.prototype, plan)
  }
  return Object.freeze({
    codec,
    wrapped,
    root: parse(`${codec}.type`, type ?? 'Object'),
    classes,
    byPrototype,
    plainClasses: boolean(`${codec}.plainClasses`, options.plainClasses ?? false),
    unknownClass: oneOf(`${codec}.unknownClass`, options.unknownClass ?? 'data', ['data', 'map', 'refuse']),
    exact,
    bigintLongs: oneOf(`${codec}.longs`, options.longs ?? 'number', ['number', 'bigint']) === 'bigint' || exact,
    bareUuidFields: oneOf(`${codec}.uuidFields`, options.uuidFields ?? 'wrapped', ['wrapped', 'bare']) === 'bare',
  })
}

function prototypeOf(what: string, type: unknown): object | undefined {
  if (type === undefined) return undefined
  const prototype: unknown = typeof type === 'function' ? type.prototype : undefined
  if (typeof prototype !== 'object' || prototype === null || prototype === Object.prototype) {
    throw new InvalidArgumentError(what, 'a class', type)
  }
  return prototype
}
