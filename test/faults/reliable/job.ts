import type { Added, BatchCounts, ClientOptions, Durability, ExistingPolicy } from '../../../src/index.js'
import type { AnyJob } from '../bench/job.js'

/** A worker consumes by `client.createWorker`, a poller by hand. */
export type Role = 'producer' | 'worker' | 'poller'

/** The role and the settings of a process on a reliable queue. */
export interface Job extends AnyJob {
  readonly role: Role
  readonly client: ClientOptions
  readonly queue: string
  /** The queue is a sharded one of so many shards. */
  readonly shards?: number | undefined
  readonly formerShards?: number | undefined
  readonly load: Load
  /** The visibility of polled messages, in milliseconds. */
  readonly visibilityTimeout: number
  /** The number of messages that a consumer handles at the same time. */
  readonly concurrency: number
}

/** The messages that a producer adds. */
export interface Load {
  readonly from: number
  readonly everyMs: number
  readonly maxDelay: number
  /** The delay of the messages that must be left at the end. */
  readonly farMs: number
  /** Whether some are cancelled and some put off. */
  readonly changes: boolean
  /** Whether some are asked for by their ids, removed, restored and added again. */
  readonly asks?: boolean | undefined
  /** The number of schedules that also make messages while there is load. */
  readonly schedules?: number | undefined
  /** The number of groups, instead of priorities. */
  readonly groups?: number | undefined
  /** The number of messages in a batch; without it there are no batches. */
  readonly batchOf?: number | undefined
  /** Whether the end of each message is waited for. */
  readonly waits?: boolean | undefined
  /** Most messages are of one group, and each other one is of a group of its own. */
  readonly tenants?: boolean | undefined
  /** The durability that an `add` waits for before its message counts as added. */
  readonly durability?: Durability | undefined
}

/** The ticks of a schedule are so far apart. */
export const EVERY_MS = 400

export function scheduleName(index: number): string {
  return `schedule-${index}`
}

/** The schedule and the time of a message that one has made. */
export function tickOf(id: string): { readonly schedule: string; readonly at: number } | undefined {
  const [, schedule, at] = /^(schedule-\d+)@(\d+)$/.exec(id) ?? []
  return schedule === undefined ? undefined : { schedule, at: Number(at) }
}

/** The delivery limit of a message; lower for messages whose handler always throws. */
export const LIMIT = 10
export const POISON_LIMIT = 3

export interface Payload {
  /** Its handler always throws. */
  readonly poison: boolean
  /** Its handler takes longer than its visibility, each time. */
  readonly long: boolean
  /** The message is the last one of this batch. */
  readonly last?: string
  /** Another number for the payload of each later `add` under the same id. */
  readonly revision?: number
}

/** The window of `deduplicate`, longer than any round. */
export const ONCE_MS = 3_600_000

/** The group that has most of the messages. */
export const CROWD = 'the crowd'

/**
 * The end of a wait for a message. When its time is over, the wait is repeated: `open`, if the message had not ended, or no server could answer
 * that; `late`, if it had ended.
 */
export type Waited = 'completed' | 'dead' | 'gone' | 'open' | 'late'

/** The options of an `add`, and when it began. */
export interface Plan {
  readonly poison: boolean
  readonly at: number
  readonly delay: number
  readonly limit: number
  readonly group?: string | undefined
  readonly priority?: number | undefined
}

/** A consumer's report of a delivery. */
export type Said = 'done' | 'failed' | 'released'

/**
 * A line of a ledger. Times are this machine's clock, which is also that of Redis, in milliseconds. Until the line with the end of what
 * was begun its outcome is unknown.
 */
export type Entry =
  | readonly ['try', id: string, plan: Plan]
  /** Redis has the message, with the requested durability. */
  | readonly ['ok', id: string, at: number]
  /** The command was not carried out. */
  | readonly ['no', id: string, code: string]
  /** The message is the last one of a batch, as its consumer reports. */
  | readonly ['last', id: string, batch: string]
  /** Its end is waited for. */
  | readonly ['waiting', id: string]
  | readonly ['waited', id: string, how: Waited, result: unknown]
  /** These are, or may be, in the batch. */
  | readonly ['batch', name: string, what: 'opened', ids: readonly string[]]
  | readonly ['batch', name: string, what: 'closed']
  /** The batch had finished, and the wait for it went on. */
  | readonly ['batch', name: string, what: 'late']
  /** The batch is open again, although it was closed. */
  | readonly ['batch', name: string, what: 'reopened']
  | readonly ['batch', name: string, what: 'finished', counts: BatchCounts]
  | readonly ['changing', id: string, how: 'cancel' | 'move' | 'remove', delay: number, at: number]
  | readonly ['changed', id: string, done: boolean, at: number]
  /** A removed message is put back as it was. */
  | readonly ['restoring', id: string, at: number]
  | readonly ['restored', id: string, done: boolean, at: number]
  /** It is added once more under its id, within the window of its deduplication. */
  | readonly ['adding again', id: string, existing: ExistingPolicy, delay: number, at: number]
  | readonly ['added again', id: string, outcome: Added['outcome'], at: number]
  | readonly ['asking', id: string, at: number]
  | readonly ['asked', id: string, found: boolean, at: number]
  /** A delivery came: since when it was visible, when it was claimed, and until when no other consumer has it, by Redis; from which queue; and the revision of its payload. */
  | readonly [
      'got',
      id: string,
      lease: string,
      visibleAt: number,
      from: number,
      until: number,
      part?: string,
      revision?: number,
    ]
  | readonly ['handling', id: string, lease: string, long: boolean, at: number]
  | readonly ['extending', id: string, lease: string]
  /** The end of the extended visibility; `null`: the message was no longer the consumer's. */
  | readonly ['extended', id: string, lease: string, until: number | null]
  | readonly ['answering', id: string, lease: string, said: Said, at: number]
  | readonly ['answer', id: string, lease: string, done: boolean, at: number]
