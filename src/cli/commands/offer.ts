import { dueOf } from '../../index.js'
import { findFamilies } from '../../doctor/families.js'
import { quoted } from '../../text.js'
import { parseCodec, parseDelay, parseValue, type RawOptions } from '../input.js'
import { isoTime, moment } from '../output.js'
import { withSession } from '../session.js'

export async function offer(queue: string, text: string, delayText: string, options: RawOptions): Promise<void> {
  const delay = parseDelay(delayText)
  const value = parseValue(text, parseCodec(options))
  await withSession(options, async ({ json, delayed, access, print }) => {
    const ticket = await delayed(queue).offer(value, delay)
    const due = dueOf(ticket)
    // alone on stdout, so that a shell script can keep it
    print({ queue, ticket, due, dueAt: isoTime(due) }, () => [ticket])
    if (json) return
    console.error(`due ${moment(due, due - delay)}`)
    // the message is offered: a user without further rights gets no hint
    const { reliable } = await access()
      .then((opened) => findFamilies(opened, [queue]))
      .catch(() => ({ reliable: [] }))
    if (reliable.length > 0) console.error(hint(queue))
  })
}

function hint(queue: string): string {
  return `There is a reliable queue of this name, too, whose consumers do not see this message: redelayed cancel ${quoted(queue)} <ticket> takes it back.`
}
