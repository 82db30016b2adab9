import { inLargestUnit } from '../../duration.js'
import { clean, quoted } from '../../text.js'
import { aboutQueue, counted, type Finding } from '../finding.js'
import type { Figures, ReliableState } from '../inspect-reliable.js'
import { checkChanges } from './changes.js'

/** Whether the stored data of a reliable queue have an effect. Any client can have written them, so the text is cleaned. */
export function checkReliable({
  name,
  wrongTypes,
  settings,
  repeats,
  changes,
  figures,
  claims,
  refusals,
}: ReliableState): Finding[] {
  const findings = wrongTypes.map(({ key, type, expected }) =>
    aboutQueue(name, 'wrong-type', 'error', `${key} is a ${type}, not a ${expected}.`, { key, type, expected }),
  )
  for (const { name: setting, value } of settings) {
    const shown = value === null ? 'a long text' : quoted(value)
    const found = `The stored setting ${setting} is ${shown}.`
    findings.push(aboutQueue(name, 'setting-without-effect', 'warning', found, { setting, value: shown }))
  }
  const { stored, examined, unreadable, examples } = repeats
  if (unreadable > 0) {
    const among = examined < stored ? ` among the ${examined.toLocaleString('en')} that were read` : ''
    const first = examples.map(({ name: repeat, why }) => `${quoted(repeat)}: ${clean(why, 200)}`)
    const found = `${counted(unreadable, 'stored repeat')} cannot be read${among}: ${first.join('; ')}.`
    findings.push(aboutQueue(name, 'repeat-unreadable', 'warning', found, { unreadable, examined, stored }))
  }
  if (figures !== undefined) findings.push(...checkFlow(name, figures))
  if (claims && claims.counted > claims.held) {
    const { counted: many, held, group, most } = claims
    const found = `Groups have ${counted(many, 'claim')} by their counts, and consumers ${counted(held, 'message')}; the group with most is ${quoted(group)} with ${most}.`
    findings.push(aboutQueue(name, 'group-claims-lost', 'warning', found, { counted: many, held, group, most }))
  }
  if (changes !== undefined) findings.push(...checkChanges(name, changes))
  for (const [what, why] of refusals.list) {
    findings.push(aboutQueue(name, 'not-examined', 'info', `Could not examine ${what}: ${why}.`, { what, why }))
  }
  return findings
}

/** Whether messages can come and go. A queue is paused on purpose, but the purpose may be forgotten. */
function checkFlow(name: string, { visible, oldestMs, addPaused, pollPaused, repeats, groups }: Figures): Finding[] {
  const findings: Finding[] = []
  const operations = [...(addPaused ? ['add'] : []), ...(pollPaused ? ['poll'] : [])]
  if (operations.length > 0) {
    const waits = pollPaused && visible > 0
    const wait = waits
      ? `; ${counted(visible, 'message waits', 'messages wait')}, up to ${inLargestUnit(oldestMs)}`
      : ''
    const found = `Disabled in all processes: ${operations.join(', ')}${wait}.`
    const figures = { operations: operations.join(', '), visible, oldestMs }
    findings.push(aboutQueue(name, 'paused', waits ? 'warning' : 'info', found, figures))
  }
  if (groups.paused > 0) {
    const { paused, ready, later } = groups
    const found = `${counted(paused, 'group is', 'groups are')} paused; ${ready} have turns, and ${later} wait for a time.`
    findings.push(aboutQueue(name, 'groups-paused', 'info', found, { paused, ready, later }))
  }
  const { stuck, stored } = repeats
  if (stuck > 0 && !pollPaused) {
    const found = `${counted(stuck, 'stored repeat')} had a tick ten seconds ago or earlier, and no message was prepared.`
    findings.push(aboutQueue(name, 'repeat-stuck', 'warning', found, { stuck, stored }))
  }
  return findings
}
