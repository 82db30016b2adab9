import { setTimeout } from 'node:timers/promises'
import type { DelayedQueue, DelayedQueueStats } from '../../index.js'
import type { Access } from '../../doctor/access.js'
import { findFamilies } from '../../doctor/families.js'
import { countWithin } from '../../doctor/within-bytes.js'
import { UsageError } from '../failure.js'
import { codecOf, parseCodec, parseLimit, textOption, type RawOptions } from '../input.js'
import {
  delayedDocument,
  delayedLines,
  undecodableIn,
  warnOfUndecodable,
  type PeekedDelayed,
} from '../peeked-delayed.js'
import { peekReliable, reliableLines, reliablePeekDocument } from '../peeked-reliable.js'
import { sumOfDelayed } from '../measured.js'
import { withSession } from '../session.js'

export const DEFAULT_LIMIT = 10
export const MAX_LIMIT = 1_000
/** The most quarantined entries to show, of the first shards that have any. */
const MOST_SET_ASIDE = 5
const MOST_MS = 2_000

export async function peek(queue: string, options: RawOptions): Promise<void> {
  if (queue === '') throw new UsageError('name: expected a non-empty string')
  const limit = parseLimit(textOption(options, 'limit'), DEFAULT_LIMIT, MAX_LIMIT)
  const codec = await codecOf(parseCodec(options))
  await withSession(options, async ({ delayed: open, access: openAccess, print }) => {
    const access = await openAccess()
    const families = await findFamilies(access, [queue])
    const parts = families.delayed.flatMap<Part>(
      ({ shards }) => shards?.map((name) => ({ of: open(name), shard: name })) ?? [{ of: open(queue), shard: null }],
    )
    const delayed = parts.length === 0 ? null : await peekDelayed(access, parts, limit)
    const reliable = families.reliable.length === 0 ? null : await peekReliable(access, families.reliable, limit, codec)
    print({ queue, ...delayedDocument(delayed), reliable: reliable && reliablePeekDocument(reliable) }, () => [
      ...(delayed === null ? [] : delayedLines(delayed)),
      ...(reliable === null ? [] : reliableLines(reliable)),
    ])
    warnOfUndecodable([...(delayed === null ? [] : undecodableIn(delayed)), ...(reliable?.undecodable ?? [])])
  })
}

interface Part {
  readonly of: DelayedQueue
  /** The shard's name; `null` for an ordinary queue. */
  readonly shard: string | null
}

/** Reads the next messages of all shards together. */
async function peekDelayed({ sender }: Access, parts: readonly Part[], limit: number): Promise<PeekedDelayed> {
  const all: { stats: DelayedQueueStats; ready: unknown[]; scheduled: PeekedDelayed['scheduled'] }[] = []
  const quarantined: PeekedDelayed['quarantined'][number][] = []
  // one after the other, as each can have megabytes
  for (const { of, shard } of parts) {
    const stats = await of.stats()
    const scheduled = await of.schedule({ limit: await countWithin(sender, of.name, 'timeouts', limit) })
    const ready = await firstDelivered(of, await countWithin(sender, of.name, 'destination', limit))
    all.push({ stats, ready, scheduled: scheduled.map((message) => ({ ...message, shard })) })
    const left = Math.min(limit, MOST_SET_ASIDE) - quarantined.length
    if (left === 0 || stats.quarantined === 0) continue
    const entries = await of.readQuarantine(await countWithin(sender, of.name, 'quarantine', left))
    quarantined.push(...entries.map((entry) => ({ ...entry, shard })))
  }
  return {
    stats: sumOfDelayed(all.map(({ stats }) => stats)),
    scheduled: all
      .flatMap(({ scheduled }) => scheduled)
      .sort((a, b) => a.due - b.due)
      .slice(0, limit),
    ready: all.flatMap(({ ready }) => ready).slice(0, limit),
    quarantined: quarantined.sort((a, b) => a.at.getTime() - b.at.getTime()),
  }
}

/** The first delivered values that are found within a moment: any number of unreadable elements can precede them. */
export async function firstDelivered(delayed: Pick<DelayedQueue, 'destination'>, limit: number): Promise<unknown[]> {
  const values: unknown[] = []
  const read = async (): Promise<void> => {
    for await (const value of delayed.destination.iterate({ pageSize: limit })) {
      values.push(value)
      if (values.length === limit) break
    }
  }
  const reading = read()
  reading.catch(() => undefined) // after the time limit the end of the session ends the read
  const over = new AbortController()
  const time = setTimeout(MOST_MS, undefined, { signal: over.signal }).catch(() => undefined)
  await Promise.race([reading, time]).finally(() => over.abort())
  return [...values]
}
