import { dueOf } from '../../index.js'
import { parseCodec, parseDelay, parseValue, type RawOptions } from '../input.js'
import { isoTime, moment } from '../output.js'
import { withSession } from '../session.js'

export async function offer(queue: string, text: string, delayText: string, options: RawOptions): Promise<void> {
  const delay = parseDelay(delayText)
  const value = parseValue(text, parseCodec(options))
  await withSession(options, async ({ json, delayed, print }) => {
    const ticket = await delayed(queue).offer(value, delay)
    const due = dueOf(ticket)
    // alone on stdout, so that a shell script can keep it
    print({ queue, ticket, due, dueAt: isoTime(due) }, () => [ticket])
    if (!json) console.error(`due ${moment(due, due - delay)}`)
  })
}
