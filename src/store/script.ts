import type { CommandArg } from './sender.js'

export type { CommandArg } from './sender.js'

/** A script from the generator: its text, and the names and types that its header declares. */
export interface ScriptSource {
  readonly name: string
  readonly sha1: string
  readonly keys: readonly string[]
  readonly args: Readonly<Record<string, keyof ArgTypes>>
  readonly source: string
}

interface ArgTypes {
  text: string
  integer: number
  number: number
  bytes: Uint8Array
  flag: boolean
  'text*': readonly string[]
  /** Texts are sent as UTF-8, which costs less than bytes made of them. */
  'bytes*': readonly (Uint8Array | string)[]
}

export type KeysOf<S extends ScriptSource> = { readonly [K in S['keys'][number]]: string }
export type ArgsOf<S extends ScriptSource> = { readonly [A in keyof S['args']]: ArgTypes[S['args'][A]] }

/** A script together with the function that turns its raw reply into a typed result, or throws. */
export interface Script<S extends ScriptSource, R> {
  readonly source: S
  readonly decode: (reply: unknown) => R
}

export function script<const S extends ScriptSource, R>(source: S, decode: (reply: unknown) => R): Script<S, R> {
  return Object.freeze({ source, decode })
}

/** Keys and arguments in the order of the script's header, for EVAL and EVALSHA. */
export function commandArgs<S extends ScriptSource>(source: S, keys: KeysOf<S>, args: ArgsOf<S>): CommandArg[] {
  const list: CommandArg[] = [String(source.keys.length)]
  for (const key of source.keys) list.push(keys[key as keyof KeysOf<S>])
  for (const name in source.args) push(list, args[name] as ArgTypes[keyof ArgTypes])
  return list
}

function push(list: CommandArg[], value: ArgTypes[keyof ArgTypes]): void {
  if (typeof value === 'string') list.push(value)
  else if (typeof value === 'number') list.push(String(value))
  else if (typeof value === 'boolean') list.push(value ? '1' : '0')
  else if (value instanceof Uint8Array) list.push(asBuffer(value))
  else for (const item of value) list.push(typeof item === 'string' ? item : asBuffer(item))
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
