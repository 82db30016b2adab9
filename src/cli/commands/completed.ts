import { keptCompleted, type KeptCompleted } from '../../doctor/kept-completed.js'
import { inLargestUnit } from '../../duration.js'
import { printable } from '../../text.js'
import { UsageError } from '../failure.js'
import { codecOf, parseCodec, parseLimit, parseWhole, textOption, type RawOptions } from '../input.js'
import { moment, table } from '../output.js'
import { heading, warnOfUndecodable } from '../peeked-delayed.js'
import { withSession } from '../session.js'
import { completedDocument, shownCompleted, undecodableOf, valueCell, type ShownCompleted } from '../shown-message.js'
import { namesOfReliable } from '../whole-queue.js'
import { DEFAULT_LIMIT, MAX_LIMIT } from './peek.js'

const MOST_SKIPPED = 1_000_000
const MOST_ID = 60

/** Shows a page of the completed messages that a queue keeps, the latest first. */
export async function completed(queue: string, options: RawOptions): Promise<void> {
  if (queue === '') throw new UsageError('name: expected a non-empty string')
  const limit = parseLimit(textOption(options, 'limit'), DEFAULT_LIMIT, MAX_LIMIT)
  const skip = parseWhole('--skip', textOption(options, 'skip') ?? '0', MOST_SKIPPED, 0)
  const codec = await codecOf(parseCodec(options))
  await withSession(options, async (session) => {
    const names = await namesOfReliable(session, queue)
    const found = await keptCompleted((await session.access()).sender, names, { skip, limit })
    const messages = found.messages.map((message) => shownCompleted(message, codec))
    const { now, kept, keepCompleted, keepCompletedFor } = found
    session.print(
      { queue, now, kept, keepCompleted, keepCompletedFor, skip, completed: messages.map(completedDocument) },
      () => lines(found, messages, skip, names.length > 1),
    )
    warnOfUndecodable(undecodableOf(messages.map(({ result }) => result)))
  })
}

function lines(
  { now, kept, keepCompleted, keepCompletedFor }: KeptCompleted,
  messages: readonly ShownCompleted[],
  skip: number,
  isSharded: boolean,
): string[] {
  const bounds = [
    ...(keepCompleted === null ? [] : [`at most ${keepCompleted}`]),
    ...(keepCompletedFor === null ? [] : [`for ${inLargestUnit(keepCompletedFor)}`]),
  ]
  const rule =
    keepCompleted === null
      ? 'The queue keeps no completed messages: set keepCompleted.'
      : `The queue keeps completed messages: ${bounds.join(', ')}${isSharded ? ' in each shard' : ''}.`
  const rows = messages.map(({ queue, id, completedAt, attempts, result }) => [
    `  ${moment(completedAt, now)}`,
    ...(isSharded ? [printable(queue)] : []),
    printable(id, MOST_ID),
    String(attempts),
    result === null ? '-' : valueCell(result),
  ])
  const headings = ['  COMPLETED', ...(isSharded ? ['SHARD'] : []), 'ID', 'ATTEMPTS', 'RESULT']
  const order = skip === 0 ? 'latest first' : `latest first, after ${skip}`
  return [
    rule,
    heading('completed', kept, messages.length, order),
    ...(rows.length === 0 ? [] : table([headings, ...rows])),
  ]
}
