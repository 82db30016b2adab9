import { describe } from '../../errors.js'
import { BYTES_OF } from '../../codecs/budget.js'
import { SLICE } from '../../codecs/insertions.js'
import { isPlain } from '../../codecs/instances.js'
import { natural, type Kind } from './collections.js'
import type { Args, Input, Output, Serializer } from './serializer.js'
import { nameIn, writeIn } from './slot.js'

/** A map: Kryo's MapSerializer. */
function map(name: string, kind: Kind = {}): Serializer {
  const noNulls = kind.noNulls ?? false
  const serializer: Serializer = {
    name,
    nullByte: 0,
    referable: true,
    natural: kind.natural ?? false,
    write: (out, value, args) => {
      if (value instanceof Map) writeEntries(out, value, args, noNulls, kind.sorted ?? false)
      else if (isObject(value)) writeProperties(out, value, args, noNulls, kind.sorted ?? false)
      else out.refuse(`expected a Map or an object for ${name}, got ${describe(value)}`)
    },
    read: (input, args) => readMap(input, serializer, args, noNulls, kind.sorted ?? false),
  }
  return serializer
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && isPlain(value)
}

function header(out: Output, size: number, sorted: boolean): void {
  out.varint(size + 1)
  if (sorted) out.byte(0)
}

function writeEntries(out: Output, value: Map<unknown, unknown>, args: Args, noNulls: boolean, sorted: boolean): void {
  out.claim(2 * value.size)
  header(out, value.size, sorted)
  out.enter()
  for (const [key, item] of value) {
    out.key(typeof key === 'number' ? key : String(key))
    writeSide(out, key, args, 0, noNulls)
    writeSide(out, item, args, 1, noNulls)
  }
  out.leave()
}

function writeProperties(
  out: Output,
  value: Record<string, unknown>,
  args: Args,
  noNulls: boolean,
  sorted: boolean,
): void {
  const keys = Object.keys(value)
  let size = 0
  for (const key of keys) if (value[key] !== undefined) size++
  out.claim(2 * size)
  header(out, size, sorted)
  out.enter()
  for (const key of keys) {
    const item = value[key]
    if (item === undefined) continue
    out.key(key)
    writeSide(out, key, args, 0, noNulls)
    writeSide(out, item, args, 1, noNulls)
  }
  out.leave()
}

function writeSide(out: Output, value: unknown, args: Args, side: 0 | 1, noNulls: boolean): void {
  const slot = args?.[side]
  if (noNulls && value === null) out.refuse('an immutable map holds no null')
  if (noNulls && slot?.final && slot.serializer !== undefined) out.object(slot.serializer, out.own(value), slot.args)
  else writeIn(out, slot, value)
}

function readSide(input: Input, args: Args, side: 0 | 1, noNulls: boolean): unknown {
  const slot = args?.[side]
  if (!slot?.final || slot.serializer === undefined) return nameIn(input, slot, input.any(slot?.args))
  const value = noNulls ? input.object(slot.serializer, slot.args) : input.nullable(slot.serializer, slot.args)
  return nameIn(input, slot, value)
}

/** A key that a JavaScript object would move before its other keys. */
const INDEX = /^(?:0|[1-9]\d{0,9})$/

/** A plain object as long as every key is text, else a Map. */
function readMap(input: Input, serializer: Serializer, args: Args, noNulls: boolean, sorted: boolean): unknown {
  const length = input.length() - 1
  if (length < 0) return null
  input.claim(2 * length)
  if (sorted) natural(input)
  const object: Record<string, unknown> = {}
  let entries: { map: Map<unknown, unknown>; keys: unknown[]; values: unknown[] } | undefined
  let result = input.wrap(serializer, object)
  input.started(result)
  input.enter()
  for (let i = 0; i < length; i++) {
    const key = readSide(input, args, 0, noNulls)
    if (typeof key === 'string' || typeof key === 'number') input.key(key)
    if (entries === undefined && (typeof key !== 'string' || (input.exact && INDEX.test(key)))) {
      input.spend(BYTES_OF.map)
      entries = { map: new Map(Object.entries(object)), keys: [], values: [] }
      const other = input.wrap(serializer, entries.map)
      input.replaced(result, other)
      result = other
    }
    const value = readSide(input, args, 1, noNulls)
    if (entries === undefined) setProperty(object, key as string, value)
    else if (length <= SLICE) entries.map.set(key, value)
    else {
      entries.keys.push(key)
      entries.values.push(value)
    }
  }
  if (entries !== undefined) input.fillMap(entries.map, entries.keys, entries.values)
  input.leave()
  return result
}

/** A map of these keys and values, as `readMap` makes it. */
export function fromEntries(input: Input, keys: readonly unknown[], values: readonly unknown[]): unknown {
  if (keys.every((key) => typeof key === 'string' && !(input.exact && INDEX.test(key)))) {
    const object: Record<string, unknown> = {}
    for (const [i, key] of keys.entries()) setProperty(object, key as string, values[i])
    return object
  }
  input.spend(BYTES_OF.map)
  const map = new Map<unknown, unknown>()
  input.fillMap(map, keys, values)
  return map
}

/** `__proto__` becomes a property like any other. */
function setProperty(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
}

export const MAPS: readonly Serializer[] = [
  map('java.util.LinkedHashMap', { natural: true }),
  ...['HashMap', 'Hashtable', 'WeakHashMap', 'concurrent.ConcurrentHashMap'].map((name) => map(`java.util.${name}`)),
  ...['TreeMap', 'concurrent.ConcurrentSkipListMap'].map((name) => map(`java.util.${name}`, { sorted: true })),
  ...['Map1', 'MapN'].map((name) => map(`java.util.ImmutableCollections$${name}`, { noNulls: true })),
]
