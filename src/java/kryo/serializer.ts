import type { Reader } from './reader.js'
import type { Writer } from './writer.js'

/** The declared type of a field or of a type argument. */
export interface Slot {
  /** The declaration, for messages. */
  readonly text: string
  /** The class, where the declaration names one that has instances; not for interfaces and Object. */
  readonly serializer: Serializer | undefined
  /** No subclass is possible, so the wire omits the class. */
  readonly final: boolean
  /** A Java primitive: never null, no marker. */
  readonly primitive: boolean
  readonly args: Args
}

/** The type arguments that a collection knows from the declaration of the field it is in. */
export type Args = readonly Slot[] | undefined

/** Reads and writes the values of one Java class, as Kryo's serializer for that class does. */
export interface Serializer {
  /** The binary name of the Java class. */
  readonly name: string
  /** Kryo's own classes have a number instead of a name. */
  readonly id?: number
  /** The byte for null, for serializers that write null themselves. */
  readonly nullByte?: number
  /** Values can be referred to again in references mode; boxes of primitives and enum constants cannot. */
  readonly referable: boolean
  /** The class of a decoded value is known from the value alone, when it is encoded again. */
  readonly natural: boolean
  /** The value is another Java value, of any class. */
  readonly holds?: boolean
  /** Whether a value of the class `its` can be where this class is declared; only for the classes of declarations. */
  accepts?(its: Serializer): boolean
  write(out: Output, value: unknown, args?: Args): void
  read(input: Input, args?: Args): unknown
}

/** An enum, whose constants Java's own serialization names. */
export interface Constants extends Serializer {
  nameOf(out: Output, value: unknown): string
}

/** Writes the `EnumMap`s of one message. */
export interface EnumMaps {
  write(out: Output, its: Constants, entries: readonly (readonly [unknown, unknown])[], args: Args): void
}

/** Reads the values of one message that Java's own serialization wrote. */
export interface JavaStreams {
  read(name: string, args: Args): unknown
}

export interface Output extends Writer {
  /** Values are written as they were read with their classes, so `null` is null. */
  readonly exact: boolean
  /** The streams of Java's own serialization that this message has. */
  readonly enumMaps: EnumMaps
  /** Sets the path of the next value, for error messages. */
  key(key: string | number): void
  refuse(message: string): never
  enter(): void
  leave(): void
  /** Counts the elements of one more collection. */
  claim(count: number): void
  /** The value to write: the result of its `toJSON` if its class is not declared. */
  own(value: unknown): unknown
  classOf(value: unknown): Serializer
  /** The class of an object, if it is known. */
  known(value: object): Serializer | undefined
  writeClass(serializer: Serializer): void
  /** A value after its class, or null. */
  any(value: unknown, args?: Args): void
  /** A value whose class the reader knows, and that is not null. */
  object(serializer: Serializer, value: unknown, args?: Args): void
  /** A value whose class the reader knows, or null. */
  nullable(serializer: Serializer, value: unknown, args?: Args): void
}

export interface Input extends Reader {
  /** Decoded values keep what is needed to encode them to the same bytes. */
  readonly exact: boolean
  /** Longs are always bigints. */
  readonly bigints: boolean
  enter(): void
  leave(): void
  /** Sets the path of the next value, for error messages. */
  key(key: string | number): void
  /** The streams of Java's own serialization that this message has. */
  readonly javaStreams: JavaStreams
  /** A class by its name, which Java's own serialization does not number. */
  known(name: string): Serializer | undefined
  readClass(): Serializer | null
  any(args?: Args): unknown
  object(serializer: Serializer, args?: Args): unknown
  nullable(serializer: Serializer, args?: Args): unknown
  /** Registers the value that is being read, so that its content can refer to it. */
  started(value: unknown): void
  /** Replaces an object that `started` registered. */
  replaced(value: unknown, other: unknown): void
  /** The value, as a `JavaValue` if it would lose its class. */
  wrap(serializer: Serializer, value: unknown): unknown
}

/** The classes of a codec. */
export interface Classes {
  of(value: object): Serializer | undefined
  named(name: string): Serializer | undefined
  numbered(id: number): Serializer | undefined
  /** As `named`, also where classes are numbered. */
  known(name: string): Serializer | undefined
  /** Numbers of registered classes; undefined when classes go by name. */
  readonly ids: ReadonlyMap<string, number> | undefined
}
