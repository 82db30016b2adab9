import type { Headers } from '../record.js'

/**
 * What happened to a message. `failed`: it was given back, or its visibility timeout ended, and it will be delivered again; `released`: the
 * same without counting as an attempt; `dead`: it left the queue unhandled, for the dead letters where the queue keeps them; `moved`: it
 * went to another queue; `redriven`: it came back from the dead letters; `restored`: `restoreMany` put it back with `known`; `progress`:
 * its consumer reported progress; `cleared`: all messages were removed.
 */
export type ChangeKind =
  | 'added'
  | 'polled'
  | 'acknowledged'
  | 'released'
  | 'failed'
  | 'dead'
  | 'expired'
  | 'removed'
  | 'rescheduled'
  | 'updated'
  | 'moved'
  | 'redriven'
  | 'restored'
  | 'progress'
  | 'cleared'

/**
 * The place of a reader. Positions of one epoch are ordered by their ids. Where changes are kept for groups, a group misses no change
 * within an epoch; any other reader goes on with the next existing entry, and only its beginning `from` a position is checked.
 */
export interface ChangePosition {
  /** The stream's epoch: changes when the stream was lost or could not be written, but not when Redis goes back in time. */
  readonly epoch: string
  /** The id of the entry in the Redis stream: `<ms>-<n>`. */
  readonly id: string
  /** Only from `readChanges`: distinguishes entries of the same id, as a server that went back in time can have. */
  readonly digest?: string | undefined
}

/** One change of one message. */
export interface MessageChange {
  readonly change: ChangeKind
  /** The message's id; empty for `cleared`. */
  readonly id: string
  /** The number of counted deliveries after the change. */
  readonly attempt?: number
  /** When the message is visible, epoch milliseconds; for `polled`, when its visibility timeout ends. */
  readonly dueAt?: number
  readonly priority?: number
  /** With `payloads`: the encoded payload. */
  readonly payload?: Uint8Array
  /** With `payloads`: the message's headers. */
  readonly headers?: Headers
  /** With `payloads`, and always for `rescheduled`: when the message expires, epoch milliseconds. */
  readonly expiresAt?: number
  /** With `payloads`: the message's own delivery limit, if any. */
  readonly deliveryLimit?: number
  /** With `payloads`: the message's group, if any. */
  readonly group?: string
  /** Why the message failed. */
  readonly error?: string
  /** The encoded progress that the consumer reported. */
  readonly progress?: Uint8Array
  /** The name in Redis of the queue to which the message was moved. */
  readonly to?: string
}

/** The changes of one script call, which made all of them or none. */
export interface ChangeBatch {
  readonly position: ChangePosition
  /** Epoch milliseconds by the Redis clock. */
  readonly at: number
  /** The client that ran the script, by a random name. */
  readonly client: string
  readonly changes: readonly MessageChange[]
}

/** One page of the change stream, read after an entry. */
export interface ChangePage {
  /**
   * `'ok'`, or why the page cannot begin after that entry: `'epoch'`: the stream has begun anew; `'rewound'`: Redis went back in time, and
   * the last entry is an earlier one; `'trimmed'`: the entry is gone or another one has its id, and there can be later ones; `'off'`: the
   * queue keeps no changes.
   */
  readonly status: 'ok' | 'off' | 'epoch' | 'rewound' | 'trimmed'
  /** The queue's current epoch; `null`: it keeps no changes. */
  readonly epoch: string | null
  /** The id of the last entry that ever existed; `null` for none. */
  readonly last: string | null
  /** The batches; none unless the status is `'ok'`. An entry of another program is a batch without changes. */
  readonly batches: readonly ChangeBatch[]
}

/** The progress of one group of readers. */
export interface ChangeGroup {
  readonly name: string
  /** Entries that were read and not acknowledged. */
  readonly pending: number
  /** Entries that were not read yet; `null` where the server does not say it (before Redis 7). */
  readonly lag: number | null
  /** The id of the first entry that was read and not acknowledged. */
  readonly oldest: string | null
  /** How many readers Redis knows. */
  readonly consumers: number
  /** How long no reader has asked for entries; `null` without readers, and if there are too many to examine. */
  readonly idleMs: number | null
}

/** The state of a queue's change stream and its groups. */
export interface ChangeStatus {
  /** The epoch; `null`: the queue keeps no changes. */
  readonly epoch: string | null
  /** The ids of the first entry and of the last one that ever existed. */
  readonly first: string | null
  readonly last: string | null
  /** How many entries there are. */
  readonly length: number
  /** The number of entries at which the queue refuses to add messages; `null` if it never does. */
  readonly limit: number | null
  readonly groupCount: number
  /** At most 100 groups; none if there are more than 1,000, which only another program creates: then nothing is trimmed either. */
  readonly groups: readonly ChangeGroup[]
}
