import { printable, quoted } from '../../text.js'
import { NegativeResult, UsageError } from '../failure.js'
import type { RawOptions } from '../input.js'
import { isoTime, table } from '../output.js'
import { withSession } from '../session.js'

const HEADINGS = ['BATCH', 'STATE', 'TOTAL', 'PENDING', 'COMPLETED', 'DEAD', 'EXPIRED', 'REMOVED', 'FINISHED']

export async function batch(queue: string, name: string, options: RawOptions): Promise<void> {
  if (queue === '' || name === '') throw new UsageError('name: expected a non-empty string')
  await withSession(options, async ({ reliable, print }) => {
    const counts = await reliable(queue).batch(name).counts()
    if (counts === null) {
      const why = 'nothing was added to it, or it finished so long ago that it was forgotten'
      throw new NegativeResult(`the reliable queue ${quoted(queue)} has no batch ${quoted(name)}: ${why}`)
    }
    const { state, total, pending, completed, dead, expired, removed } = counts
    const finishedTime = isoTime(counts.finishedAt)
    print({ queue, batch: name, ...counts, finishedTime }, () => {
      const numbers = [total, pending, completed, dead, expired, removed].map(String)
      return table([HEADINGS, [printable(name), state, ...numbers, finishedTime ?? '-']])
    })
  })
}
