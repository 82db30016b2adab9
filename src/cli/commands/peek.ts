import { setTimeout } from 'node:timers/promises'
import type { DelayedQueue } from '../../index.js'
import { findFamilies } from '../../doctor/families.js'
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
const MOST_MS = 2_000

export async function peek(queue: string, options: RawOptions): Promise<void> {
  if (queue === '') throw new UsageError('name: expected a non-empty string')
  const limit = parseLimit(textOption(options, 'limit'), DEFAULT_LIMIT, MAX_LIMIT)
  const codec = await codecOf(parseCodec(options))
  await withSession(options, async ({ delayed: open, access: openAccess, print }) => {
    const access = await openAccess()
    const families = await findFamilies(access, [queue])
    const one = async (name: string, shard: string | null): Promise<PeekedDelayed> => {
      const delayed = open(name)
      const [stats, scheduled, ready, quarantined] = await Promise.all([
        delayed.stats(),
        delayed.schedule({ limit }),
        firstDelivered(delayed, limit),
        delayed.readQuarantine(limit),
      ])
      return {
        ...{ stats, ready },
        scheduled: scheduled.map((message) => ({ ...message, shard })),
        quarantined: quarantined.map((entry) => ({ ...entry, shard })),
      }
    }
    const ofAll = families.delayed.flatMap(({ shards }) => shards?.map((name) => one(name, name)) ?? [one(queue, null)])
    const delayed = ofAll.length === 0 ? null : merged(await Promise.all(ofAll), limit)
    const reliable = families.reliable.length === 0 ? null : await peekReliable(access, families.reliable, limit, codec)
    print({ queue, ...delayedDocument(delayed), reliable: reliable && reliablePeekDocument(reliable) }, () => [
      ...(delayed === null ? [] : delayedLines(delayed)),
      ...(reliable === null ? [] : reliableLines(reliable)),
    ])
    warnOfUndecodable([...(delayed === null ? [] : undecodableIn(delayed)), ...(reliable?.undecodable ?? [])])
  })
}

/** What is next in all shards together. */
function merged(all: readonly PeekedDelayed[], limit: number): PeekedDelayed {
  return {
    stats: sumOfDelayed(all.map(({ stats }) => stats)),
    scheduled: all
      .flatMap(({ scheduled }) => scheduled)
      .sort((a, b) => a.due - b.due)
      .slice(0, limit),
    ready: all.flatMap(({ ready }) => ready).slice(0, limit),
    quarantined: all
      .flatMap(({ quarantined }) => quarantined)
      .sort((a, b) => a.at.getTime() - b.at.getTime())
      .slice(0, limit),
  }
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
