import { inLargestUnit } from '../../duration.js'
import { clean, quoted } from '../../text.js'
import { aboutQueue, counted, type Finding } from '../finding.js'
import type { Figures, ReliableState } from '../inspect-reliable.js'
import type { LeftRecords } from '../left-records.js'
import type { MiscountedBatch } from '../miscounted-batches.js'
import type { TimesAhead } from '../times-ahead.js'
import { checkChanges } from './changes.js'
import { checkExpiring } from './expiring.js'

/** Whether the stored data of a reliable queue are valid. Any client can have written them, so their texts are cleaned. */
export function checkReliable({
  name,
  wrongTypes,
  expiring,
  settings,
  repeats,
  changes,
  figures,
  claims,
  misplaced,
  endingFar = 0,
  timesAhead,
  leftRecords,
  miscounted = [],
  refusals,
}: ReliableState): Finding[] {
  const findings = wrongTypes.map(({ key, type, expected }) =>
    aboutQueue(name, 'wrong-type', 'error', `${key} is a ${type}, not a ${expected}.`, { key, type, expected }),
  )
  findings.push(...checkExpiring(name, 'warning', expiring))
  for (const { name: setting, value } of settings) {
    const shown = value === null ? 'a long text' : quoted(value)
    const found = `The stored setting ${setting} is ${shown}.`
    findings.push(aboutQueue(name, 'setting-without-effect', 'warning', found, { setting, value: shown }))
  }
  const { stored, examined, unreadable, examples, stopped } = repeats
  if (unreadable > 0) {
    const among = examined < stored ? ` among the ${examined.toLocaleString('en')} that were read` : ''
    const first = examples.map(({ name: repeat, why }) => `${quoted(repeat)}: ${clean(why, 200)}`)
    const found = `${counted(unreadable, 'stored repeat')} cannot be read${among}: ${first.join('; ')}.`
    findings.push(aboutQueue(name, 'repeat-unreadable', 'warning', found, { unreadable, examined, stored }))
  }
  if (stopped.length > 0) {
    const found = `Stored repeats that do not go on: ${stopped.map((repeat) => quoted(repeat)).join(', ')}.`
    findings.push(aboutQueue(name, 'repeat-stopped', 'warning', found, { stopped: stopped.length, stored }))
  }
  if (figures !== undefined) findings.push(...checkFlow(name, figures))
  if (figures !== undefined) findings.push(...checkPlaces(name, figures))
  if (claims && claims.counted > claims.held) {
    const { counted: many, held, group, most } = claims
    const found = `Groups have ${counted(many, 'claim')} by their counts, and consumers ${counted(held, 'message')}; the group with most is ${quoted(group)} with ${most}.`
    findings.push(aboutQueue(name, 'group-claims-lost', 'warning', found, { counted: many, held, group, most }))
  }
  if (endingFar > 0) {
    const found = `The visibility of ${counted(endingFar, 'message')} ends in more than 365 days.`
    findings.push(aboutQueue(name, 'visibility-far', 'warning', found, { messages: endingFar }))
  }
  if (timesAhead) findings.push(...checkTimes(name, timesAhead))
  if (leftRecords) findings.push(...checkLeftRecords(name, leftRecords))
  findings.push(...checkBatches(name, miscounted))
  if (misplaced && misplaced.schedules.length + misplaced.messages.length > 0) {
    const { schedules, messages } = misplaced
    const counts = `${counted(schedules.length, 'schedule')} and ${counted(messages.length, 'message')}`
    const first = [...schedules, ...messages].slice(0, 3).map((id) => quoted(clean(id, 200)))
    const found = `${counts} hash to other shards, whatever their number, such as ${first.join(', ')}.`
    const figures = { schedules: schedules.length, messages: messages.length }
    findings.push(aboutQueue(name, 'wrong-shard', 'warning', found, figures))
  }
  if (changes !== undefined) findings.push(...checkChanges(name, changes))
  for (const [what, why] of refusals.list) {
    findings.push(aboutQueue(name, 'not-examined', 'info', `Could not examine ${what}: ${why}.`, { what, why }))
  }
  return findings
}

/** Whether each message is in a schedule or in flight: one script has counted both. */
function checkPlaces(name: string, { total, visible, delayed, inFlight }: Figures): Finding[] {
  const lost = total - visible - delayed - inFlight
  if (lost <= 0) return []
  const found = `${counted(lost, 'message is', 'messages are')} in no schedule and not in flight, of ${total.toLocaleString('en')}.`
  return [aboutQueue(name, 'place-lost', 'warning', found, { lost, total })]
}

/** Whether the times of what has ended have passed. */
function checkTimes(name: string, timesAhead: TimesAhead): Finding[] {
  const { completed, batches, dead, marks } = timesAhead
  const parts = [
    ...(completed > 0
      ? [`${counted(completed, 'message is', 'messages are')} completed more than an hour from now`]
      : []),
    ...(batches > 0 ? [`${counted(batches, 'batch', 'batches')} finished more than an hour from now`] : []),
    ...(dead > 0
      ? [`${counted(dead, 'dead letter is', 'dead letters are')} not visible for more than 365 days from now`]
      : []),
    ...(marks > 0
      ? [`${counted(marks, 'mark of a deduplication ends', 'marks of deduplications end')} in more than 366 days`]
      : []),
  ]
  if (parts.length === 0) return []
  const found = `By their times, ${parts.join(', and ')}.`
  return [aboutQueue(name, 'times-ahead', 'warning', found, { completed, batches, dead, marks })]
}

/** Whether each record has the message or the place that it belongs to. */
function checkLeftRecords(name: string, { messages, batches, completed }: LeftRecords): Finding[] {
  const parts = [
    ...(messages > 0
      ? [`${counted(messages, 'message', 'messages')} that batches wait for and the queue does not have`]
      : []),
    ...(batches > 0 ? [`${counted(batches, 'finished batch', 'finished batches')} without a place`] : []),
    ...(completed > 0 ? [`${counted(completed, 'completed message', 'completed messages')} without a place`] : []),
  ]
  if (parts.length === 0) return []
  const found = `Redis has records of ${parts.join(', and ')}.`
  return [aboutQueue(name, 'records-left', 'warning', found, { messages, batches, completed })]
}

/** Whether each batch has the messages that it counts. */
function checkBatches(name: string, miscounted: readonly MiscountedBatch[]): Finding[] {
  if (miscounted.length === 0) return []
  const sum = (of: 'pending' | 'held'): number => miscounted.reduce((total, batch) => total + batch[of], 0)
  const first = miscounted.slice(0, 3).map((batch) => {
    const [shown, pending] = [quoted(clean(batch.name, 200)), batch.pending.toLocaleString('en')]
    return `${shown} counts ${pending} and has ${batch.held.toLocaleString('en')}`
  })
  const many = counted(miscounted.length, 'batch counts', 'batches count')
  const found = `${many} more pending messages than the queue has of them: ${first.join(', ')}.`
  const figures = { batches: miscounted.length, pending: sum('pending'), held: sum('held') }
  return [aboutQueue(name, 'batch-miscounted', 'warning', found, figures)]
}

/** Whether messages can be added and delivered. A pause is intended, but may have been forgotten. */
function checkFlow(name: string, figures: Figures): Finding[] {
  const { visible, oldestMs, addPaused, pollPaused, repeats, groups, tasks } = figures
  const findings: Finding[] = []
  const operations = [...(addPaused ? ['add'] : []), ...(pollPaused ? ['poll'] : [])]
  if (operations.length > 0) {
    const waits = pollPaused && visible > 0
    const wait = waits
      ? `; ${counted(visible, 'message waits', 'messages wait')}, up to ${inLargestUnit(oldestMs)}`
      : ''
    const found = `Disabled in all processes: ${operations.join(', ')}${wait}.`
    const shown = { operations: operations.join(', '), visible, oldestMs }
    findings.push(aboutQueue(name, 'paused', waits ? 'warning' : 'info', found, shown))
  }
  if (groups.paused > 0) {
    const { paused, ready, later } = groups
    const found = `${counted(paused, 'group is', 'groups are')} paused; ${ready} have turns, and ${later} wait for a time.`
    findings.push(aboutQueue(name, 'groups-paused', 'info', found, { paused, ready, later }))
  }
  if (tasks.paused > 0) {
    const found = `${counted(tasks.paused, 'task is', 'tasks are')} paused in all processes.`
    findings.push(aboutQueue(name, 'tasks-paused', 'info', found, { paused: tasks.paused }))
  }
  const { stuck, stored } = repeats
  if (stuck > 0 && !pollPaused) {
    const found = `${counted(stuck, 'stored repeat')} had a tick ten seconds ago or earlier, and no message was prepared.`
    findings.push(aboutQueue(name, 'repeat-stuck', 'warning', found, { stuck, stored }))
  }
  return findings
}
