import { dueOf } from '../../index.js'
import { parseCodec, parseDelay, parseValue, type RawOptions } from '../input.js'
import { isoTime, moment, table } from '../output.js'
import { withSession } from '../session.js'

export async function offer(queue: string, text: string, delayText: string, options: RawOptions): Promise<void> {
  const delay = parseDelay(delayText)
  const value = parseValue(text, parseCodec(options))
  await withSession(options, async ({ delayed, print }) => {
    const ticket = await delayed(queue).offer(value, delay)
    const due = dueOf(ticket)
    print({ queue, ticket, due, dueAt: isoTime(due) }, () =>
      table([
        ['ticket', ticket],
        ['due', moment(due, due - delay)],
      ]),
    )
  })
}
