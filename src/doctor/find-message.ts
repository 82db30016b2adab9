import type { ReliableStore } from '../store/reliable-store.js'
import type { Sender } from '../store/sender.js'
import { deadLettersOf } from '../keys.js'
import { keptMessage, type KeptMessage } from './kept-completed.js'
import { asQueued, reliableStoreOf, type QueuedMessage } from './next-messages.js'

/** All that a queue has of an id; of a sharded queue, what its shards have. */
export interface FoundMessage {
  readonly now: number
  readonly message: Found<QueuedMessage> | null
  readonly deadLetter: Found<QueuedMessage> | null
  readonly completed: KeptMessage | null
}

/** A message, and the name of its shard, or of its queue. */
export type Found<M> = M & { readonly queue: string }

/** Looks for the message of an id in all shards; if several shards have one, it is that of the first, or the latest completed one. */
export async function findMessage(sender: Sender, names: readonly string[], id: string): Promise<FoundMessage> {
  const all = await Promise.all(
    names.map(async (queue) => {
      const store = reliableStoreOf(sender, queue)
      const [live, dead, completed] = await Promise.all([
        messageOf(store, id),
        messageOf(reliableStoreOf(sender, deadLettersOf(queue)), id),
        keptMessage(store, queue, id),
      ])
      const at = (found: QueuedMessage | null): Found<QueuedMessage> | null => found && { queue, ...found }
      return { now: live.now, message: at(live.message), deadLetter: at(dead.message), completed }
    }),
  )
  const latest = (a: KeptMessage | null, b: KeptMessage | null): KeptMessage | null =>
    (b?.completedAt ?? -1) > (a?.completedAt ?? -1) ? b : a
  return {
    now: Math.max(0, ...all.map(({ now }) => now)),
    message: all.find(({ message }) => message !== null)?.message ?? null,
    deadLetter: all.find(({ deadLetter }) => deadLetter !== null)?.deadLetter ?? null,
    completed: all.reduce<KeptMessage | null>((last, { completed }) => latest(last, completed), null),
  }
}

async function messageOf(store: ReliableStore, id: string): Promise<{ now: number; message: QueuedMessage | null }> {
  for await (const { now, messages } of store.get([Buffer.from(id)])) {
    const [message = null] = messages
    return { now, message: message && asQueued(message, now) }
  }
  return { now: 0, message: null }
}
