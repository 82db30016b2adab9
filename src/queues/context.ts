import type { Codec } from '../codecs/codec.js'
import type { EntryIds } from '../codecs/entry-id.js'
import type { BlockingPool } from '../redis/blocking/blocking-pool.js'
import type { Commands } from '../redis/commands.js'
import type { DurableCommands } from '../redis/durable/durable-commands.js'
import type { EventHub } from '../events.js'
import type { QueueKeys } from '../keys.js'
import type { Settings } from '../options.js'
import type { TransferRegistry } from '../scheduler/transfer-registry.js'
import type { FineWaits } from '../timing/fine-waits.js'

/** Holds elements that were popped and have no waiter yet. */
export interface PrefetchBuffer {
  /** Whether the buffer holds elements. */
  readonly holding: boolean
  /** Ends the waits and puts the elements back; needs the connections. */
  close(): Promise<void>
}

/** The parts that the queue objects of one client share. */
export interface QueueContext {
  readonly commands: Commands
  readonly durable: DurableCommands
  readonly blocking: BlockingPool
  readonly transfers: TransferRegistry
  readonly hub: EventHub
  readonly settings: Settings
  readonly ids: EntryIds
  /** Those of the client, if it has any. */
  readonly fineWaits: FineWaits | undefined
  /** The buffers that a shutdown closes while it can still send commands. */
  readonly buffers: Set<PrefetchBuffer>
  /** The keys of the queue with this public name. */
  readonly keysOf: (name: string) => QueueKeys
  /** The names of a sharded queue's shards. */
  readonly shardNames: { of(name: string, shard: number): string }
}

/** The name, the keys and the codec of one queue. */
export interface QueueIdentity<T> {
  /** The public name. */
  readonly name: string
  readonly keys: QueueKeys
  readonly codec: Codec<T>
}
