import { inLargestUnit } from '../../duration.js'
import { aboutQueue, counted, deliverable, type Finding } from '../finding.js'
import { MOST_MISNAMED } from '../found-buckets.js'
import type { QueueState } from '../inspect-queue.js'

/** Whether a client delivers the queue, and in time. */
export function checkDelivery({ name, rival, contents, subscribers }: QueueState): Finding[] {
  if (contents === undefined) return []
  const { pending, overdue, mostOverdueMs, unpromoted, buckets } = contents
  const isAlone = subscribers === 0
  const findings: Finding[] = []
  if (overdue > 0) {
    const late = `${counted(overdue, 'entry is', 'entries are')} overdue by up to ${inLargestUnit(mostOverdueMs)}`
    const who = isAlone ? ': no process holds this delayed queue' : ''
    const figures = { overdue, mostOverdueMs, subscribers }
    const { isFixable, unless } = deliverable(rival)
    const level = isAlone ? 'error' : 'warning'
    findings.push(aboutQueue(name, 'overdue', level, `${late}${who}.${unless}`, figures, isFixable))
  }
  if (unpromoted > 0) {
    const found = `${counted(unpromoted, 'minute of messages is', 'minutes of messages are')} not in the schedule yet.`
    findings.push(aboutQueue(name, 'not-promoted', isAlone ? 'error' : 'warning', found, { unpromoted, subscribers }))
  }
  if (buckets?.isCut === true) {
    const found = 'The doctor has not examined all buckets of messages.'
    findings.push(aboutQueue(name, 'partly-examined', 'info', found))
  }
  if (buckets !== undefined && buckets.lacking > 0) {
    const { lacking } = buckets
    const minutes = counted(lacking, 'minute of messages is', 'minutes of messages are')
    const found = `${minutes} not in the set of buckets, or ${lacking === 1 ? 'has' : 'have'} too late a time there.`
    findings.push(aboutQueue(name, 'minutes-lost', 'warning', found, { lacking }))
  }
  if (buckets !== undefined && buckets.misnamed.length > 0) {
    const keys = buckets.misnamed.length
    const found = `${keys < MOST_MISNAMED ? '' : 'At least '}${counted(keys, 'bucket has', 'buckets have')} a name that is no minute.`
    findings.push(aboutQueue(name, 'bucket-misnamed', 'error', found, { keys, first: buckets.misnamed[0] }))
  }
  if (isAlone && pending > 0) {
    const found = `${counted(pending, 'entry is', 'entries are')} pending, and the channel has no subscriber.`
    findings.push(aboutQueue(name, 'no-subscriber', 'warning', found, { pending, subscribers }))
  }
  return findings
}
