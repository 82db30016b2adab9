import type { BytesOut } from './bytes-out.js'

/** A writer like Jackson's generators, for one wire format. Call `item` and `key` before each item or property. */
export interface Format {
  readonly out: BytesOut
  /** Whether the format needs to know how many properties follow. */
  readonly counts: boolean
  /** Whether bytes have a form of their own, which Java reads as `byte[]` without type information. */
  readonly nativeBytes: boolean
  nil(): void
  text(value: string): void
  bool(value: boolean): void
  /** Writes a safe integer. */
  int(value: number): void
  bigint(value: bigint): void
  /** Writes a BigInteger of any size that the format permits. */
  bigInteger(value: bigint): void
  decimal(text: string): void
  /** Writes a double. With `declared` the reader expects one, so that it may be NaN in every format. */
  double(value: number, declared: boolean): void
  float(value: number): void
  bytes(value: Uint8Array): void
  /** Begins a pair of a class name and a value. */
  openPair(className: string): void
  closePair(): void
  /** `typed` when the array is in a pair; Jackson's CBOR writes such an array differently. */
  openArray(count: number, typed: boolean): void
  item(index: number): void
  closeArray(typed: boolean): void
  /** `className` becomes the first property; `count` others follow. */
  openObject(className: string | undefined, count: number): void
  key(key: string, first: boolean): void
  closeObject(): void
}

/** Rejects a value that the format has no form for; the writer adds the path to it. */
export type Fail = (message: string) => never
