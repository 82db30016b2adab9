import { asText } from '../store/replies.js'
import type { Sender } from '../store/sender.js'

/** A key that holds another type of value than it should. */
export interface WrongType {
  readonly key: string
  readonly type: string
  readonly expected: string
}

/** The keys that exist and are of another type. */
export async function wrongTypesOf(
  sender: Sender,
  expected: readonly (readonly [key: string, type: string])[],
): Promise<WrongType[]> {
  const found = await Promise.all(
    expected.map(async ([key, type]) => ({
      key,
      expected: type,
      type: asText(await sender.call('TYPE', [key], { idempotent: true })),
    })),
  )
  return found.filter(({ type, expected: right }) => type !== 'none' && type !== right)
}
