import { findFamilies, namesOf } from '../../doctor/families.js'
import { measureReliable } from '../../doctor/measure-reliable.js'
import { quoted } from '../../text.js'
import { confirm } from '../confirm.js'
import { NegativeResult, UsageError } from '../failure.js'
import { parseWhich, type RawOptions } from '../input.js'
import { moveByIds, moveInPages } from '../moving.js'
import { withSession } from '../session.js'

export async function redrive(queue: string, options: RawOptions): Promise<void> {
  if (queue === '') throw new UsageError('name: expected a non-empty string')
  const { count, ids } = parseWhich(options)
  await withSession(options, async ({ reliable: open, access: openAccess, print }) => {
    const access = await openAccess()
    const names = namesOf((await findFamilies(access, [queue])).reliable)
    if (names.length === 0) throw new NegativeResult(`there is no reliable queue ${quoted(queue)}`)
    const figures = await Promise.all(names.map((name) => measureReliable(access.sender, name)))
    const dead = figures.reduce((sum, one) => sum + one.dead, 0)
    const wanted = ids?.length ?? Math.min(count, dead)
    if (wanted > 0) {
      const what = ids === undefined ? `${wanted} of ${dead} dead letters` : `the dead letters of ${wanted} ids`
      await confirm(`Move ${what} of ${quoted(queue)} back, where consumers get them at once?`, options['yes'] === true)
    }
    const sources = names.map((name) => open(name))
    const moved =
      ids === undefined
        ? await moveInPages(
            sources.map((source) => (most) => source.redrive(most)),
            wanted,
          )
        : await moveByIds(
            sources.map((source) => (some) => source.deadLetters.move({ to: source, ids: some })),
            ids,
          )
    print({ queue, dead, moved }, () => [`${moved} moved back to ${quoted(queue)}`])
    if (ids !== undefined && moved < wanted) {
      throw new NegativeResult(
        `${wanted - moved} were not moved: there is no dead letter of the id, or the queue has a message of it`,
      )
    }
  })
}
