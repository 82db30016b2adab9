import { describe } from '../../errors.js'
import { BYTES_OF } from '../../codecs/budget.js'
import * as scalars from './scalars.js'
import type { Input, Output, Serializer, Slot } from './serializer.js'
import { writeIn } from './slot.js'

/** How the elements of a primitive array are written, and whether their boxes are written in the same way. */
interface Primitive {
  write(out: Output, value: unknown): void
  read(input: Input): unknown
}

const primitives: Record<string, Primitive> = {
  I: scalars.INTEGER,
  J: scalars.LONG,
  S: { write: (out, value) => scalars.SHORT.write(out, value), read: (input) => input.int16() },
  F: { write: (out, value) => scalars.FLOAT.write(out, value), read: (input) => input.float() },
  D: { write: (out, value) => scalars.DOUBLE.write(out, value), read: (input) => input.double() },
  Z: scalars.BOOLEAN,
  C: {
    write: (out, value) => scalars.CHARACTER.write(out, value),
    read: (input) => String.fromCharCode(input.int16() & 0xffff),
  },
}

function items(out: Output, name: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value as unknown[]
  if (ArrayBuffer.isView(value) && !(value instanceof DataView))
    return Array.from(value as unknown as Iterable<unknown>)
  return out.refuse(`expected an array for ${name}, got ${describe(value)}`)
}

/** `byte[]` is a Buffer. */
const bytes: Serializer = {
  name: '[B',
  nullByte: 0,
  referable: true,
  natural: true,
  write: (out, value) => {
    if (!(value instanceof Uint8Array)) return out.refuse(`expected a Buffer or Uint8Array, got ${describe(value)}`)
    out.varint(value.length + 1)
    out.raw(value)
  },
  read: (input) => {
    const length = input.length() - 1
    if (length < 0) return null
    input.spend(BYTES_OF.buffer + Math.min(length, input.bytes.length))
    return Buffer.from(input.raw(length))
  },
}

/** An array of other primitives, or of objects by the serializer of one element. */
function array(name: string, element: Primitive): Serializer {
  const serializer: Serializer = {
    name,
    nullByte: 0,
    referable: true,
    natural: false,
    write: (out, value) => {
      const list = items(out, name, value)
      out.claim(list.length)
      out.varint(list.length + 1)
      out.enter()
      for (let i = 0; i < list.length; i++) {
        out.key(i)
        element.write(out, list[i])
      }
      out.leave()
    },
    read: (input) => {
      const length = input.length() - 1
      if (length < 0) return null
      input.claim(length)
      const list: unknown[] = []
      const result = input.wrap(serializer, list)
      input.started(result)
      input.enter()
      for (let i = 0; i < length; i++) {
        input.key(i)
        list.push(element.read(input))
      }
      input.leave()
      return result
    },
  }
  return serializer
}

export const ARRAYS: readonly Serializer[] = [
  bytes,
  ...Object.entries(primitives).map(([code, element]) => array(`[${code}`, element)),
]

const MAX_DIMENSIONS = 16

/**
 * The serializer of an array class by its Java name, e.g. `[I` or `[Ljava.lang.String;`. Elements of a final class,
 * and arrays in arrays, have no tag of their own.
 */
export function arrayOf(name: string, find: (element: string) => ArrayElement | undefined): Serializer | undefined {
  const primitive = ARRAYS.find((each) => each.name === name)
  if (primitive !== undefined) return primitive
  if (name.lastIndexOf('[') >= MAX_DIMENSIONS) return undefined
  const component = name.slice(1)
  if (component.startsWith('[')) {
    const inner = arrayOf(component, find)
    return inner === undefined ? undefined : array(name, fixed(inner))
  }
  const match = /^L(.+);$/.exec(component)
  const element = match?.[1] === undefined ? undefined : find(match[1])
  if (element === undefined) return undefined
  return array(name, element.final && element.serializer !== undefined ? fixed(element.serializer) : open(element))
}

export interface ArrayElement {
  readonly serializer: Serializer | undefined
  readonly final: boolean
}

function fixed(serializer: Serializer): Primitive {
  return {
    write: (out, value) => out.nullable(serializer, out.own(value)),
    read: (input) => input.nullable(serializer),
  }
}

function open({ serializer }: ArrayElement): Primitive {
  const slot: Slot = { text: '', serializer, final: false, primitive: false, args: undefined }
  return {
    write: (out, value) => writeIn(out, slot, value),
    read: (input) => input.any(),
  }
}
