import { aboutQueue, counted, type Finding } from '../finding.js'
import type { QueueState } from '../inspect-queue.js'

/** Whether the order list agrees with the schedule. */
export function checkOrder({ name, contents }: QueueState): Finding[] {
  if (contents === undefined) return []
  const { missing, suspected, orphans, readInTime } = contents
  const findings: Finding[] = []
  if (readInTime !== undefined) {
    const found = `The doctor stopped after ${counted(readInTime, 'entry', 'entries')} of the order list and the schedule.`
    findings.push(aboutQueue(name, 'partly-examined', 'info', found, { readInTime }))
  }
  if (missing.length > 0) {
    const seen = counted(missing.length, 'pending entry is', 'pending entries are')
    const rest = suspected > 0 ? `, and perhaps ${suspected.toLocaleString('en')} more` : ''
    const found = `${seen} not in the order list${rest}.`
    findings.push(aboutQueue(name, 'order-missing', 'warning', found, { missing: missing.length, suspected }))
  }
  if (missing.length === 0 && suspected > 0) {
    const seen = counted(suspected, 'pending entry was', 'pending entries were')
    const found = `${seen} not seen in the order list, which is too long or changes too fast to be checked again.`
    findings.push(aboutQueue(name, 'order-missing', 'info', found, { missing: 0, suspected }, false))
  }
  if (orphans > 0) {
    const found = `${counted(orphans, 'element')} of the order list ${orphans === 1 ? 'is' : 'are'} not pending.`
    findings.push(aboutQueue(name, 'order-orphan', 'warning', found, { orphans }))
  }
  return findings
}
