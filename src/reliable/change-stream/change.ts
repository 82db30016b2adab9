import type { Headers } from '../record.js'

/**
 * What happened to a message. `failed`: it was given back, or its visibility ended, and it will be delivered again; `released`: the same
 * without counting as an attempt; `dead`: it left the queue without being handled, for the dead letters where the queue keeps them;
 * `moved`: it went to another queue; `redriven`: it came back from the dead letters; `restored`: it was put back by a caller whose readers
 * know it; `progress`: its consumer said how far it is; `cleared`: all messages went.
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
 * Where a reader is. Positions of one epoch are ordered by their ids. Within an epoch a group misses no change where changes are kept for
 * groups; any other reader goes on with the next entry that is there, and only its beginning `from` a position is checked.
 */
export interface ChangePosition {
  /** Changes when the stream was lost or could not be written; not when Redis goes back in time. */
  readonly epoch: string
  /** Of the entry in the Redis stream: `<ms>-<n>`. */
  readonly id: string
  /** Only of `readChanges`: differs for another entry of the same id, which a server can have that went back in time. */
  readonly digest?: string | undefined
}

/** One change of one message. */
export interface MessageChange {
  readonly change: ChangeKind
  /** Empty for `cleared`. */
  readonly id: string
  /** How many deliveries count after the change. */
  readonly attempt?: number
  /** When the message is visible, epoch milliseconds; for `polled`, when its visibility ends. */
  readonly dueAt?: number
  readonly priority?: number
  /** With `payloads`: the bytes of the codec. */
  readonly payload?: Uint8Array
  /** With `payloads`. */
  readonly headers?: Headers
  /** With `payloads`, and of `rescheduled` always: epoch milliseconds. */
  readonly expiresAt?: number
  /** With `payloads`: the message's own, where it has one. */
  readonly deliveryLimit?: number
  /** With `payloads`: the message's group, where it has one. */
  readonly group?: string
  /** Why it failed. */
  readonly error?: string
  /** What its consumer said of how far it is: the bytes of the codec. */
  readonly progress?: Uint8Array
  /** The name in Redis of the queue that it was moved to. */
  readonly to?: string
}

/** What one script call changed: all of it or nothing happened. */
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
   * `'ok'`, or what became of that entry: `'epoch'`: the stream has begun anew; `'rewound'`: Redis went back in time, and the last entry is an
   * earlier one; `'trimmed'`: it is gone or another one has its id, and there can be later ones; `'off'`: the queue keeps no changes.
   */
  readonly status: 'ok' | 'off' | 'epoch' | 'rewound' | 'trimmed'
  /** Of the queue now; `null`: it keeps no changes. */
  readonly epoch: string | null
  /** The id of the last entry that there ever was; `null` for none. */
  readonly last: string | null
  /** None unless the status is `'ok'`. What is no entry of this package is a batch without changes. */
  readonly batches: readonly ChangeBatch[]
}

/** How far one group of readers is. */
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
  /** For how long none of them has asked for entries; `null` without readers, and where there are too many to look at. */
  readonly idleMs: number | null
}

/** How far a queue's change stream and its groups are. */
export interface ChangeStatus {
  /** `null`: the queue keeps no changes. */
  readonly epoch: string | null
  /** The ids of the first entry and of the last one there ever was. */
  readonly first: string | null
  readonly last: string | null
  /** How many entries there are. */
  readonly length: number
  /** At how many entries adding is refused; `null` where it never is. */
  readonly limit: number | null
  readonly groupCount: number
  /** At most 100; none where there are more than 1,000, as only a stranger makes: then nothing is trimmed either. */
  readonly groups: readonly ChangeGroup[]
}
