import { asText } from '../store/replies.js'
import type { Sender } from '../store/sender.js'

/** The type of a key, and the expected one. */
export interface WrongType {
  readonly key: string
  readonly type: string
  readonly expected: string
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
      type: asText(await sender.call('TYPE', [key], { resend: 'reads' })),
    })),
  )
  return found.filter(({ type }) => type !== NOTHING)
}

/** The keys that exist and are of another type. */
export async function wrongTypesOf(
  sender: Sender,
  expected: readonly (readonly [key: string, type: string])[],
): Promise<WrongType[]> {
  return (await typesOf(sender, expected)).filter(isWrong)
}

export function isWrong({ type, expected }: WrongType): boolean {
  return type !== expected
}
