import type {
  AddItem,
  Added,
  Codec,
  RawMessage,
  StoredQueueConfig,
  RestoreItem,
  RestoreOutcome,
  StoredRawMessage,
} from 'redelayed'

/** One change of one message, as the change stream of a queue has it. */
export interface JournalChange {
  readonly change: string
  readonly id: string
  readonly attempt?: number
  readonly dueAt?: number
  readonly priority?: number
  readonly payload?: Uint8Array | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly expiresAt?: number
  readonly deliveryLimit?: number
  readonly group?: string
  readonly error?: string
  /** With `moved`: the name of the other queue. */
  readonly to?: string
}

/** What one script call changed. */
export interface JournalBatch {
  readonly position: { readonly epoch: string; readonly id: string; readonly digest?: string | undefined }
  readonly at: number
  readonly client: string
  readonly changes: readonly JournalChange[]
}

/**
 * The entries of a change stream after a given one. If that entry is not there, changes are missing: `epoch`: Redis has begun anew;
 * `rewound`: its last entry is older; `trimmed`: the entry is gone, or another one has its id; `off`: the queue keeps no changes.
 */
export interface ChangeReading {
  readonly status: 'ok' | 'off' | 'epoch' | 'rewound' | 'trimmed'
  /** The current epoch of the queue; `null` if it keeps no changes. */
  readonly epoch: string | null
  /** The id of the newest entry ever written; `null` for none. */
  readonly last: string | null
  readonly batches: readonly JournalBatch[]
}

/** What the journal needs of a reliable queue. */
export interface JournalledQueue<T = unknown> {
  readonly name: string
  /** The name of the queue of its dead letters, if it has one. */
  readonly deadLettersName?: string | undefined
  readonly codec: Codec<T>
  addMany(items: Iterable<AddItem<T>>, options?: { readonly existing?: 'keep' }): Promise<Added[]>
  remove(...ids: readonly string[]): Promise<number>
  cancel(id: string): Promise<boolean>
  contains(id: string): Promise<boolean>
  /**
   * `known`: SQL has the messages exactly as they are put back, so the change stream records only `restored`. Dead letters take no turns.
   */
  restoreMany(messages: Iterable<RestoreItem>, options?: { readonly known?: boolean }): Promise<RestoreOutcome[]>
  getAllRaw(ids: readonly string[]): Promise<(StoredRawMessage | null)[]>
  listAllRaw(options?: { pageSize?: number }): AsyncIterable<StoredRawMessage[]>
  /** The number of its messages, with delayed ones and those that consumers have. */
  size(): Promise<number>
  now(): Promise<number>
  getConfig(): Promise<StoredQueueConfig>
  /**
   * Makes the scripts of the queue record their changes with payloads, keep them until all groups have read them, and adds the group.
   * `lost`: the configuration that the queue gets back if it keeps no changes, as in a Redis that has lost its data.
   */
  keepChanges(group: string, lost?: StoredQueueConfig): Promise<void>
  /** At most `count` entries after `id`; with an epoch, `id` must be an entry of it, and with a digest that one. */
  readChanges(
    after: { readonly id: string; readonly epoch: string | null; readonly digest?: string | null | undefined },
    count: number,
  ): Promise<ChangeReading>
  /** Says that the group has all entries up to this one. False when it was further already, or the entry does not exist. */
  releaseChanges(group: string, id: string): Promise<boolean>
}

export type { RawMessage, RestoreItem, RestoreOutcome, StoredRawMessage }
