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
  readonly payload?: Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  readonly expiresAt?: number
  readonly deliveryLimit?: number
  readonly group?: string
  readonly error?: string
  /** Of `moved`: the name of the other queue. */
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
 * Entries of a change stream after one entry. Where that entry is not there, changes are missing: `epoch`: Redis has begun anew; `rewound`: its
 * last entry is older; `trimmed`: the entry is gone, or another one has its id; `off`: the queue keeps no changes.
 */
export interface ChangeReading {
  readonly status: 'ok' | 'off' | 'epoch' | 'rewound' | 'trimmed'
  /** Of the queue now; `null` where it keeps no changes. */
  readonly epoch: string | null
  /** The id of the last entry that there ever was; `null` for none. */
  readonly last: string | null
  readonly batches: readonly JournalBatch[]
}

/** What the journal needs of a reliable queue. */
export interface JournalledQueue<T = unknown> {
  readonly name: string
  /** Of the queue of its dead letters, where it has one. */
  readonly deadLettersName?: string | undefined
  readonly codec: Codec<T>
  addMany(items: Iterable<AddItem<T>>, options?: { readonly existing?: 'keep' }): Promise<Added[]>
  remove(...ids: readonly string[]): Promise<number>
  cancel(id: string): Promise<boolean>
  contains(id: string): Promise<boolean>
  /** `known`: SQL has the messages as they are put back, and the change stream says only `restored`. Dead letters take no turns. */
  restoreMany(messages: Iterable<RestoreItem>, options?: { readonly known?: boolean }): Promise<RestoreOutcome[]>
  getAllRaw(ids: readonly string[]): Promise<(StoredRawMessage | null)[]>
  listAllRaw(options?: { pageSize?: number }): AsyncIterable<StoredRawMessage[]>
  /** How many messages it has, also delayed ones and those of consumers. */
  size(): Promise<number>
  now(): Promise<number>
  getConfig(): Promise<StoredQueueConfig>
  /**
   * Has the scripts of the queue write what they change, with payloads, until all groups have it, and the group is there. `lost`: what the queue
   * is to have again where it keeps no changes, as in a Redis that has lost its data.
   */
  keepChanges(group: string, lost?: StoredQueueConfig): Promise<void>
  /** At most `count` entries after `id`; with an epoch, `id` must be an entry of it, and with a digest that one. */
  readChanges(
    after: { readonly id: string; readonly epoch: string | null; readonly digest?: string | null | undefined },
    count: number,
  ): Promise<ChangeReading>
  /** The group has all entries up to this one. False when it was further, or there is no such entry. */
  releaseChanges(group: string, id: string): Promise<boolean>
}

export type { RawMessage, RestoreItem, RestoreOutcome, StoredRawMessage }
