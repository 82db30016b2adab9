import { findFamilies } from '../../doctor/families.js'
import { measureReliable } from '../../doctor/measure-reliable.js'
import { quoted } from '../../text.js'
import { confirm } from '../confirm.js'
import { NegativeResult, UsageError } from '../failure.js'
import { parseWhich, type RawOptions } from '../input.js'
import { moveByIds, moveInPages } from '../moving.js'
import { withSession } from '../session.js'

const PRIORITIES = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]

export async function move(from: string, to: string, options: RawOptions): Promise<void> {
  if (from === '' || to === '') throw new UsageError('name: expected a non-empty string')
  if (from === to) throw new UsageError('to: expected another queue')
  const { count, ids } = parseWhich(options)
  await withSession(options, async ({ reliable: open, access: openAccess, print }) => {
    const access = await openAccess()
    const { reliable } = await findFamilies(access, [from, to])
    const sharded = reliable.find(({ shards }) => shards !== null)
    if (sharded !== undefined) {
      throw new UsageError(
        `${quoted(sharded.queue)} is sharded: messages of a sharded queue cannot be moved; a shard can be named`,
      )
    }
    if (!reliable.some(({ queue }) => queue === from))
      throw new NegativeResult(`there is no reliable queue ${quoted(from)}`)
    const { visible, delayed } = await measureReliable(access.sender, from)
    const wanted = ids?.length ?? Math.min(count, visible + delayed)
    if (wanted > 0) {
      const what =
        ids === undefined
          ? `${wanted} of ${visible} visible and ${delayed} delayed messages`
          : `the messages of ${wanted} ids`
      await confirm(
        `Move ${what} of ${quoted(from)} to ${quoted(to)}, where consumers get them at once?`,
        options['yes'] === true,
      )
    }
    const source = open(from)
    const moves = PRIORITIES.map((priority) => ({
      first: (most: number) => source.move({ to, priority, count: most }),
      those: (some: readonly string[]) => source.move({ to, priority, ids: some }),
    }))
    const moved =
      ids === undefined
        ? await moveInPages(
            moves.map(({ first }) => first),
            wanted,
          )
        : await moveByIds(
            moves.map(({ those }) => those),
            ids,
          )
    print({ from, to, visible, delayed, moved }, () => [`${moved} moved to ${quoted(to)}`])
    if (ids !== undefined && moved < wanted) {
      throw new NegativeResult(
        `${wanted - moved} were not moved: there is none of the id, a consumer has it, or the other queue has it`,
      )
    }
  })
}
