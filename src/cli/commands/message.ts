import { findMessage } from '../../doctor/find-message.js'
import { printable, quoted } from '../../text.js'
import { NegativeResult, UsageError } from '../failure.js'
import { codecOf, parseCodec, type RawOptions } from '../input.js'
import { moment, preview, table } from '../output.js'
import { warnOfUndecodable } from '../peeked-delayed.js'
import { withSession } from '../session.js'
import {
  completedDocument,
  messageDocument,
  progressCell,
  shown,
  shownCompleted,
  undecodableOf,
  valueCell,
  type ShownCompleted,
  type ShownMessage,
} from '../shown-message.js'
import { namesOfReliable } from '../whole-queue.js'

const MOST_REASON = 200
/** What a message of a state is, and the heading of its time. */
const STATES = {
  visible: ['visible', 'VISIBLE SINCE'],
  delayed: ['delayed', 'VISIBLE AT'],
  inFlight: ['in flight', 'BACK AT'],
} as const

/** Shows all that a queue has of an id: the message, its progress and failures, the result of a completed one, and its dead letter. */
export async function message(queue: string, id: string, options: RawOptions): Promise<void> {
  if (queue === '') throw new UsageError('name: expected a non-empty string')
  if (id === '') throw new UsageError('id: expected a non-empty string')
  const codec = await codecOf(parseCodec(options))
  await withSession(options, async (session) => {
    const names = await namesOfReliable(session, queue)
    const found = await findMessage((await session.access()).sender, names, id)
    const live = found.message && shown(found.message.queue, found.message, codec)
    const dead = found.deadLetter && shown(found.deadLetter.queue, found.deadLetter, codec)
    const done = found.completed && shownCompleted(found.completed, codec)
    if (live === null && dead === null && done === null) {
      const why = 'none was added, it was removed or has expired, or the queue does not keep completed messages'
      throw new NegativeResult(`the reliable queue ${quoted(queue)} has nothing of the id ${quoted(id)}: ${why}`)
    }
    const document = {
      ...{ queue, id, now: found.now, message: live && messageDocument(live) },
      ...{ completed: done && completedDocument(done), deadLetter: dead && messageDocument(dead) },
    }
    session.print(document, () => [
      ...(live === null ? [] : messageLines(live, STATES[live.state], found.now)),
      ...(done === null ? [] : completedLines(done, found.now)),
      ...(dead === null ? [] : messageLines(dead, ['a dead letter', 'DEAD SINCE'], found.now)),
    ])
    warnOfUndecodable(
      undecodableOf([live, dead].flatMap((one) => [one?.payload, one?.progress?.value]).concat([done?.result])),
    )
  })
}

function messageLines(
  { queue, id, visibleAt, priority, group, attempts, headers, payload, progress, expiresAt, failures }: ShownMessage,
  [state, time]: readonly [state: string, time: string],
  now: number,
): string[] {
  const rows = [
    [time, moment(visibleAt, now)],
    ['PRIORITY', String(priority)],
    ...(group === null ? [] : [['GROUP', printable(group)]]),
    ['ATTEMPTS', String(attempts)],
    ...(expiresAt === null ? [] : [['EXPIRES', moment(expiresAt, now)]]),
    ['HEADERS', Object.keys(headers).length === 0 ? '-' : preview(headers)],
    ['PAYLOAD', valueCell(payload)],
    ['PROGRESS', progressCell(progress, now)],
    ...failures.map(({ attempt, at, reason }) => [
      'FAILED',
      `attempt ${attempt}, ${moment(at.getTime(), now)}: ${printable(reason, MOST_REASON)}`,
    ]),
  ]
  return [`${printable(queue)}: ${quoted(id)} is ${state}`, ...indented(rows)]
}

function completedLines({ queue, id, completedAt, attempts, result }: ShownCompleted, now: number): string[] {
  const rows = [
    ['COMPLETED', moment(completedAt, now)],
    ['ATTEMPTS', String(attempts)],
    ['RESULT', result === null ? '-' : valueCell(result)],
  ]
  return [`${printable(queue)}: ${quoted(id)} is completed`, ...indented(rows)]
}

function indented(rows: readonly (readonly string[])[]): string[] {
  return table(rows).map((line) => `  ${line}`)
}
