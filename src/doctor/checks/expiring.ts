import { inLargestUnit } from '../../duration.js'
import { aboutQueue, counted, type Finding, type Level } from '../finding.js'
import type { ExpiringKey } from '../key-types.js'

/** Whether Redis will delete keys of the queue; the figures name the one that it deletes first. */
export function checkExpiring(name: string, level: Level, expiring: readonly ExpiringKey[] | undefined): Finding[] {
  const [first] = [...(expiring ?? [])].sort((a, b) => a.inMs - b.inMs)
  if (expiring === undefined || first === undefined) return []
  const found = `${counted(expiring.length, 'key expires', 'keys expire')}, the first in ${inLargestUnit(first.inMs)}: ${first.key}.`
  return [aboutQueue(name, 'expires', level, found, { keys: expiring.length, first: first.key, inMs: first.inMs })]
}
