/** The values of random calls: few different ones, so that they meet each other. */
import fc from 'fast-check'
import { lengthOf, old, ordered, raw, unordered } from '../support.js'
import { text } from './keyspace.js'
import type { World } from './operation.js'

/** Long, because a lease ends by the server's clock too, and no model knows how long a test takes. */
export const LEASE = 60_000
export const IDLE = 3_600_000

/** Few, so that entries meet again; both ends of the range of bytes among them. */
const id = fc.string({ minLength: 1, maxLength: 2, unit: fc.constantFrom('a', 'b', '\x00', '\x7f', '\xff') })
/** The last one ends as an entry with the payload `p` does. */
export const payload = fc.constantFrom('p', 'q', '', '\xff\x00', 'longer', `${text(lengthOf(raw('p')))}p`)
export const which = fc.nat({ max: 50 })
export const count = fc.integer({ min: 1, max: 4 })
/** After how many bytes a page ends; plenty for all, mostly. */
export const bytes = fc.constantFrom(1_000_000, 1_000_000, 1, 3, 30)
export const page = fc.record({ from: fc.nat({ max: 4 }), page: count, bytes })

/** Milliseconds; rarely up to the last due time there is, or past it. */
export const delay = fc.oneof(
  { weight: 12, arbitrary: fc.constant(20) },
  { weight: 12, arbitrary: fc.nat({ max: 40 }) },
  { weight: 1, arbitrary: fc.constantFrom('the last', 'too late') },
)

export function delayMs(drawn: number | string, now: number): number {
  if (typeof drawn === 'number') return drawn
  return Number.MAX_SAFE_INTEGER - now + (drawn === 'too late' ? 1 : 0)
}

export const entry = fc.record({ kind: which, id, payload })

/** An entry as this package offers it with `layout: 'redisson'`, in both formats, or with `'compact'`. */
export function entryOf(drawn: { kind: number; id: string; payload: string }, layout: World['layout']): string {
  const redisson = [ordered, (id: string, of: string) => ordered(id, of, 16), old]
  const compact = [(id: string, of: string) => unordered(id, of, 5), (id: string, of: string) => unordered(id, of, 13)]
  const kinds = { redisson, compact, mixed: [...redisson, ...compact] }[layout]
  return text(pick(kinds, drawn.kind)!(drawn.id, drawn.payload))
}

export function pick<T>(from: readonly T[], number: number): T | undefined {
  return from[number % Math.max(1, from.length)]
}
