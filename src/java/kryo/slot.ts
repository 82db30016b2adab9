import { JavaEnum, JavaValue } from './java-values.js'
import type { Input, Output, Serializer, Slot } from './serializer.js'

/**
 * The class of a value for `slot`: the declared class, unless the value names a subclass.
 * Java casts the value to the declared class, so a value of any other class is refused.
 */
export function classIn(out: Output, slot: Pick<Slot, 'serializer'> | undefined, value: unknown): Serializer {
  const declared = slot?.serializer
  if (declared === undefined) return out.classOf(value)
  // the declared class refuses values of other types
  if (typeof value !== 'object') return declared
  const its = out.classOf(value)
  const saysItsClass = value instanceof JavaValue || its.accepts !== undefined
  if (its === declared || !saysItsClass) return declared
  const fits = declared.accepts === undefined ? its.accepts === undefined : declared.accepts(its)
  return fits ? its : out.refuse(`expected ${declared.name}, got ${its.name}`)
}

/** Writes a value for `slot`, or null, as Kryo's `writeClassAndObject`, but without the class if that is final. */
export function writeIn(out: Output, slot: Slot | undefined, given: unknown): void {
  const serializer = slot?.serializer
  if (serializer === undefined) return out.any(given, slot?.args)
  const value = typeof given === 'object' ? out.own(given) : given
  if (slot?.final) out.nullable(serializer, value, slot.args)
  else if (value === null) out.any(null)
  else {
    const its = classIn(out, slot, value)
    out.writeClass(its)
    out.object(its, value, slot?.args)
  }
}

/** The name of a constant whose enum `slot` declares: the declaration restores the class when it is encoded again. */
export function nameIn(input: Input, slot: Slot | undefined, value: unknown): unknown {
  if (!(value instanceof JavaEnum) || input.exact || value.type !== slot?.serializer?.name) return value
  return value.value ?? value
}
