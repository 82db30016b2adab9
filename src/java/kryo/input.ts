import type { Budget } from '../../codecs/budget.js'
import { MAX_DEPTH } from '../../codecs/codec.js'
import { formatPath } from '../../codecs/encodable.js'
import { SerializedStreams } from './java-serialized.js'
import { JavaValue } from './java-values.js'
import { Reader } from './reader.js'
import type { Args, Classes, Input, JavaStreams, Serializer } from './serializer.js'

const NOT_NULL = 1
const DIFFERS =
  '. A declaration before it may differ from the Java class: by a field, or by `final: false` of an enum whose constants have bodies'
const MAX_PATH = 200
/** A placeholder for an object that is being read and must not be referred to before it is complete. */
const UNFINISHED = Symbol('unfinished')

export interface ReadOptions {
  readonly references: boolean
  readonly exact: boolean
  readonly bigints: boolean
}

/** Reads one value and its content: Kryo's `readClassAndObject` and related methods. */
export class ValueReader extends Reader implements Input {
  readonly exact: boolean
  readonly bigints: boolean
  readonly #references: boolean
  readonly #classes: Classes
  readonly #names: Serializer[] = []
  readonly #objects: unknown[] = []
  /** The numbers of the objects that are being read and are not registered yet, innermost last. */
  readonly #open: number[] = []
  readonly #handedOut = new Set<unknown>()
  #javaStreams: JavaStreams | undefined
  #depth = 0
  readonly #path: (string | number)[] = []

  constructor(bytes: Buffer, classes: Classes, options: ReadOptions, budget: Budget) {
    super(bytes, budget)
    this.#classes = classes
    this.#references = options.references
    this.exact = options.exact
    this.bigints = options.bigints
  }

  decode(): unknown {
    const value = this.any()
    if (value === null) this.fail('they hold null, which is no element of a queue')
    if (this.at !== this.bytes.length) this.fail(`${this.bytes.length - this.at} bytes follow the value`)
    return value
  }

  enter(): void {
    if (this.#depth >= MAX_DEPTH) this.fail(`they nest deeper than ${MAX_DEPTH} levels`)
    this.#path[this.#depth++] = '?'
  }

  leave(): void {
    this.#depth--
  }

  key(key: string | number): void {
    this.#path[this.#depth - 1] = key
  }

  override fail(message: string): never {
    if (this.#depth === 0) super.fail(message)
    super.fail(`${message}, at ${formatPath(this.#path.slice(0, Math.min(this.#depth, 8))).slice(0, MAX_PATH)}`)
  }

  get javaStreams(): JavaStreams {
    return (this.#javaStreams ??= new SerializedStreams(this))
  }

  known(name: string): Serializer | undefined {
    return this.#classes.known(name)
  }

  wrap(serializer: Serializer, value: unknown): unknown {
    return this.exact && !serializer.natural ? new JavaValue(serializer.name, value) : value
  }

  readClass(): Serializer | null {
    const tag = this.varint()
    if (tag === 0) return null
    if (tag === 1) return this.#named()
    const serializer = this.#classes.numbered(tag - 2)
    if (serializer === undefined) {
      const [name] = [...(this.#classes.ids ?? [])].find(([, id]) => id === tag - 2) ?? []
      this.fail(
        name === undefined ? `class number ${tag - 2} is not registered${DIFFERS}` : `class ${name} is not declared`,
      )
    }
    return serializer
  }

  #named(): Serializer {
    const number = this.varint()
    const known = this.#names[number]
    if (known !== undefined) return known
    if (number !== this.#names.length) this.fail(`class name ${number} at ${this.at} was not given before`)
    const name = this.string() ?? ''
    const serializer = this.#classes.named(name)
    if (serializer === undefined) {
      const why = this.#classes.ids === undefined ? 'neither built in nor declared' : 'not among the allowedClasses'
      this.fail(`class ${name.slice(0, 200)} is ${why}`)
    }
    this.#names.push(serializer)
    return serializer
  }

  any(args?: Args): unknown {
    const serializer = this.readClass()
    return serializer === null ? null : this.object(serializer, args)
  }

  object(serializer: Serializer, args?: Args): unknown {
    if (!this.#references || !serializer.referable) return serializer.read(this, args)
    return this.#referable(this.varint(), serializer, args)
  }

  nullable(serializer: Serializer, args?: Args): unknown {
    if (this.#references) {
      const number = this.varint()
      if (number === 0) return null
      return serializer.referable ? this.#referable(number, serializer, args) : serializer.read(this, args)
    }
    if (serializer.nullByte !== undefined) return serializer.read(this, args)
    return this.byte() === 0 ? null : serializer.read(this, args)
  }

  #referable(number: number, serializer: Serializer, args: Args): unknown {
    if (number !== NOT_NULL) {
      const object = this.#objects[number - 2]
      if (object === UNFINISHED || object === undefined) this.fail(`reference ${number} at ${this.at} leads nowhere`)
      // only objects: a number cannot be a map, and numbers can be chosen to collide in the set
      if (typeof object === 'object') this.#handedOut.add(object)
      return object
    }
    const mine = this.#objects.push(UNFINISHED) - 1
    const outer = this.#open.push(mine) - 1
    const value = serializer.read(this, args)
    if (this.#open.length > outer) this.#open.pop()
    this.#objects[mine] = value
    return value
  }

  started(value: unknown): void {
    if (!this.#references) return
    const mine = this.#open.pop()
    if (mine !== undefined) this.#objects[mine] = value
  }

  replaced(value: unknown, other: unknown): void {
    if (!this.#references) return
    if (this.#handedOut.has(value)) this.fail('a map that holds itself before a key that is no text cannot be read')
    const number = this.#objects.lastIndexOf(value)
    if (number >= 0) this.#objects[number] = other
  }
}
