import { writeEnumMap } from './enum-map.js'
import { JavaObjects } from './java-objects.js'
import { JavaStream, beginsStream } from './java-stream.js'
import { JavaValue } from './java-values.js'
import type { Args, Input, JavaStreams, Serializer } from './serializer.js'

/**
 * Classes for which Redisson uses Java's own serialization: `EnumMap`, and the results of `Collections.unmodifiableList` and
 * similar methods. Each class has one stream in a message, which its later values continue.
 */
export class SerializedStreams implements JavaStreams {
  readonly #streams = new Map<string, JavaStream>()
  #latest: JavaStream | undefined
  readonly #input: Input
  readonly #objects: JavaObjects

  constructor(input: Input) {
    this.#input = input
    this.#objects = new JavaObjects(input)
  }

  read(name: string, args: Args): unknown {
    const input = this.#input
    // a subclass can continue the stream of its superclass
    let stream = beginsStream(input) ? new JavaStream() : (this.#streams.get(name) ?? this.#latest)
    stream ??= input.fail(`${name} continues a stream that did not begin`)
    this.#streams.set(name, stream)
    this.#latest = stream
    return this.#objects.of(stream.read(input), args)
  }
}

function serialized(name: string, write: Serializer['write']): Serializer {
  const serializer: Serializer = {
    name,
    referable: true,
    natural: false,
    write,
    read: (input, args) => {
      const value = input.javaStreams.read(name, args)
      // in exact mode the inner list has its class, but the outer list's class counts
      if (value instanceof JavaValue) return input.wrap(serializer, value.value)
      return value === null ? input.fail(`${name} is null where its class was written`) : input.wrap(serializer, value)
    },
  }
  return serializer
}

function readOnly(simpleName: string): Serializer {
  const name = `java.util.Collections$${simpleName}`
  return serialized(name, (out) => out.refuse(`${name} can be read, but not be written`))
}

const KINDS = [
  'Collection',
  'List',
  'RandomAccessList',
  'Set',
  'SortedSet',
  'NavigableSet',
  'Map',
  'SortedMap',
  'NavigableMap',
]

export const SERIALIZED: readonly Serializer[] = [
  serialized('java.util.EnumMap', writeEnumMap),
  ...['Unmodifiable', 'Synchronized', 'Checked'].flatMap((kind) => KINDS.map((name) => readOnly(kind + name))),
  // of Java 21
  ...['Collection', 'Set', 'Map'].map((name) => readOnly(`UnmodifiableSequenced${name}`)),
]
