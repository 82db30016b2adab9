import { aboutQueue, counted, deliverable, type Finding } from '../finding.js'
import type { QueueState } from '../inspect-queue.js'

/** Whether every entry can be read and delivered. */
export function checkEntries({ name, rival, contents }: QueueState): Finding[] {
  if (contents === undefined) return []
  const { malformed, malformedDue, negative, old, quarantined } = contents
  // the transfer moves unreadable entries to the quarantine, and delivers the others
  const { isFixable, unless } = deliverable(rival)
  const findings: Finding[] = []
  if (malformed > 0) {
    const isDue = malformedDue > 0
    const found = `${counted(malformed, 'pending entry', 'pending entries')} cannot be read, ${malformedDue.toLocaleString('en')} of them due.${isDue ? unless : ''}`
    const figures = { malformed, malformedDue }
    findings.push(aboutQueue(name, 'malformed', 'warning', found, figures, isDue && isFixable))
  }
  if (negative > 0) {
    const found = `${counted(negative, 'entry has', 'entries have')} a negative due time.`
    findings.push(aboutQueue(name, 'negative-due', 'warning', found + unless, { negative }, isFixable))
  }
  if (old > 0) {
    const found = `${counted(old, 'pending entry is', 'pending entries are')} of the format dLc0.`
    findings.push(aboutQueue(name, 'old-format', 'info', found, { old }))
  }
  if (quarantined > 0) {
    const found = `${counted(quarantined, 'element is', 'elements are')} in the quarantine.`
    findings.push(aboutQueue(name, 'quarantine', 'warning', found, { quarantined }))
  }
  return findings
}
