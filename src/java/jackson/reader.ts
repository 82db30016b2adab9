import { describe } from '../../errors.js'
import { quoted } from '../../text.js'
import { BYTES_OF, type Budget } from '../../codecs/budget.js'
import { MAX_DEPTH } from '../../codecs/codec.js'
import { JavaValue } from '../kryo/java-values.js'
import { ANY, itemOfArray, type Spec } from './field-types.js'
import { kindOf, looksLikeClassName, type Kind } from './java-types.js'
import { defineProperty, setProperty, type Node } from './nodes.js'
import type { ClassPlan, Plan } from './plan.js'
import { ScalarReader } from './scalars-in.js'

const CLASS = '@class'
type Properties = Record<string, Node>

/** Converts the nodes of a parser to values: checks and removes Java's type information. Changes arrays and objects in place. */
export class Reader {
  readonly #plan: Plan
  readonly #scalars: ScalarReader

  /** With `rounded` the nodes come from `JSON.parse`, which may have changed numbers. */
  constructor(plan: Plan, budget: Budget, rounded = false) {
    this.#plan = plan
    this.#scalars = new ScalarReader(plan, budget, rounded)
  }

  read(node: Node): unknown {
    return this.#typed(node, this.#plan.root, 0)
  }

  /** A value for a field of type Object in Java, whose type is on the wire. */
  #any(node: Node, depth: number): unknown {
    if (typeof node !== 'object') return this.#scalars.scalar(node)
    if (node === null) return null
    if (Array.isArray(node)) return this.#plan.wrapped ? this.#pairOrItems(node, depth) : this.#items(node, ANY, depth)
    if (Object.getPrototypeOf(node) !== Object.prototype) return this.#scalars.scalar(node)
    return this.#object(node as Properties, depth)
  }

  #pairOrItems(node: Node[], depth: number): unknown {
    if (!this.#isPair(node)) return this.#items(node, ANY, depth)
    const [name, content] = node as [string, Node]
    return this.#pair(name, kindOf(name), content, depth)
  }

  #isPair(node: Node[]): boolean {
    const [name] = node
    if (node.length !== 2 || typeof name !== 'string') return false
    return kindOf(name) !== 'unknown' || this.#plan.classes.has(name) || looksLikeClassName(name)
  }

  #pair(name: string, kind: Kind, content: Node, depth: number): unknown {
    switch (kind) {
      case 'long':
        return this.#scalars.long(content)
      case 'integer':
        return this.#keep(name, 'java.lang.Integer', this.#scalars.int(content, -(2 ** 31), 2 ** 31 - 1))
      case 'double':
        return this.#keep(name, '', this.#scalars.double(content))
      case 'string':
        return this.#keep(name, 'java.lang.String', this.#scalars.string(content))
      case 'boolean':
        return this.#scalars.boolean(content)
      case 'date':
        return this.#scalars.date(content)
      case 'uuid':
        return new JavaValue(name, this.#scalars.uuid(content))
      case 'decimal':
        return new JavaValue(name, this.#scalars.decimal(content))
      case 'biginteger':
        return new JavaValue(name, this.#scalars.bigInteger(content))
      case 'bytes':
        return this.#scalars.bytes(content)
      case 'array':
      case 'doubles':
        return this.#keep(name, '', this.#items(content, itemOfArray(name), depth))
      case 'list':
        return this.#keep(name, 'java.util.ArrayList', this.#items(content, ANY, depth))
      case 'set':
        return this.#keep(name, 'java.util.HashSet', this.#set(content, ANY, depth))
      case 'map':
        return this.#keep(name, 'java.util.LinkedHashMap', this.#entries(this.#scalars.properties(content), ANY, depth))
      case 'unknown':
        return this.#unknownPair(name, content, depth)
    }
  }

  /** The value, in exact mode with its class, unless it would be written as that class anyway. */
  #keep(name: string, natural: string, value: unknown): unknown {
    return this.#plan.exact && name !== natural ? new JavaValue(name, value) : value
  }

  #unknownPair(name: string, content: Node, depth: number): unknown {
    const known = this.#plan.classes.get(name)
    if (known !== undefined && typeof content === 'object' && content !== null && !Array.isArray(content)) {
      return this.#fields(this.#scalars.properties(content), known, depth)
    }
    if (known === undefined && this.#plan.unknownClass === 'refuse')
      this.#fail(`the class ${quoted(name)} is not known`)
    this.#nest(depth)
    const value = this.#contentOfUnknown(content, depth + 1)
    if (value === null) this.#fail(`a ${name} is null`)
    return new JavaValue(name, value)
  }

  /** A list, or any value; a value with a class keeps it, so that it is written with that class again. */
  #contentOfUnknown(content: Node, depth: number): unknown {
    const [name] = Array.isArray(content) ? (content as Node[]) : []
    if (typeof name !== 'string' || !this.#isPair(content as Node[])) {
      return Array.isArray(content) ? this.#items(content, ANY, depth) : this.#any(content, depth)
    }
    const value = this.#any(content, depth)
    const natural = value instanceof JavaValue || value instanceof Date || Buffer.isBuffer(value)
    return natural || typeof value !== 'object' ? value : new JavaValue(name, value)
  }

  #nest(depth: number): void {
    if (depth >= MAX_DEPTH) this.#fail(`it nests deeper than ${MAX_DEPTH} levels`)
  }

  #items(node: Node, spec: Spec, depth: number): unknown[] {
    if (!Array.isArray(node)) this.#fail(`expected an array, got ${describe(node)}`)
    this.#nest(depth)
    const items = node as unknown[]
    for (let i = 0; i < items.length; i++) {
      const item = items[i]
      if (spec !== ANY || !(typeof item === 'string' || isSmall(item))) items[i] = this.#typed(item, spec, depth + 1)
    }
    return items
  }

  #set(node: Node, spec: Spec, depth: number): Set<unknown> {
    const items = this.#items(node, spec, depth)
    this.#scalars.spend(BYTES_OF.set)
    const set = this.#scalars.setOf(items)
    if (set.size !== items.length) this.#fail('a set has two elements that are one value here; longs: bigint may help')
    return set
  }

  #object(node: Properties, depth: number): unknown {
    const name = this.#plan.wrapped && Object.hasOwn(node, CLASS) ? node[CLASS] : undefined
    if (name === undefined) return this.#inPlace(node, ANY, depth)
    if (typeof name !== 'string') this.#fail(`an @class is ${describe(name)}`)
    const known = this.#plan.classes.get(name)
    if (known !== undefined) return this.#fields(node, known, depth)
    if (kindOf(name) === 'map') return this.#keep(name, 'java.util.LinkedHashMap', this.#entries(node, ANY, depth))
    if (this.#plan.unknownClass === 'refuse') this.#fail(`the class ${quoted(name)} is not known`)
    if (this.#plan.unknownClass === 'map') return this.#entries(node, ANY, depth)
    return this.#plan.exact ? new JavaValue(name, this.#entries(node, ANY, depth)) : this.#inPlace(node, ANY, depth)
  }

  #inPlace(node: Properties, spec: Spec, depth: number): unknown {
    this.#nest(depth)
    for (const key of Object.keys(node)) {
      const part = node[key]
      if (spec === ANY && (typeof part === 'string' || isSmall(part))) continue
      const value = this.#typed(part, spec, depth + 1)
      if (value !== part) setProperty(node, key, value)
    }
    return node
  }

  /** The entries of a map, without its class. */
  #entries(node: Properties, spec: Spec, depth: number): unknown {
    // `delete` would leave a slow object behind
    const { [CLASS]: _, ...entries } = node
    return this.#inPlace(this.#plan.wrapped ? entries : node, spec, depth)
  }

  #fields(node: Properties, known: ClassPlan, depth: number): unknown {
    this.#nest(depth)
    const instance = (known.prototype === undefined ? {} : Object.create(known.prototype)) as Properties
    if (known.prototype === undefined && this.#plan.wrapped) instance[CLASS] = known.name
    for (const key of Object.keys(node)) {
      if (key === CLASS && this.#plan.wrapped) continue
      const spec = known.fields.get(key)
      const value =
        spec === undefined ? this.#any(node[key], depth + 1) : this.#field(known, key, node[key], spec, depth + 1)
      if (key in instance) defineProperty(instance, key, value)
      else instance[key] = value
    }
    return instance
  }

  #field(known: ClassPlan, key: string, node: Node, spec: Spec, depth: number): unknown {
    const outer = this.#scalars.where
    this.#scalars.where = `${known.name}.${key}`
    const value = this.#typed(node, spec, depth)
    this.#scalars.where = outer
    return value
  }

  /** A declared type, which decides whether the class must be before the value, as in Jackson. */
  #typed(node: Node, spec: Spec, depth: number): unknown {
    if (node === null) return null
    switch (spec.kind) {
      case 'any':
        return this.#any(node, depth)
      case 'int':
        return this.#scalars.int(node, spec.min, spec.max)
      case 'long':
        return this.#scalars.long(node)
      case 'Long':
        return this.#scalars.long(this.#content(node, 'long'))
      case 'double':
      case 'float':
        return this.#scalars.double(node)
      case 'boolean':
        return this.#scalars.boolean(node)
      case 'string':
        return this.#scalars.string(node)
      case 'date':
        return this.#scalars.date(this.#content(node, 'date'))
      case 'uuid':
        return this.#scalars.uuid(Array.isArray(node) ? this.#content(node, 'uuid') : node)
      case 'decimal':
        return new JavaValue('java.math.BigDecimal', this.#scalars.decimal(this.#content(node, 'decimal')))
      case 'biginteger':
        return this.#scalars.bigInteger(this.#content(node, 'biginteger'))
      case 'bytes':
        return this.#scalars.bytes(node)
      case 'array':
        if (spec.wrapper === undefined) return this.#items(node, spec.item, depth)
        return this.#items(this.#content(node, 'array'), spec.item, depth)
      case 'list':
        return this.#as(node, spec.className, this.#items(this.#content(node, 'list', 'set'), spec.item, depth))
      case 'set':
        return this.#as(node, spec.className, this.#set(this.#content(node, 'set', 'list'), spec.item, depth))
      case 'map': {
        const content = Array.isArray(node) ? this.#content(node, 'map') : node
        return this.#as(node, spec.className, this.#entries(this.#scalars.properties(content), spec.item, depth))
      }
      case 'class':
        return this.#instance(node, spec.name, depth)
      default:
        return spec satisfies never
    }
  }

  /** The collection, in exact mode with its class if that is not the declared one. */
  #as(node: Node, declared: string, value: unknown): unknown {
    if (!this.#plan.exact) return value
    const name = Array.isArray(node) ? (node as Node[])[0] : (node as Properties)[CLASS]
    return typeof name === 'string' ? this.#keep(name, declared, value) : value
  }

  /** The value after the class name in a pair; in plain JSON the node itself. */
  #content(node: Node, ...kinds: Kind[]): Node {
    if (!this.#plan.wrapped) return node
    if (!Array.isArray(node) || node.length !== 2 || typeof node[0] !== 'string') {
      this.#fail(`expected a pair of a class and a ${kinds[0] ?? ''}, got ${describe(node)}`)
    }
    if (!kinds.includes(kindOf(node[0]))) this.#fail(`expected a ${kinds[0] ?? ''}, got a ${quoted(node[0])}`)
    return node[1] as Node
  }

  /** An object of the declared class, or of a subclass that names itself. */
  #instance(node: Node, name: string, depth: number): unknown {
    const properties = this.#scalars.properties(node)
    if (this.#plan.wrapped && properties[CLASS] !== undefined) return this.#object(properties, depth)
    const known = this.#plan.classes.get(name)
    return known === undefined ? this.#inPlace(properties, ANY, depth) : this.#fields(properties, known, depth)
  }

  #fail(message: string): never {
    return this.#scalars.fail(message)
  }
}

/** Whether a node is a number that no parser can have changed. */
function isSmall(node: Node): boolean {
  return typeof node === 'number' && node <= Number.MAX_SAFE_INTEGER && node >= Number.MIN_SAFE_INTEGER
}
