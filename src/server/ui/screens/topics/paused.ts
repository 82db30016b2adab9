import type { Paused } from '../../api/types.js'

/** The paused sides of a topic. */
export function pausedSides(paused: Paused | undefined): readonly ('receive' | 'push')[] {
  if (paused === undefined || paused === null || paused === false) return []
  if (paused === true) return ['receive']
  const given = typeof paused === 'string' ? [paused] : paused
  return (['receive', 'push'] as const).filter((side) => given.includes(side))
}

export function pausedText(paused: Paused | undefined): string | undefined {
  const sides = pausedSides(paused)
  if (sides.length === 0) return undefined
  return sides.length === 2 ? 'paused' : sides[0] === 'push' ? 'pushes paused' : 'receiving paused'
}
