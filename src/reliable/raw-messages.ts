import { InvalidArgumentError, RedelayedError } from '../errors.js'
import { integer, onlyKnown } from '../options.js'
import type { QueueHandle } from '../queues/queue-handle.js'
import { addPages, type HowToRestore, type RestoredMessage } from '../store/new-message.js'
import type { ReliableStore, StoredMessage } from '../store/reliable-store.js'
import { assertPriority, groupBytes, MAX_DELIVERIES, NO_GROUP } from './add-options.js'
import { readFailures, writeFailures, type FailedAttempt } from './failures.js'
import { assertKnownId } from './message-id.js'
import { encodeHeaders, readRecord, type Headers } from './record.js'

/** All data of a message, with the encoded payload: enough to restore the message. */
export interface RawMessage {
  readonly id: string
  /** When the message is, was, or will be visible again, epoch milliseconds by the Redis clock. */
  readonly dueAt: number
  readonly priority: number
  /** The message's group, if any. */
  readonly group?: string | undefined
  /** How often the message was delivered. */
  readonly attempts: number
  readonly headers: Headers
  readonly payload: Uint8Array
  /** When the message expires, epoch milliseconds; `null` for never. */
  readonly expiresAt: number | null
  /** The message's own delivery limit; `null` for none. */
  readonly deliveryLimit: number | null
  readonly failures: readonly FailedAttempt[]
}

/** A stored message. */
export interface StoredRawMessage extends RawMessage {
  /** Whether a consumer has the message; then `dueAt` is the end of its visibility. */
  readonly inFlight: boolean
}

/** A message to restore. */
export interface RestoreItem extends RawMessage {
  /**
   * The due time of the existing message of this id that this one may replace. Without it, and if the existing message has another due
   * time, that message stays; with it, this message is restored only in the place of the existing one. For a message that a consumer has,
   * it is the end of the visibility; the consumer's acknowledgement is then too late.
   */
  readonly replaces?: number | undefined
}

/** Options of restoring messages. */
export interface RestoreOptions {
  /**
   * Whether the readers of the change stream know these messages already: the stream then has `restored` with the ids instead of `added`
   * with all data. Default false.
   */
  readonly known?: boolean | undefined
  /**
   * Whether the messages are dead letters that go back to the queue of dead letters: there a message with a group takes no turns, but keeps
   * its group for a redrive. Default false.
   */
  readonly deadLetters?: boolean | undefined
}

/**
 * `'present'`: a message of this id exists and stays unchanged. `'absent'`: the message that this one may replace no longer exists, and
 * this one was not restored.
 */
export type RestoreOutcome = 'restored' | 'replaced' | 'present' | 'absent'

const OUTCOMES: readonly RestoreOutcome[] = ['present', 'restored', 'replaced', 'absent']
const ITEM_OPTIONS = [
  'id',
  'dueAt',
  'priority',
  'group',
  'attempts',
  'headers',
  'payload',
  'expiresAt',
  'deliveryLimit',
  'failures',
  'replaces',
  'inFlight',
] as const
const KNOWN_NAMES: ReadonlySet<string> = new Set(ITEM_OPTIONS)
const SCRIPTS_IN_FLIGHT = 4
/** The ids of one page of `getAll`. */
const READ_TOGETHER = 250

/** Reads and restores messages with all their data, and the payloads as bytes. */
export class RawMessages<T> {
  readonly #handle: QueueHandle<T>
  readonly #store: ReliableStore

  constructor(handle: QueueHandle<T>, store: ReliableStore) {
    this.#handle = handle
    this.#store = store
  }

  /** Restores messages; all are checked before anything is sent. */
  async restoreMany(items: Iterable<RestoreItem>, options: RestoreOptions = {}): Promise<RestoreOutcome[]> {
    const how = howToRestore(options)
    const pages = addPages(Array.from(items, assertRestored))
    const outcomes: RestoreOutcome[][] = pages.map(() => [])
    const left = pages.entries()
    const work = async (): Promise<void> => {
      for (const [at, page] of left)
        outcomes[at] = (await this.#store.restore(page, how)).map((outcome) => OUTCOMES[outcome] ?? 'present')
    }
    await Promise.all(Array.from({ length: Math.min(SCRIPTS_IN_FLIGHT, pages.length) }, work))
    return outcomes.flat()
  }

  /** Reads messages; an unreadable one is reported and `null`, so that the caller still gets the others. */
  async getAll(ids: readonly string[]): Promise<(StoredRawMessage | null)[]> {
    const bytes = ids.map((id, at) => Buffer.from(assertKnownId(`ids[${at}]`, id)))
    const found: (StoredRawMessage | null)[][] = []
    const parts = Array.from({ length: Math.ceil(bytes.length / READ_TOGETHER) }, (_, n) =>
      bytes.slice(n * READ_TOGETHER, (n + 1) * READ_TOGETHER),
    ).entries()
    const work = async (): Promise<void> => {
      for (const [at, part] of parts) {
        const some: (StoredRawMessage | null)[] = (found[at] = [])
        for await (const { messages } of this.#store.get(part))
          some.push(...messages.map((message) => message && (this.#readable(message)[0] ?? null)))
      }
    }
    await Promise.all(Array.from({ length: SCRIPTS_IN_FLIGHT }, work))
    return found.flat()
  }

  /** Pages of messages in the order of `Contents.list`; an unreadable one is reported and left out. */
  async *pages(pageSize: number): AsyncGenerator<StoredRawMessage[], void> {
    for (const schedule of [...this.#store.keys.due.keys(), 'inFlight'] as const) {
      for (let from = 0; ; from += pageSize) {
        const ids = await this.#store.idsOf(schedule, ['-inf', '+inf'], from, pageSize)
        for await (const { messages } of this.#store.get(ids)) {
          const page = messages.flatMap((message) => (message === null ? [] : this.#readable(message)))
          if (page.length > 0) yield page
        }
        if (ids.length < pageSize) break
      }
    }
  }

  #readable(message: StoredMessage): StoredRawMessage[] {
    try {
      return [asRaw(message)]
    } catch (thrown) {
      if (!(thrown instanceof RedelayedError)) throw thrown
      this.#handle.context.hub.emit('error', this.#handle.withQueueName(thrown))
      return []
    }
  }
}

function asRaw(message: StoredMessage): StoredRawMessage {
  const { visibleAt, priority, attempts, inFlight } = message
  const failures = readFailures(message.failures)
  return {
    id: message.id.toString(),
    dueAt: visibleAt,
    priority,
    attempts,
    inFlight,
    failures,
    ...readRecord(message.record),
  }
}

/** @throws InvalidArgumentError */
export function howToRestore(options: RestoreOptions): HowToRestore {
  onlyKnown('options', options, ['known', 'deadLetters'])
  const { known = false, deadLetters = false } = options
  if (typeof known !== 'boolean') throw new InvalidArgumentError('options.known', 'true or false', known)
  if (typeof deadLetters !== 'boolean')
    throw new InvalidArgumentError('options.deadLetters', 'true or false', deadLetters)
  return { known, deadLetters }
}

/** @throws InvalidArgumentError */
export function assertRestored(item: RestoreItem, at: number): RestoredMessage {
  if (!hasOnlyKnown(item)) onlyKnown(`items[${at}]`, item, ITEM_OPTIONS)
  const { id, dueAt, priority, attempts, headers, payload, expiresAt, deliveryLimit, failures, replaces, group } = item
  if (!(payload instanceof Uint8Array)) throw new InvalidArgumentError(`items[${at}].payload`, 'bytes', payload)
  if (!Array.isArray(failures)) throw new InvalidArgumentError(`items[${at}].failures`, 'an array', failures)
  return {
    id: assertKnownId(`items[${at}].id`, id),
    dueAt: whole(at, 'dueAt', dueAt, 0, Number.MAX_SAFE_INTEGER),
    priority: assertPriority(priority),
    group: group === undefined ? NO_GROUP : groupBytes(`items[${at}].group`, group),
    attempts: whole(at, 'attempts', attempts, 0, Number.MAX_SAFE_INTEGER),
    headers: encodeHeaders(headers),
    payload: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength),
    expiresAt: expiresAt === null ? null : whole(at, 'expiresAt', expiresAt, 1, Number.MAX_SAFE_INTEGER),
    deliveryLimit: deliveryLimit === null ? null : whole(at, 'deliveryLimit', deliveryLimit, 1, MAX_DELIVERIES),
    failures: writeFailures(failures),
    replaces: replaces === undefined ? null : whole(at, 'replaces', replaces, 0, Number.MAX_SAFE_INTEGER),
  }
}

/** Whether an item has only known properties; makes no list of the names, because a million messages can be restored. */
function hasOnlyKnown(item: RestoreItem): boolean {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return false
  for (const name in item) if (!KNOWN_NAMES.has(name)) return false
  return true
}

/** As `integer`, but makes the name only for an error. */
function whole(at: number, name: keyof RestoreItem, value: unknown, min: number, max: number): number {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return value as number
  return integer(`items[${at}].${name}`, value, min, max)
}
