import { ChangesLostError, type ChangeBatch, type ChangePosition, type ReliableQueue } from 'redelayed'
import { TopicError } from './errors.js'
import type { Topic } from './topic.js'

/** An event for a reader of a topic's changes. `lost`: changes before the next ones are missing. */
export type WatchEvent =
  | { readonly kind: 'changes'; readonly topic: string; readonly shard: number; readonly batch: ChangeBatch }
  /** The current position of a shard of which nothing was read yet. */
  | { readonly kind: 'position'; readonly topic: string; readonly shard: number; readonly position: ChangePosition }
  | { readonly kind: 'lost'; readonly topic: string; readonly shard: number; readonly reason: string }

export interface WatchOptions {
  /** The position from which the reader continues; `undefined`: from now on. */
  readonly from: (topic: string, shard: number) => ChangePosition | undefined
  /** Resolves when the reader takes more. */
  readonly sink: (event: WatchEvent) => Promise<void>
  readonly signal: AbortSignal
  readonly onError: (error: unknown) => void
}

const RETRY_MS = 1_000
/**
 * If the reader took longer than this, the read restarts at its position, so that entries lost meanwhile are noticed and not skipped
 * silently.
 */
const SLOW_MS = 250

/**
 * Reads the changes of several topics until the signal aborts. Each shard is read by itself, without a connection of its own.
 *
 * @throws TopicError ERR_NO_EVENTS one of the topics keeps no changes
 */
export async function watchTopics(topics: readonly Topic[], options: WatchOptions): Promise<void> {
  assertKept(topics)
  await Promise.all(
    topics.flatMap((topic) => topic.shards.map((queue, shard) => watch(queue, topic.name, shard, options))),
  )
}

/** @throws TopicError ERR_NO_EVENTS */
export function assertKept(topics: readonly Topic[]): void {
  for (const { name, settings, journal } of topics) {
    if (!settings.events && journal === undefined)
      throw new TopicError('ERR_NO_EVENTS', `the topic ${JSON.stringify(name)} has the setting events: false`)
  }
}

async function watch(
  queue: ReliableQueue<Uint8Array>,
  topic: string,
  shard: number,
  options: WatchOptions,
): Promise<void> {
  const { sink, signal, onError } = options
  let from = options.from(topic, shard)
  while (!signal.aborted) {
    try {
      from ??= await endOf(queue)
      if (from !== undefined) await sink({ kind: 'position', topic, shard, position: from })
      let isSlow = false
      for await (const batch of queue.changes({ signal, ...(from && { from }) })) {
        const startedAt = performance.now()
        await sink({ kind: 'changes', topic, shard, batch })
        from = batch.position
        isSlow = performance.now() - startedAt > SLOW_MS
        if (isSlow) break
      }
      if (!isSlow) return
    } catch (thrown) {
      if (signal.aborted) return
      if (thrown instanceof ChangesLostError) {
        from = undefined
        await sink({ kind: 'lost', topic, shard, reason: thrown.reason })
      } else {
        onError(thrown)
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref())
      }
    }
  }
}

/** The position of the last change, so that a reader can resume there even if no other change comes; `undefined` for a new queue. */
async function endOf(queue: ReliableQueue<Uint8Array>): Promise<ChangePosition | undefined> {
  const { epoch, last } = await queue.changeStatus()
  return epoch === null || last === null ? undefined : { epoch, id: last }
}
