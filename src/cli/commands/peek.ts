import { setTimeout } from 'node:timers/promises'
import type { DelayedQueue, ScheduledMessage } from '../../index.js'
import { parseLimit, textOption, type RawOptions } from '../input.js'
import { isoTime, moment, preview, table } from '../output.js'
import { failureLine } from '../failure.js'
import { reliableLine } from '../reliable.js'
import { withSession } from '../session.js'
import { Undecodable } from '../undecodable.js'

export const DEFAULT_LIMIT = 10
export const MAX_LIMIT = 1_000
const MOST_MS = 2_000

export async function peek(queue: string, options: RawOptions): Promise<void> {
  const limit = parseLimit(textOption(options, 'limit'), DEFAULT_LIMIT, MAX_LIMIT)
  await withSession(options, async ({ delayed: open, reliable, print }) => {
    const delayed = open(queue)
    const [stats, scheduled, delivered, counts] = await Promise.all([
      delayed.stats(),
      delayed.schedule({ limit }),
      firstDelivered(delayed, limit),
      reliable(queue),
    ])
    const undecodable = [
      ...undecodableOf('scheduled', scheduled, ({ value }) => value),
      ...undecodableOf('ready', delivered, (value) => value),
    ]
    const document = {
      queue,
      now: stats.now,
      pending: stats.pending,
      scheduled: scheduled.map((message) => ({
        ...message,
        value: valueOrNull(message.value),
        dueAt: isoTime(message.due),
      })),
      delivered: stats.delivered,
      ready: delivered.map(valueOrNull),
      undecodable,
      reliable: counts,
    }
    print(document, () => [
      heading('pending', stats.pending, scheduled.length, 'next due first'),
      ...scheduledTable(scheduled, stats.now),
      heading('delivered and not taken yet', stats.delivered, delivered.length, 'next taken first'),
      ...delivered.map((value) => `  ${cell(value)}`),
      ...(counts === null ? [] : [reliableLine(queue, counts)]),
    ])
    const [first] = undecodable
    if (first === undefined) return
    const what = undecodable.length === 1 ? '1 element' : `${undecodable.length} elements`
    console.error(failureLine(`${what} shown as hex, because --codec does not fit: ${first.problem}`))
  })
}

/** Those that it finds in a moment: before the first one that can be read there can be any number of others. */
export async function firstDelivered(delayed: Pick<DelayedQueue, 'destination'>, limit: number): Promise<unknown[]> {
  const values: unknown[] = []
  const read = async (): Promise<void> => {
    for await (const value of delayed.destination.iterate({ pageSize: limit })) {
      values.push(value)
      if (values.length === limit) break
    }
  }
  const reading = read()
  reading.catch(() => undefined) // the end of the session ends what goes on after the time
  const over = new AbortController()
  const time = setTimeout(MOST_MS, undefined, { signal: over.signal }).catch(() => undefined)
  await Promise.race([reading, time]).finally(() => over.abort())
  return [...values]
}

function heading(what: string, count: number, shown: number, order: string): string {
  return `${count} ${what}${count === 0 ? '' : shown < count ? ` (${shown} shown, ${order})` : ` (${order})`}`
}

function scheduledTable(messages: readonly ScheduledMessage<unknown>[], now: number): string[] {
  if (messages.length === 0) return []
  const rows = messages.map(({ due, ticket, value }) => [`  ${moment(due, now)}`, ticket ?? '-', cell(value)])
  return table([['  DUE', 'TICKET', 'VALUE'], ...rows])
}

function cell(value: unknown): string {
  return value instanceof Undecodable ? value.line : preview(value)
}

/** No element is null, so that a program sees where a value is missing. */
function valueOrNull(value: unknown): unknown {
  return value instanceof Undecodable ? null : value
}

/** The bytes of what could not be decoded, and its place in the list. */
function undecodableOf<T>(list: 'scheduled' | 'ready', items: readonly T[], valueOf: (item: T) => unknown) {
  return items.flatMap((item, index) => {
    const value = valueOf(item)
    return value instanceof Undecodable ? [{ list, index, ...value.document }] : []
  })
}
