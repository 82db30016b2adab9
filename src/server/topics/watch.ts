import { ChangesLostError, type ChangeBatch, type ChangePosition, type ReliableQueue } from 'redelayed'
import { TopicError } from './errors.js'
import type { Topic } from './topic.js'

/** What a reader of a topic's changes gets. `lost`: changes are missing before the next ones. */
export type WatchEvent =
  | { readonly kind: 'changes'; readonly topic: string; readonly shard: number; readonly batch: ChangeBatch }
  /** Where a shard is of which nothing was read yet. */
  | { readonly kind: 'position'; readonly topic: string; readonly shard: number; readonly position: ChangePosition }
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
/** After a reader took so long, it is looked whether the stream still has what comes next: else that would be passed over in silence. */
const SLOW_MS = 250

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

/** The last change that there was, so that a reader can come back to it before there is another one; of a new queue there is none. */
async function endOf(queue: ReliableQueue<Uint8Array>): Promise<ChangePosition | undefined> {
  const { epoch, last } = await queue.changeStatus()
  return epoch === null || last === null ? undefined : { epoch, id: last }
}
