import { createHash } from 'node:crypto'
import { resolveDurability, type Durability, type Wait } from '../redis/durable/durability.js'
import { InvalidArgumentError, inWords } from '../errors.js'
import { PRIORITIES } from '../keys.js'
import { integer, nonEmptyString, oneOf, onlyKnown } from '../options.js'
import { MAX_MARK_MS, type NewMessage } from '../store/new-message.js'
import { durationMs, type Duration } from '../duration.js'
import { assertBatchName, assertId } from './message-id.js'
import { encodeHeaders, type Headers } from './record.js'

/** The policy for a message whose id exists already. */
export type ExistingPolicy = 'keep' | 'replace' | 'postpone'

export interface AddOptions {
  /** The message's id, unique in the queue. 1 to 512 bytes of UTF-8; default: a random one. */
  readonly id?: string | undefined
  /**
   * How many milliseconds after Redis accepted it the message becomes visible. Default: the `delay` of the queue's configuration, else 0.
   */
  readonly delay?: Duration | undefined
  /** When the message becomes visible, by the Redis clock; at once when that has passed. Not together with `delay`. */
  readonly date?: Date | undefined
  /** The priority, the highest first. 0 to 9; default 0. */
  readonly priority?: number | undefined
  /**
   * The message's group, such as a tenant, a customer or an API key. Groups take turns and have limits (`groupConcurrency`,
   * `groupRateLimit`). 1 to 255 bytes of UTF-8; not together with a `priority`. Default: none; all messages without a group share one turn.
   */
  readonly group?: string | undefined
  /** Texts by name that consumers get with the payload. At most 64 KiB together. */
  readonly headers?: Headers | undefined
  /** How many milliseconds after it became visible an unhandled message is removed. At least 1; default: the queue's, else never. */
  readonly timeToLive?: Duration | undefined
  /** The most deliveries of the message. 1 to 1,000,000; default: the queue's, else 10. */
  readonly deliveryLimit?: number | undefined
  /**
   * `'keep'` (default) leaves a message of the same id unchanged; `'replace'` removes it, even if a consumer has it, and adds
   * the new one; `'postpone'` gives the existing message the new time, unless a consumer has it.
   */
  readonly existing?: ExistingPolicy | undefined
  /**
   * Does not add the message if one with the same id, or the same payload, was added within the last `forMs` milliseconds, 1 to
   * 31,536,000,000 (365 days).
   */
  readonly deduplicate?: { readonly by: 'id' | 'payload'; readonly forMs: Duration } | undefined
  /**
   * The batch that counts the messages until they have ended: see `batch` of the queue. 1 to 255 bytes of UTF-8. An existing message that
   * is kept or postponed stays in its batch. Not for sharded queues. Default: none.
   */
  readonly batch?: string | undefined
  /**
   * Where the message must be stored, besides the server's memory, before the call resolves: on a number of replicas, or in the append-only
   * file on disk. It applies to every outcome, also to an existing message that is kept. See docs/durability.md.
   */
  readonly durability?: Durability | undefined
}

/** The options that apply to all messages of one call. */
export type AddManyOptions = Pick<AddOptions, 'existing' | 'durability' | 'batch'>

/** One message for `addMany`. */
export interface AddItem<T> extends Omit<AddOptions, keyof AddManyOptions> {
  /** The value that consumers get. */
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

/** A checked and encoded message. */
export interface PendingMessage extends NewMessage {
  /** Whether this client drew the id, so that no other message has it. */
  readonly isDrawn: boolean
}

export type MessageOptions = Omit<AddOptions, keyof AddManyOptions>

/** Checks the options and makes the message. `drawId` gets the deduplication mark, or an empty text. */
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

/** The checked options that apply to all messages of one call. */
export interface How {
  readonly existing: ExistingPolicy
  /** The batch; empty for none. */
  readonly batch: string
  /** The durability that the call waits for, if any. */
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

/** The bytes of the group; empty for none. @throws InvalidArgumentError */
export function groupOf({ group, priority = 0 }: Pick<MessageOptions, 'group' | 'priority'>): Buffer {
  if (group === undefined) return NO_GROUP
  if (priority !== 0) throw new InvalidArgumentError('priority', 'no priority together with a group', priority)
  return groupBytes('group', group)
}

function visibleOf({ delay, date }: AddOptions): string {
  if (date === undefined) return delay === undefined ? '' : String(durationMs('delay', delay))
  if (delay !== undefined) throw new InvalidArgumentError('delay', 'no delay together with a date', delay)
  return dateText('date', date)
}

/** A date in the scripts' format. @throws InvalidArgumentError */
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
  if (by === 'id' && id === undefined) throw new InvalidArgumentError('id', "an id, for deduplicate.by 'id'", id)
  const mark = by === 'id' ? `i${id}` : `p${createHash('sha256').update(payload).digest('base64url')}`
  return { mark, markMs: String(durationMs('deduplicate.forMs', deduplicate.forMs, 1, MAX_MARK_MS)) }
}
