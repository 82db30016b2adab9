import type { Codec } from '../codecs/codec.js'
import { NO_WAIT } from '../redis/durable/durability.js'
import type { QueueContext, QueueIdentity } from '../queues/context.js'
import { DequeEnds } from '../queues/deque-ends.js'
import { ListElements } from '../queues/list-elements.js'
import { Waits } from '../queues/waits.js'

/** A taken element with its bytes, so that it can be put back unchanged. */
export interface RawElement<T> {
  readonly value: T
  readonly bytes: Buffer
}

/** Takes the elements of one shard, and puts them back. */
export interface ShardSource<E> {
  /** Waits for 1 to `max` elements; an abort rejects, unless some were popped. */
  wait(max: number, signal: AbortSignal): Promise<E[]>
  /** Takes up to `max` elements without waiting, and stops at about `maxBytes`. */
  drain(max: number, maxBytes: number): Promise<E[]>
  /** Puts elements back at the head, in their order, in one step. */
  putBack(elements: readonly E[]): Promise<void>
}

export function sourceOf<T>(
  context: QueueContext,
  { name, keys, codec }: QueueIdentity<T>,
  options: { consumersDeliver?: boolean | undefined },
): ShardSource<RawElement<T>> {
  const list = new ListElements<RawElement<T>>(context, { name, keys, codec: rawCodec(codec) })
  const waits = new Waits(list, options)
  const ends = new DequeEnds(list)
  return {
    wait: (max, signal) => waits.takeMany(max, { signal }),
    drain: (max) => list.drainWithin('left', max),
    putBack: async (elements) => {
      if (elements.length === 0) return
      const reversed = elements.toReversed()
      if (context.commands.resends) await pushOnce(context, keys.destination, reversed)
      else await ends.push('LPUSH', reversed)
    },
  }
}

/** Puts elements back, but not over a connection that resends commands by itself, which could duplicate elements. */
async function pushOnce(context: QueueContext, key: string, elements: readonly RawElement<unknown>[]): Promise<void> {
  const push = ['LPUSH', [key, ...elements.map(({ bytes }) => bytes)]] as const
  const [reply] = await context.durable.sender(key, NO_WAIT).pipeline([push])
  if (reply instanceof Error) throw reply
}

function rawCodec<T>(codec: Codec<T>): Codec<RawElement<T>> {
  return {
    name: codec.name,
    encode: ({ bytes }) => bytes,
    decode: (bytes) => {
      const value = codec.decode(bytes)
      // unchanged, for the check that refuses it
      return value === null || value === undefined ? (value as never) : { value, bytes }
    },
  }
}
