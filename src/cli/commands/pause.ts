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

/** A sharded queue is paused in all of its shards, also in those that have no keys yet: only its processes know how many there are. */
async function change(queue: string, options: RawOptions, paused: boolean): Promise<void> {
  if (queue === '') throw new UsageError('name: expected a non-empty string')
  const operation = oneOf('--operation', textOption(options, 'operation') ?? 'poll', ['poll', 'add'])
  const group = textOption(options, 'group')
  if (group !== undefined && operation === 'add')
    throw new UsageError('--operation: adding to one group cannot be paused; leave --group out')
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
    if (group === undefined) await (paused ? target.disableOperation(operation) : target.enableOperation(operation))
    else await (paused ? target.pauseGroup(group) : target.resumeGroup(group))
    const what = group === undefined ? operation : `the group ${quoted(group)}`
    print({ queue, operation, paused, shards, ...(group !== undefined && { group }) }, () => [
      `${printable(queue)}: ${what} is ${paused ? 'paused' : 'resumed'} in all processes`,
    ])
  })
}
