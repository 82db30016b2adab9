import { aboutQueue, type Finding } from '../finding.js'
import type { QueueState } from '../inspect-queue.js'
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
