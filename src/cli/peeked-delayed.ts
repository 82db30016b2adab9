import type { DelayedQueueStats, QuarantinedEntry, ScheduledMessage } from '../index.js'
import { printable } from '../text.js'
import { failureLine } from './failure.js'
import { isoTime, moment, preview, table } from './output.js'
import { bytesDocument, Undecodable } from './undecodable.js'

const MOST_REASON = 100

/** The next messages of a delayed queue, of all its shards together. */
export interface PeekedDelayed {
  readonly stats: DelayedQueueStats
  /** The pending messages; `shard` is the shard's name, `null` for an ordinary queue. */
  readonly scheduled: readonly (ScheduledMessage<unknown> & { readonly shard: string | null })[]
  readonly ready: readonly unknown[]
  readonly quarantined: readonly (QuarantinedEntry & { readonly shard: string | null })[]
}

/** The JSON document of a delayed queue; with zeros and empty lists if there is none. */
export function delayedDocument(peeked: PeekedDelayed | null): object {
  if (peeked === null)
    return { now: null, pending: 0, scheduled: [], delivered: 0, ready: [], undecodable: [], quarantined: [] }
  const { stats, scheduled, ready, quarantined } = peeked
  return {
    now: stats.now,
    pending: stats.pending,
    scheduled: scheduled.map(({ shard, ...message }) => ({
      ...message,
      value: valueOrNull(message.value),
      dueAt: isoTime(message.due),
      ...(shard === null ? {} : { shard }),
    })),
    delivered: stats.delivered,
    ready: ready.map(valueOrNull),
    undecodable: [
      ...undecodableOf('scheduled', scheduled, ({ value }) => value),
      ...undecodableOf('ready', ready, (value) => value),
    ],
    quarantined: quarantined.map(({ reason, at, bytes, shard }) => ({
      ...{ reason, at: isoTime(at.getTime()), ...bytesDocument(bytes) },
      ...(shard === null ? {} : { shard }),
    })),
  }
}

export function delayedLines({ stats, scheduled, ready, quarantined }: PeekedDelayed): string[] {
  return [
    heading('pending', stats.pending, scheduled.length, 'next due first'),
    ...scheduledTable(scheduled, stats.now),
    heading('delivered and not taken yet', stats.delivered, ready.length, 'next taken first'),
    ...ready.map((value) => `  ${cell(value)}`),
    ...(stats.quarantined === 0
      ? []
      : [
          heading('set aside, because they cannot be read', stats.quarantined, quarantined.length, 'oldest first'),
          ...quarantined.map(
            ({ reason, bytes }) => `  ${printable(reason, MOST_REASON)}: ${new Undecodable(bytes, '').line}`,
          ),
        ]),
  ]
}

export function heading(what: string, count: number, shown: number, order: string): string {
  return `${count} ${what}${count === 0 ? '' : shown < count ? ` (${shown} shown, ${order})` : ` (${order})`}`
}

export function undecodableIn({ scheduled, ready }: PeekedDelayed): Undecodable[] {
  return [...scheduled.map(({ value }) => value), ...ready].filter((value) => value instanceof Undecodable)
}

/** Warns once on stderr. */
export function warnOfUndecodable(all: readonly Undecodable[]): void {
  const [first] = all
  if (first === undefined) return
  const what = all.length === 1 ? '1 element' : `${all.length} elements`
  console.error(failureLine(`${what} shown as hex, because --codec does not fit: ${first.problem}`))
}

function scheduledTable(messages: PeekedDelayed['scheduled'], now: number): string[] {
  if (messages.length === 0) return []
  const isSharded = messages.some(({ shard }) => shard !== null)
  const rows = messages.map(({ due, ticket, value, shard }) => [
    `  ${moment(due, now)}`,
    ticket ?? '-',
    ...(isSharded ? [printable(shard ?? '-')] : []),
    cell(value),
  ])
  return table([['  DUE', 'TICKET', ...(isSharded ? ['SHARD'] : []), 'VALUE'], ...rows])
}

function cell(value: unknown): string {
  return value instanceof Undecodable ? value.line : preview(value)
}

/** The value; `null` for an undecodable one, because no element is null. */
function valueOrNull(value: unknown): unknown {
  return value instanceof Undecodable ? null : value
}

/** The bytes of undecodable elements, and their positions in the list. */
function undecodableOf<T>(list: 'scheduled' | 'ready', items: readonly T[], valueOf: (item: T) => unknown) {
  return items.flatMap((item, index) => {
    const value = valueOf(item)
    return value instanceof Undecodable ? [{ list, index, ...value.document }] : []
  })
}
