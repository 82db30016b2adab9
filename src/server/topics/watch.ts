import { ChangesLostError, type ChangeBatch, type ChangePosition, type ReliableQueue } from 'redelayed'
import { TopicError } from './errors.js'
import type { Topic } from './topic.js'

/** What a reader of a topic's changes gets. `lost`: changes are missing before the next ones. */
export type WatchEvent =
  | { readonly kind: 'changes'; readonly topic: string; readonly shard: number; readonly batch: ChangeBatch }
  | { readonly kind: 'lost'; readonly topic: string; readonly shard: number; readonly reason: string }

export interface WatchOptions {
  /** Where a reader has been, by topic and shard; without it from now on. */
  readonly from: (topic: string, shard: number) => ChangePosition | undefined
  /** Resolves when the reader takes more. */
  readonly sink: (event: WatchEvent) => Promise<void>
  readonly signal: AbortSignal
  readonly onError: (error: unknown) => void
}

const RETRY_MS = 1_000

/**
 * Reads what happens to the messages of some topics, until the signal aborts. Each shard is read by itself, without a connection of its own.
 *
 * @throws TopicError ERR_NO_EVENTS one of them keeps no changes
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
      for await (const batch of queue.changes({ signal, ...(from && { from }) })) {
        await sink({ kind: 'changes', topic, shard, batch })
        from = batch.position
      }
      return
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
