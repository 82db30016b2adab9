import { quoted } from '../../text.js'
import { inLargestUnit } from '../../duration.js'
import { aboutQueue, counted, type Code, type Finding } from '../finding.js'
import type { ChangesState } from '../inspect-changes.js'

/** The part of the limit from which the groups count as behind. */
const BEHIND = 0.8
/** The most groups that scripts examine; with more they examine none. */
const MOST_GROUPS = 1_000
/** Readers that have not asked for entries for this long, although there are some, count as dead: Redis keeps them. */
const IDLE_MS = 600_000

/** Whether the change stream of a reliable queue is written, read, and of this package. */
export function checkChanges(queue: string, changes: ChangesState): Finding[] {
  const { epoch, length, limit, groups, groupCount, examined, foreign } = changes
  const findings: Finding[] = []
  const find = (code: Code, level: Finding['level'], found: string, figures: Finding['figures']): void => {
    findings.push(aboutQueue(queue, code, level, found, figures))
  }
  if (epoch?.startsWith('~') === true) {
    find('changes-not-recorded', 'error', 'The last changes could not be written into the change stream.', { epoch })
  }
  if (limit !== null && length >= limit * BEHIND) {
    const isFull = length >= limit
    const found = `The change stream has ${length} of at most ${limit} entries${isFull ? ': adding is refused' : ''}.`
    find('changes-behind', isFull ? 'error' : 'warning', found, { length, limit })
  }
  if (groupCount > MOST_GROUPS) {
    const found = `The change stream has ${groupCount.toLocaleString('en')} groups: with more than ${MOST_GROUPS.toLocaleString('en')} no entry is removed.`
    find('changes-groups', 'error', found, { groups: groupCount })
  }
  if (limit !== null && groupCount === 0) {
    find('changes-unread', 'info', 'No group reads the change stream, so that no entry is removed.', { length, limit })
  }
  for (const { name, consumers, pending, lag, idleMs } of groups) {
    const isIdle = consumers === 0 ? pending + (lag ?? 1) > 0 : (lag ?? 0) > 0 && (idleMs ?? 0) >= IDLE_MS
    if (!isIdle) continue
    const left = lag === null ? 'entries' : counted(pending + lag, 'entry', 'entries')
    const readers =
      consumers === 0 ? 'has no readers' : `has no reader that asked in the last ${inLargestUnit(idleMs ?? 0)}`
    const found = `The group ${quoted(name)} ${readers}, and ${left} of the change stream wait for it.`
    find('change-group-idle', 'warning', found, { group: name, pending, lag })
  }
  if (foreign > 0) {
    const found = `${foreign} of the last ${examined} entries of the change stream are not of this package; readers skip them.`
    find('changes-foreign', 'warning', found, { foreign, examined })
  }
  return findings
}
