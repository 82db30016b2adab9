import { InvalidArgumentError, inQuotes } from '../../errors.js'
import type { Args, Serializer, Slot } from './serializer.js'

/** A class that a type expression can name: by its simple name for the well-known ones, else by its binary name. */
export interface NamedClass {
  readonly serializer: Serializer | undefined
  readonly final: boolean
  readonly primitive?: boolean
}

/** Type arguments that Kryo ignores, so that every value has its class on the wire, but to which Java casts. */
export function tagged(args: Args): Args {
  return args?.map((slot) => ({ ...slot, final: false, args: tagged(slot.args) }))
}

const MAX_TYPE_LENGTH = 1000

/**
 * Reads the type of a field as Java writes it: `int`, `String`, `Date[]`, `List<String>`, `Map<String, ? extends Item>`.
 * `find` knows the class names.
 */
export function parseType(what: string, text: string, find: (name: string) => NamedClass | undefined): Slot {
  if (typeof text !== 'string' || text.length > MAX_TYPE_LENGTH) fail()
  const tokens = text.match(/[\w$.]+|\[\]|[<>,?]|\S/g) ?? []
  let at = 0

  function slot(): Slot {
    const from = at
    let wildcard = false
    if (tokens[at] === '?') {
      at++
      if (tokens[at] !== 'extends' && tokens[at] !== 'super') return named('Object', '?', undefined)
      at++
      wildcard = true
    }
    let name = tokens[at++] ?? ''
    let args: Slot[] | undefined
    if (tokens[at] === '<') {
      args = []
      do {
        at++
        args.push(slot())
      } while (tokens[at] === ',')
      if (tokens[at++] !== '>') fail()
    }
    while (tokens[at] === '[]') {
      at++
      name += '[]'
    }
    // Kryo forgets the type arguments within a wildcard's bound
    return named(name, tokens.slice(from, at).join(''), name.endsWith(']') ? undefined : wildcard ? tagged(args) : args)
  }

  function named(name: string, whole: string, args: Args): Slot {
    const known = find(name)
    if (known === undefined) return fail()
    return { text: whole, serializer: known.serializer, final: known.final, primitive: known.primitive ?? false, args }
  }

  function fail(): never {
    throw new InvalidArgumentError(
      what,
      'a Java type whose classes are built in or declared (for an interface or abstract class write Object)',
      inQuotes(text),
    )
  }

  const result = slot()
  return at === tokens.length ? result : fail()
}
