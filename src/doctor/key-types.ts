import { asInteger, asText } from '../store/replies.js'
import type { Sender } from '../store/sender.js'

/** The type of a key, and the expected one. */
export interface WrongType {
  readonly key: string
  readonly type: string
  readonly expected: string
}

/** A key that Redis will delete. */
export interface ExpiringKey {
  readonly key: string
  readonly inMs: number
}

const NOTHING = 'none'

/** The types of the keys that exist, and which they should be. */
export async function typesOf(
  sender: Sender,
  expected: readonly (readonly [key: string, type: string])[],
): Promise<WrongType[]> {
  const found = await Promise.all(
    expected.map(async ([key, type]) => ({
      key,
      expected: type,
      type: await typeOf(sender, key),
    })),
  )
  return found.filter(({ type }) => type !== NOTHING)
}

export async function typeOf(sender: Sender, key: string | Buffer): Promise<string> {
  return asText(await sender.call('TYPE', [key], { resend: 'reads' }))
}

/** The keys that have an expiry. */
export async function expiringOf(sender: Sender, keys: readonly string[]): Promise<ExpiringKey[]> {
  const found = await Promise.all(
    keys.map(async (key) => ({ key, inMs: asInteger(await sender.call('PTTL', [key], { resend: 'reads' })) })),
  )
  return found.filter(({ inMs }) => inMs >= 0)
}

export function isWrong({ type, expected }: WrongType): boolean {
  return type !== expected
}
