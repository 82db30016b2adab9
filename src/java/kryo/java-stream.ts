import type { Input } from './serializer.js'

/** The nodes of a stream of Java's own serialization; its grammar is in Java's specification of object serialization. */
export type JavaNode = null | string | number | bigint | boolean | JavaObject | JavaArray | JavaConstant | JavaClassName

/** An object: its fields by name, and the data that the `writeObject` of its classes added. */
export class JavaObject {
  readonly fields = new Map<string, JavaNode>()
  readonly blocks: Buffer[] = []
  readonly objects: JavaNode[] = []
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

export class JavaArray {
  readonly items: JavaNode[] = []
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

export class JavaConstant {
  constant = ''
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

export class JavaClassName {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

class Description {
  flags = 0
  readonly fields: { code: string; name: string }[] = []
  parent: Description | undefined
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

const TAG = {
  null: 0x70,
  reference: 0x71,
  description: 0x72,
  object: 0x73,
  string: 0x74,
  array: 0x75,
  class: 0x76,
  block: 0x77,
  end: 0x78,
  longBlock: 0x7a,
  enum: 0x7e,
} as const
const FLAG = { writeMethod: 1, serializable: 2, externalizable: 4, blockData: 8 } as const
const FIRST_HANDLE = 0x7e0000
const MAGIC = 0xaced_0005

/** Whether a stream begins here; its later objects have no such header. */
export function beginsStream(input: Input): boolean {
  return input.bytes.length - input.at >= 4 && input.bytes.readUInt32BE(input.at) === MAGIC
}

/** The objects of one `ObjectOutputStream`, which refer to each other by number. */
export class JavaStream {
  readonly #handles: (JavaNode | Description)[] = []

  /** The next object. */
  read(input: Input): JavaNode {
    if (beginsStream(input)) input.skip(4)
    return this.#content(input, input.byte())
  }

  #content(input: Input, tag: number): JavaNode {
    input.claim(1)
    switch (tag) {
      case TAG.null:
        return null
      case TAG.reference: {
        const node = this.#referred(input)
        return node instanceof Description ? this.#unreadable(input, tag) : node
      }
      case TAG.string: {
        const text = utf(input)
        this.#handles.push(text)
        return text
      }
      case TAG.object:
        return this.#object(input)
      case TAG.array:
        return this.#array(input)
      case TAG.class:
        return this.#noted(new JavaClassName(this.#described(input).name))
      case TAG.enum: {
        const node = this.#noted(new JavaConstant(this.#described(input).name))
        const constant = this.#content(input, input.byte())
        if (typeof constant !== 'string') return this.#unreadable(input, tag)
        node.constant = constant
        return node
      }
      default:
        return this.#unreadable(input, tag)
    }
  }

  #unreadable(input: Input, tag: number): never {
    return input.fail(`0x${tag.toString(16)} at ${input.at - 1} begins nothing that Java's own serialization has there`)
  }

  #noted<N extends JavaNode>(node: N): N {
    this.#handles.push(node)
    return node
  }

  #referred(input: Input): JavaNode | Description {
    const handle = int(input) - FIRST_HANDLE
    const node = this.#handles[handle]
    return node === undefined ? input.fail(`reference ${handle} at ${input.at} leads nowhere`) : node
  }

  #object(input: Input): JavaObject {
    const description = this.#described(input)
    const object = this.#noted(new JavaObject(description.name))
    const classes: Description[] = []
    for (let each: Description | undefined = description; each !== undefined; each = each.parent) classes.unshift(each)
    input.enter()
    for (const { flags, fields } of classes) {
      if ((flags & FLAG.serializable) !== 0) {
        for (const { code, name } of fields) {
          input.key(name)
          object.fields.set(name, this.#value(input, code))
        }
        if ((flags & FLAG.writeMethod) !== 0) this.#annotation(input, object)
      } else if ((flags & FLAG.externalizable) !== 0) {
        if ((flags & FLAG.blockData) === 0) input.fail(`${object.name} was written in an old format of Java`)
        this.#annotation(input, object)
      }
    }
    input.leave()
    return object
  }

  #array(input: Input): JavaArray {
    const { name } = this.#described(input)
    const array = this.#noted(new JavaArray(name))
    const length = int(input)
    if (length < 0) input.fail(`a length at ${input.at} is negative`)
    input.claim(length)
    input.enter()
    for (let i = 0; i < length; i++) {
      input.key(i)
      array.items.push(this.#value(input, name.charAt(1)))
    }
    input.leave()
    return array
  }

  /** The data that a class wrote itself, until its end. */
  #annotation(input: Input, object: Pick<JavaObject, 'blocks' | 'objects'>): void {
    for (let tag = input.byte(); tag !== TAG.end; tag = input.byte()) {
      if (tag === TAG.block) object.blocks.push(input.raw(input.byte()))
      else if (tag === TAG.longBlock) object.blocks.push(input.raw(int(input) >>> 0))
      else {
        input.key(object.objects.length)
        object.objects.push(this.#content(input, tag))
      }
    }
  }

  #value(input: Input, code: string): JavaNode {
    const { bytes } = input
    switch (code) {
      case 'B':
        return bytes.readInt8(input.skip(1))
      case 'C':
        return String.fromCharCode(bytes.readUInt16BE(input.skip(2)))
      case 'D':
        return bytes.readDoubleBE(input.skip(8))
      case 'F':
        return bytes.readFloatBE(input.skip(4))
      case 'I':
        return int(input)
      case 'J':
        return bytes.readBigInt64BE(input.skip(8))
      case 'S':
        return bytes.readInt16BE(input.skip(2))
      case 'Z':
        return input.boolean()
      case 'L':
      case '[':
        return this.#content(input, input.byte())
      default:
        return input.fail(`a field at ${input.at} has a type that Java does not have`)
    }
  }

  #described(input: Input): Description {
    return this.#description(input) ?? input.fail(`an object at ${input.at} has no class`)
  }

  #description(input: Input): Description | undefined {
    input.claim(1)
    const tag = input.byte()
    if (tag === TAG.null) return undefined
    if (tag === TAG.reference) {
      const known = this.#referred(input)
      return known instanceof Description ? known : this.#unreadable(input, tag)
    }
    if (tag !== TAG.description) this.#unreadable(input, tag)
    const description = new Description(utf(input))
    input.skip(8) // the number of the version
    this.#handles.push(description)
    description.flags = input.byte()
    const fields = input.claim(input.bytes.readUInt16BE(input.skip(2)))
    input.enter() // a class whose superclasses have no end
    for (let i = 0; i < fields; i++) {
      const code = String.fromCharCode(input.byte())
      description.fields.push({ code, name: utf(input) })
      if (code === 'L' || code === '[') this.#content(input, input.byte())
    }
    this.#annotation(input, { blocks: [], objects: [] })
    description.parent = this.#description(input)
    input.leave()
    return description
  }
}

function int(input: Input): number {
  return input.bytes.readInt32BE(input.skip(4))
}

/** Java's modified UTF-8: each half of a surrogate pair by itself, and NUL in two bytes. */
function utf(input: Input): string {
  const bytes = input.raw(input.bytes.readUInt16BE(input.skip(2)))
  if (bytes.every((byte) => byte < 128)) return bytes.toString('latin1')
  let text = ''
  for (let i = 0; i < bytes.length;) {
    const first = bytes[i++] ?? 0
    const tail = () => (bytes[i++] ?? input.fail(`a text before ${input.at} ends within a character`)) & 0x3f
    let unit = first
    if (first >= 0xe0) unit = ((first & 0x0f) << 12) | (tail() << 6) | tail()
    else if (first >= 0xc0) unit = ((first & 0x1f) << 6) | tail()
    text += String.fromCharCode(unit)
  }
  return text
}
