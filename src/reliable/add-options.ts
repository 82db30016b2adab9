import { createHash } from 'node:crypto'
import { resolveDurability, type Durability, type Wait } from '../redis/durable/durability.js'
import { InvalidArgumentError, inWords } from '../errors.js'
import { PRIORITIES } from '../keys.js'
import { integer, nonEmptyString, oneOf, onlyKnown } from '../options.js'
import type { NewMessage } from '../store/new-message.js'
import { durationMs, type Duration } from '../duration.js'
import { assertBatchName, assertId } from './message-id.js'
import { encodeHeaders, type Headers } from './record.js'

/** What is done with a message whose id is there already. */
export type ExistingPolicy = 'keep' | 'replace' | 'postpone'

export interface AddOptions {
  /** Of the message, unique in the queue. 1 to 512 bytes of UTF-8; default: one at random. */
  readonly id?: string | undefined
  /** It becomes visible so many milliseconds after Redis accepted it. Default: what the queue's configuration says, else 0. */
  readonly delay?: Duration | undefined
  /** It becomes visible at this time by the Redis clock; at once when that has passed. Not together with `delay`. */
  readonly date?: Date | undefined
  /** 0 to 9, the highest first. Default 0. */
  readonly priority?: number | undefined
  /**
   * Groups have turns, and limits of their own (`groupConcurrency`, `groupRateLimit`): a tenant, a customer, an API key. 1 to 255 bytes of UTF-8; not together with a
   * `priority`. Default: none; all messages without one have turns together.
   */
  readonly group?: string | undefined
  /** At most 64 KiB together. */
  readonly headers?: Headers | undefined
  /** When no consumer has handled it so many milliseconds after it became visible, it is removed. At least 1; default: the queue's, else never. */
  readonly timeToLive?: Duration | undefined
  /** How often it is delivered at most. 1 to 1,000,000; default: the queue's, else 10. */
  readonly deliveryLimit?: number | undefined
  /**
   * `'keep'` (default) leaves a message of the same id as it is; `'replace'` removes it, also from a consumer that has it, and adds
   * the new one; `'postpone'` gives the one that is there the new time, and leaves one that a consumer has as it is.
   */
  readonly existing?: ExistingPolicy | undefined
  /** Not added when one with the same id, or the same payload, was added within the last `forMs` milliseconds. */
  readonly deduplicate?: { readonly by: 'id' | 'payload'; readonly forMs: Duration } | undefined
  /**
   * The messages are counted under this name until they have ended: see `batch` of the queue. 1 to 255 bytes of UTF-8. A message that is there and is kept or postponed stays in the
   * batch that it has. Not for sharded queues. Default: none.
   */
  readonly batch?: string | undefined
  /**
   * What must have the message, beside the memory of the server, before the call resolves: so many replicas, or the append-only
   * file on disk. That holds for every outcome, so also for a message that was there and is kept. See docs/durability.md.
   */
  readonly durability?: Durability | undefined
}

/** What holds for all messages of one call. */
export type AddManyOptions = Pick<AddOptions, 'existing' | 'durability' | 'batch'>

/** One message for `addMany`. */
export interface AddItem<T> extends Omit<AddOptions, keyof AddManyOptions> {
  /** What consumers get. */
  readonly payload: T
}

const ITEM_OPTIONS = [
  'id',
  'delay',
  'date',
  'priority',
  'group',
  'headers',
  'timeToLive',
  'deliveryLimit',
  'deduplicate',
] as const

const MOST_GROUP_BYTES = 255
export const NO_GROUP: Buffer = Buffer.alloc(0)

export const MAX_DELIVERIES = 1_000_000

/** A message on its way. */
export interface PendingMessage extends NewMessage {
  /** Its id was drawn here, so that no other message has it. */
  readonly isDrawn: boolean
}

export type MessageOptions = Omit<AddOptions, keyof AddManyOptions>

/** The message with its options checked and encoded. `drawId` gets what it is deduplicated by, or an empty text. */
export function prepare(options: MessageOptions, payload: Buffer, drawId: (mark: string) => string): PendingMessage {
  const { id, priority = 0, timeToLive, deliveryLimit, deduplicate } = options
  const given = id === undefined ? undefined : assertId('id', id)
  const mark = markOf(deduplicate, given, payload)
  return {
    id: given ?? drawId(mark.mark),
    isDrawn: given === undefined,
    priority: assertPriority(priority),
    group: groupOf(options),
    visible: visibleOf(options),
    timeToLive: timeToLive === undefined ? '' : String(durationMs('timeToLive', timeToLive, 1)),
    deliveryLimit:
      deliveryLimit === undefined ? '' : String(integer('deliveryLimit', deliveryLimit, 1, MAX_DELIVERIES)),
    headers: encodeHeaders(options.headers),
    payload,
    ...mark,
  }
}

/** The options that hold for all messages of one call, checked. */
export interface How {
  readonly existing: ExistingPolicy
  /** Empty for none. */
  readonly batch: string
  /** What is waited for, if anything. */
  readonly wait: Wait | undefined
}

const HOW_OPTIONS = ['existing', 'durability', 'batch'] as const

export function assertAddOptions(options: unknown): void {
  onlyKnown('options', options, [...ITEM_OPTIONS, ...HOW_OPTIONS])
}

export function assertAddManyOptions(options: unknown): void {
  onlyKnown('options', options, HOW_OPTIONS)
}

export function assertAddItem(item: unknown, at: number): void {
  onlyKnown(`items[${at}]`, item, [...ITEM_OPTIONS, 'payload'])
}

export function howOf({ existing, durability, batch }: AddManyOptions): How {
  return {
    existing: oneOf('existing', existing ?? 'keep', ['keep', 'replace', 'postpone']),
    batch: batch === undefined ? '' : assertBatchName('batch', batch),
    wait: durability === undefined ? undefined : resolveDurability(durability),
  }
}

export function positive(what: string, value: unknown): number {
  return integer(what, value, 1, Number.MAX_SAFE_INTEGER)
}

export function assertPriority(priority: unknown): number {
  return integer('priority', priority, 0, PRIORITIES - 1)
}

/** @throws InvalidArgumentError */
export function groupBytes(what: string, group: unknown): Buffer {
  const bytes = Buffer.from(nonEmptyString(what, group))
  if (bytes.length > MOST_GROUP_BYTES || bytes.toString() !== group)
    throw new InvalidArgumentError(what, `1 to ${MOST_GROUP_BYTES} bytes of UTF-8`, inWords(`${bytes.length} bytes`))
  return bytes
}

/** Nothing for none. @throws InvalidArgumentError */
export function groupOf({ group, priority = 0 }: Pick<MessageOptions, 'group' | 'priority'>): Buffer {
  if (group === undefined) return NO_GROUP
  if (priority !== 0) throw new InvalidArgumentError('priority', 'none where there is a group', priority)
  return groupBytes('group', group)
}

function visibleOf({ delay, date }: AddOptions): string {
  if (date === undefined) return delay === undefined ? '' : String(durationMs('delay', delay))
  if (delay !== undefined) throw new InvalidArgumentError('delay', 'none where there is a date', delay)
  return dateText('date', date)
}

/** A moment as the scripts read it. @throws InvalidArgumentError */
export function dateText(argument: string, date: Date): string {
  if (!(date instanceof Date) || Number.isNaN(date.getTime()))
    throw new InvalidArgumentError(argument, 'a valid Date', date)
  return `@${date.getTime()}`
}

function markOf(
  deduplicate: AddOptions['deduplicate'],
  id: string | undefined,
  payload: Buffer,
): Pick<NewMessage, 'mark' | 'markMs'> {
  if (deduplicate === undefined) return { mark: '', markMs: '' }
  onlyKnown('deduplicate', deduplicate, ['by', 'forMs'])
  const by = oneOf('deduplicate.by', deduplicate.by, ['id', 'payload'])
  if (by === 'id' && id === undefined) throw new InvalidArgumentError('id', 'one to deduplicate by', id)
  const mark = by === 'id' ? `i${id}` : `p${createHash('sha256').update(payload).digest('base64url')}`
  return { mark, markMs: String(durationMs('deduplicate.forMs', deduplicate.forMs, 1)) }
}
