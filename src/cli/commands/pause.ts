import { findFamilies } from '../../doctor/families.js'
import { printable, quoted } from '../../text.js'
import { NegativeResult, UsageError } from '../failure.js'
import { oneOf, parseWhole, textOption, type RawOptions } from '../input.js'
import { withSession } from '../session.js'

const MOST_SHARDS = 256

export function pause(queue: string, options: RawOptions): Promise<void> {
  return change(queue, options, true)
}

export function resume(queue: string, options: RawOptions): Promise<void> {
  return change(queue, options, false)
}

/** Pauses or resumes all shards of a sharded queue, also those without keys yet: only the queue's processes know how many there are. */
async function change(queue: string, options: RawOptions, paused: boolean): Promise<void> {
  if (queue === '') throw new UsageError('name: expected a non-empty string')
  const operation = oneOf('--operation', textOption(options, 'operation') ?? 'poll', ['poll', 'add'])
  const group = textOption(options, 'group')
  const task = textOption(options, 'task')
  if (group !== undefined && operation === 'add')
    throw new UsageError('--operation: adding to one group cannot be paused; leave --group out')
  if (task !== undefined && operation === 'add')
    throw new UsageError('--operation: adding of one task cannot be paused; leave --task out')
  if (task !== undefined && group !== undefined) throw new UsageError('--task: give either --task or --group')
  const given = textOption(options, 'shards')
  const shards = given === undefined ? null : parseWhole('--shards', given, MOST_SHARDS)
  await withSession(options, async ({ reliable, sharded, access, print }) => {
    const found = (await findFamilies(await access(), [queue])).reliable
    if (found.length === 0) {
      throw new NegativeResult(
        `there is no reliable queue ${quoted(queue)}; the consumers of delayed queues cannot be paused`,
      )
    }
    const known = found.find((family) => family.shards !== null)?.shards ?? []
    if (shards !== null && known.length === 0) {
      throw new UsageError(`--shards: ${quoted(queue)} is a reliable queue without shards; leave --shards out`)
    }
    const target = shards === null ? reliable(queue) : sharded(queue, shards)
    const names: readonly string[] = 'names' in target ? target.names : [target.name]
    const [unknown] = known.filter((name) => !names.includes(name))
    if (unknown !== undefined) {
      const what = shards === null ? `${quoted(queue)} is sharded` : `--shards: ${shards} are too few`
      throw new UsageError(
        `${what}: ${quoted(unknown)} is one of its shards; give --shards with the number that its processes give`,
      )
    }
    if (task !== undefined) await (paused ? target.pauseTask(task) : target.resumeTask(task))
    else if (group !== undefined) await (paused ? target.pauseGroup(group) : target.resumeGroup(group))
    else await (paused ? target.disableOperation(operation) : target.enableOperation(operation))
    const what =
      task !== undefined ? `the task ${quoted(task)}` : group === undefined ? operation : `the group ${quoted(group)}`
    const only = { ...(group !== undefined && { group }), ...(task !== undefined && { task }) }
    print({ queue, operation, paused, shards, ...only }, () => [
      `${printable(queue)}: ${what} is ${paused ? 'paused' : 'resumed'} in all processes`,
    ])
  })
}
