import { isPlain } from '../../codecs/instances.js'
import { describe } from '../../errors.js'
import { quoted } from '../../text.js'
import { JavaValue } from '../kryo/java-values.js'
import type { Fail } from './format.js'
import type { Plan } from './plan.js'

export type Properties = Readonly<Record<string, unknown>>

export function itemsOf(value: unknown, fail: Fail): readonly unknown[] {
  const items: unknown = value instanceof Set ? [...(value as Set<unknown>)] : value
  return Array.isArray(items) ? items : fail(`expected an array or a Set, got ${describe(value)}`)
}

/** The fields of a declared class: of a plain object, or of an instance with enumerable properties. */
export function propertiesOf(value: unknown, plan: Plan, fail: Fail): Properties {
  if (Object.prototype.toString.call(value) !== '[object Object]') fail(describe(value))
  const object = value as Properties
  if (isPlain(object) || isKnown(plan, object) || Object.keys(object).length > 0) return object
  return fail(`${describe(value)} has no properties that can be seen`)
}

/** The entries of a map: those of a plain object. */
export function entriesOf(value: unknown, fail: Fail): Properties {
  if (typeof value === 'object' && value !== null && isPlain(value)) return value as Properties
  return fail(`expected an object or a Map, got ${describe(value)}`)
}

/** Whether the codec has a form for the object, so that it ignores `toJSON`. */
export function isKnown(plan: Plan, value: object): boolean {
  return value instanceof JavaValue || plan.byPrototype.has(Object.getPrototypeOf(value) as object)
}

/** Sorts keys by UTF-16 units, as Java does; most often they are sorted already. */
export function sortKeys(keys: string[]): void {
  if (keys.some((key, i) => i > 0 && key < (keys[i - 1] ?? ''))) keys.sort()
}

export function undeclared(value: object): string {
  if (Object.prototype.toString.call(value) !== '[object Object]') return describe(value)
  return `${describe(value)}, whose class is not declared and has no toJSON`
}

export function undeclaredClass(name: string): string {
  return `a plain object has the @class ${quoted(name)}, which is not declared: use java.of, classes, or plainClasses`
}
