import { InvalidArgumentError, RedelayedError } from '../errors.js'
import { integer, onlyKnown } from '../options.js'
import type { QueueHandle } from '../queues/queue-handle.js'
import { addPages, type HowToRestore, type RestoredMessage } from '../store/new-message.js'
import type { ReliableStore, StoredMessage } from '../store/reliable-store.js'
import { assertPriority, groupBytes, MAX_DELIVERIES, NO_GROUP } from './add-options.js'
import { readFailures, writeFailures, type FailedAttempt } from './failures.js'
import { assertKnownId } from './message-id.js'
import { encodeHeaders, readRecord, type Headers } from './record.js'

/** All that there is of a message, with its payload as the queue's codec wrote it: enough to make the message again. */
export interface RawMessage {
  readonly id: string
  /** When it is, was, or will be again visible, epoch milliseconds by the Redis clock. */
  readonly dueAt: number
  readonly priority: number
  /** The group that it was added with, where it has one. */
  readonly group?: string | undefined
  /** How often it was delivered. */
  readonly attempts: number
  readonly headers: Headers
  readonly payload: Uint8Array
  /** Epoch milliseconds; `null` when it never expires. */
  readonly expiresAt: number | null
  /** Its own, where it has one. */
  readonly deliveryLimit: number | null
  readonly failures: readonly FailedAttempt[]
}

/** A stored message. */
export interface StoredRawMessage extends RawMessage {
  /** Whether a consumer has it; then `dueAt` is the end of its visibility. */
  readonly inFlight: boolean
}

/** A message that is put back. */
export interface RestoreItem extends RawMessage {
  /**
   * The due time of the message of this id that this one may replace. Without it, and where that message has another due time, the message
   * that is there stays as it is; with it, a message is put back only in the place of another one. Of a message that a consumer has it is the end
   * of its visibility; its acknowledgement comes too late then.
   */
  readonly replaces?: number | undefined
}

/** How messages are put back. */
export interface RestoreOptions {
  /**
   * Whether the readers of the change stream know the messages as they are put back: it says `restored` with their ids then, in place of `added`
   * with all that they have. Default false.
   */
  readonly known?: boolean | undefined
  /**
   * Whether they are dead letters, put back into the queue of dead letters: there a message with a group takes no turns, and keeps its group for when it
   * goes back. Default false.
   */
  readonly deadLetters?: boolean | undefined
}

/**
 * `'present'`: a message of this id is there and stays as it is. `'absent'`: the message that this one may replace is not there any more, and this one
 * is not put back.
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
/** So many ids are read one page after the other. */
const READ_TOGETHER = 250

/** Reads and restores messages whole, with their payloads as bytes. */
export class RawMessages<T> {
  readonly #handle: QueueHandle<T>
  readonly #store: ReliableStore

  constructor(handle: QueueHandle<T>, store: ReliableStore) {
    this.#handle = handle
    this.#store = store
  }

  /** All are checked before anything is sent. */
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

  /** One that cannot be read is reported and `null`: it must not keep the others from who reads them. */
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

  /** Pages of messages in the order of `Contents.list`; one that cannot be read is reported and left out. */
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

/** Without a list of its names: a million messages are put back one after the other. */
function hasOnlyKnown(item: RestoreItem): boolean {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return false
  for (const name in item) if (!KNOWN_NAMES.has(name)) return false
  return true
}

/** As `integer`, with the name made only where something is wrong. */
function whole(at: number, name: keyof RestoreItem, value: unknown, min: number, max: number): number {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return value as number
  return integer(`items[${at}].${name}`, value, min, max)
}
