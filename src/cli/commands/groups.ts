import { countGroup, countGroups, type CountedGroup } from '../../doctor/count-groups.js'
import { measureLimits, sumOfLimits, type LimitFigures } from '../../doctor/measure-reliable.js'
import { inLargestUnit } from '../../duration.js'
import { printable } from '../../text.js'
import { UsageError } from '../failure.js'
import { parseLimit, textOption, type RawOptions } from '../input.js'
import { table } from '../output.js'
import { withSession } from '../session.js'
import { namesOfReliable } from '../whole-queue.js'
import { DEFAULT_LIMIT, MAX_LIMIT } from './peek.js'

const HEADINGS = ['GROUP', 'VISIBLE', 'DELAYED', 'IN FLIGHT', 'DELIVERED', 'PAUSED']

/** Counts the groups of a queue, the paused ones, or one. */
export async function groups(queue: string, options: RawOptions): Promise<void> {
  if (queue === '') throw new UsageError('name: expected a non-empty string')
  const group = textOption(options, 'group')
  const onlyPaused = options['paused'] === true
  const given = textOption(options, 'limit')
  if (group === '') throw new UsageError('--group: expected a non-empty string')
  if (group !== undefined && onlyPaused) throw new UsageError('--paused: not together with --group')
  if (group !== undefined && given !== undefined) throw new UsageError('--limit: not together with --group')
  const limit = parseLimit(given, DEFAULT_LIMIT, MAX_LIMIT)
  await withSession(options, async (session) => {
    const names = await namesOfReliable(session, queue)
    const { sender } = await session.access()
    const [counted, limits] = await Promise.all([
      group === undefined
        ? countGroups(sender, names, { limit, onlyPaused })
        : countGroup(sender, names, group).then((one) => ({ groups: [one], isAll: true })),
      Promise.all(names.map((name) => measureLimits(sender, name))).then(sumOfLimits),
    ])
    const found = [...counted.groups].sort(byVisible)
    const { groupConcurrency = null, groupRateLimit = null } = limits?.limits ?? {}
    session.print(
      { queue, concurrency: groupConcurrency, rateLimit: groupRateLimit, groups: found, isAll: counted.isAll },
      () => lines(found, counted.isAll, limits),
    )
  })
}

function byVisible(a: CountedGroup, b: CountedGroup): number {
  return b.visible - a.visible || (a.group < b.group ? -1 : 1)
}

function lines(found: readonly CountedGroup[], isAll: boolean, limits: LimitFigures | null): string[] {
  const { groupConcurrency = null, groupRateLimit = null } = limits?.limits ?? {}
  const each = [
    ...(groupConcurrency === null ? [] : [`${groupConcurrency} at once`]),
    ...(groupRateLimit === null ? [] : [`${groupRateLimit.max} in ${inLargestUnit(groupRateLimit.perMs)}`]),
  ]
  const rows = found.map(({ group, visible, delayed, inFlight, delivered, paused }) => [
    printable(group),
    ...[visible, delayed, inFlight, delivered].map(String),
    paused ? 'paused' : '-',
  ])
  return [
    ...(each.length === 0 ? [] : [`Limits of each group: ${each.join(', ')}.`]),
    ...(found.length === 0 ? ['No group was found.'] : table([HEADINGS, ...rows])),
    ...(isAll ? [] : [`There are more groups than these ${found.length}: --limit shows up to ${MAX_LIMIT}.`]),
  ]
}
