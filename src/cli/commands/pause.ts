import { printable, quoted } from '../../text.js'
import { UsageError } from '../failure.js'
import { oneOf, textOption, type RawOptions } from '../input.js'
import { withSession } from '../session.js'
import { parseShards, wholeQueue } from '../whole-queue.js'

export function pause(queue: string, options: RawOptions): Promise<void> {
  return change(queue, options, true)
}

export function resume(queue: string, options: RawOptions): Promise<void> {
  return change(queue, options, false)
}

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
  const shards = parseShards(options)
  await withSession(options, async (session) => {
    const target = await wholeQueue(session, queue, shards, '; the consumers of delayed queues cannot be paused')
    if (task !== undefined) await (paused ? target.pauseTask(task) : target.resumeTask(task))
    else if (group !== undefined) await (paused ? target.pauseGroup(group) : target.resumeGroup(group))
    else await (paused ? target.disableOperation(operation) : target.enableOperation(operation))
    const what =
      task !== undefined ? `the task ${quoted(task)}` : group === undefined ? operation : `the group ${quoted(group)}`
    const only = { ...(group !== undefined && { group }), ...(task !== undefined && { task }) }
    session.print({ queue, operation, paused, shards, ...only }, () => [
      `${printable(queue)}: ${what} is ${paused ? 'paused' : 'resumed'} in all processes`,
    ])
  })
}
