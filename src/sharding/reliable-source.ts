import type { PollManyOptions } from '../reliable/claims.js'
import { MOST_POLLED } from '../reliable/claims.js'
import type { ReliableMessage } from '../reliable/message.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import type { ShardSource } from './shard-source.js'

/** The claim options of all messages of a consumer. */
export interface HowToClaim {
  /** The visibility; without it, that of the shard's configuration. */
  readonly visibilityTimeout: number | undefined
  /** Whether some messages are not handled at once. */
  readonly beforehand: boolean
}

/** The messages of one shard. Messages that no call wants are given back, and their delivery does not count as an attempt. */
export function reliableSource<T>(
  queue: ReliableQueue<T>,
  { visibilityTimeout, beforehand }: HowToClaim,
): ShardSource<ReliableMessage<T>> {
  const claim = (max: number, options: Omit<PollManyOptions, 'count'>): Promise<ReliableMessage<T>[]> =>
    queue.pollFor({ ...options, count: Math.min(max, MOST_POLLED), visibilityTimeout }, beforehand)
  return {
    wait: (max, signal) => claim(max, { timeout: Infinity, signal }),
    drain: (max, maxBytes) => claim(max, maxBytes === Infinity ? {} : { maxBytes }),
    putBack: async (messages) => {
      const held = messages.filter(({ isHeld }) => isHeld)
      if (held.length > 0) await queue.negativeAcknowledge(held, { countAttempt: false })
    },
  }
}
