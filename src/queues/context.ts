import type { Codec } from '../codec/codec.js'
import type { EntryIds } from '../codec/entry-id.js'
import type { BlockingReads } from '../connection/blocking-reads.js'
import type { Commands } from '../connection/commands.js'
import type { DurableCommands } from '../connection/durable-commands.js'
import type { EventHub } from '../events.js'
import type { QueueKeys } from '../keys.js'
import type { Settings } from '../options.js'
import type { TransferRegistry } from '../transfer/transfer-registry.js'

/** What the queue objects of one client share. */
export interface QueueContext {
  readonly commands: Commands
  readonly durable: DurableCommands
  readonly blocking: BlockingReads
  readonly transfers: TransferRegistry
  readonly hub: EventHub
  readonly settings: Settings
  readonly ids: EntryIds
  /** The keys of the queue that the application calls so. */
  readonly keysOf: (name: string) => QueueKeys
}

/** What identifies one queue. */
export interface QueueIdentity<T> {
  /** The public name. */
  readonly name: string
  readonly keys: QueueKeys
  readonly codec: Codec<T>
}
