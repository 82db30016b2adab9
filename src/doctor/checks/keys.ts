import { aboutQueue, counted, type Finding } from '../finding.js'
import { MOST_WRONG } from '../inspect-buckets.js'
import type { QueueState } from '../inspect-queue.js'
import type { WrongType } from '../key-types.js'
import { checkExpiring } from './expiring.js'

/** Whether the keys are of the right types, and the user may access them. */
export function checkKeys({
  name,
  wrongTypes,
  expiring,
  contents,
  denied,
  refusals,
  hasSpreadKeys,
}: QueueState): Finding[] {
  const findings = wrongTypes.map(({ key, type, expected }) =>
    aboutQueue(name, 'wrong-type', 'error', `${key} is a ${type}, not a ${expected}.`, { key, type, expected }),
  )
  const [first] = contents?.buckets?.wrongTypes ?? []
  if (first !== undefined) findings.push(wrongBuckets(name, first, contents?.buckets?.wrongTypes.length ?? 0))
  // an application can want it: `expire` of a delayed queue
  findings.push(...checkExpiring(name, 'info', expiring))
  findings.push(...checkExpiring(name, 'warning', contents?.buckets?.expiring))
  if (hasSpreadKeys) findings.push(aboutQueue(name, 'cross-slot', 'error', 'Its keys are in different slots.'))
  if (denied.length > 0) {
    const found = `The user may not use ${denied.join(', ')}.`
    findings.push(aboutQueue(name, 'acl-missing', 'error', found, { denied }))
  }
  for (const [what, why] of refusals.list) {
    findings.push(aboutQueue(name, 'not-examined', 'info', `Could not examine ${what}: ${why}.`, { what, why }))
  }
  return findings
}

/** One finding for all buckets: another program can have written any number. */
function wrongBuckets(name: string, { key, type, expected }: WrongType, keys: number): Finding {
  const many = `${keys < MOST_WRONG ? '' : 'At least '}${counted(keys, 'key', 'keys')} of minutes ${keys === 1 ? 'has' : 'have'} another type`
  return aboutQueue(name, 'wrong-type', 'error', `${many}: ${key} is a ${type}, not a ${expected}.`, {
    keys,
    key,
    type,
    expected,
  })
}
