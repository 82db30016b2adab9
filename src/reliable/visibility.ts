import { durationMs } from '../duration.js'

/**
 * The longest visibility timeout: a claim that ends later was not written by a client, and polls let it end like a new one. As in
 * shared/longest-visibility.lua.
 */
export const MAX_VISIBILITY_MS = 365 * 86_400_000

/** @throws InvalidArgumentError */
export function visibilityMs(what: string, given: unknown): number {
  return durationMs(what, given, 1, MAX_VISIBILITY_MS)
}
