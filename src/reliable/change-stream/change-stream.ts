import { randomBytes } from 'node:crypto'
import { InvalidArgumentError } from '../../errors.js'
import { integer, nonEmptyString, onlyKnown } from '../../options.js'
import type { QueueHandle } from '../../queues/queue-handle.js'
import type { Reader, ReliableChangeStore } from '../../store/reliable-change-store.js'
import { durationMs, type Duration } from '../../duration.js'
import { TurnTime } from '../../timing/turn-time.js'
import { batchOf, digestOf, isOfClock } from './change-batch.js'
import type { ChangeBatch, ChangePage, ChangePosition, ChangeStatus } from './change.js'
import { ChangeReader, type ReaderParams } from './change-reader.js'
import { closeWithClient } from './close-with-client.js'
import type { Start } from './open-stream.js'

export interface ChangesOptions {
  /** The readers of a group share the changes: each entry goes to one reader, and later to another until it is acknowledged. */
  readonly group?: string | undefined
  /**
   * This reader's name within the group; a reader that uses a name again first gets what it did not acknowledge. Default: a random name, so
   * that another reader gets the unacknowledged entries after `claimAfter`, out of order.
   */
  readonly consumer?: string | undefined
  /**
   * Where to begin: `'start'` (default for a new group): with the first entry; `'end'` (default without a group): with the next new one; or
   * after a position. An existing group continues where it is.
   */
  readonly from?: ChangePosition | 'start' | 'end' | undefined
  /**
   * After how many milliseconds another reader gets an unacknowledged entry. The time counts from when its page of up to 100 entries was
   * fetched. At least 1; default 60,000.
   */
  readonly claimAfter?: Duration | undefined
  /** Ends the iteration with its reason. */
  readonly signal?: AbortSignal | undefined
}

export interface ReadChangesOptions {
  /**
   * The entry after which the page begins, `'0-0'` for the beginning. With an epoch the status says whether the entry is still there, with
   * a digest whether it is the same.
   */
  readonly after: { readonly id: string; readonly epoch: string | null; readonly digest?: string | null | undefined }
  /** The most entries of the page. 1 to 10,000; default 200. */
  readonly count?: number | undefined
}

const OPTIONS = ['group', 'consumer', 'from', 'claimAfter', 'signal'] as const
const CLAIM_AFTER_MS = 60_000
const CONSUMER_BYTES = 9
/** The size of a page, which ends with the entry that exceeds it. */
const PAGE_BYTES = 4 * 1024 * 1024
const ID = /^\d{1,16}-\d{1,16}$/
const NO_EPOCH = '-'
const DIGEST = /^[0-9a-f]{40}$/
const EPOCH = /^~?[\w-]{1,32}$/

/** Reads the changes of one queue, and reports the progress of its readers. */
export class ChangeStream {
  readonly #handle: QueueHandle<unknown>
  readonly #store: ReliableChangeStore

  constructor(handle: QueueHandle<unknown>, store: ReliableChangeStore) {
    this.#handle = handle
    this.#store = store
  }

  /** Reads changes; sends nothing before the first `next()`. */
  async *read(options: ChangesOptions = {}): AsyncGenerator<ChangeBatch, void> {
    const { reader, end } = this.#reader(options)
    try {
      await reader.open()
      yield* reader.read()
    } finally {
      end()
    }
  }

  /** As `read`; resolves when the place to begin is known. */
  async follow(options: ChangesOptions): Promise<AsyncGenerator<ChangeBatch, void>> {
    const { reader, end } = this.#reader(options)
    try {
      await reader.open()
    } catch (error) {
      end()
      throw error
    }
    return (async function* () {
      try {
        yield* reader.read()
      } finally {
        end()
      }
    })()
  }

  async acknowledge(group: string, positions: readonly ChangePosition[]): Promise<number> {
    nonEmptyString('group', group)
    const ids = positions.map((position, at) => assertPosition(`positions[${at}]`, position).id)
    return ids.length === 0 ? 0 : this.#store.acknowledge(group, ids)
  }

  async removeGroup(group: string): Promise<boolean> {
    return this.#store.removeGroup(nonEmptyString('group', group))
  }

  async page(options: ReadChangesOptions): Promise<ChangePage> {
    onlyKnown('options', options, ['after', 'count'])
    const { after, count = 200 } = options
    const asPosition = assertPosition('after', { ...after, epoch: after?.epoch ?? NO_EPOCH })
    const { entries, ...page } = await this.#store.readPage(
      { id: asPosition.id, epoch: after.epoch, digest: asDigest(after.digest) },
      integer('count', count, 1, 10_000),
      PAGE_BYTES,
    )
    const { name, context } = this.#handle
    // a position beyond all times could not be stored, and nothing follows it until a script begins the stream anew
    const ofClock = entries.filter(({ id }) => isOfClock(id))
    const batches: ChangeBatch[] = []
    const time = new TurnTime()
    for (const entry of ofClock) {
      const batch = await batchOf(entry, time)
      if (!('error' in batch)) {
        const position = { ...batch.position, digest: digestOf(entry) }
        batches.push({ ...batch, position })
        continue
      }
      const error = this.#handle.withQueueName(batch.error)
      context.hub.emit('quarantined', { queue: name, reason: 'undecodable', count: 1, error })
      const position = { epoch: page.epoch ?? '', id: entry.id }
      batches.push({ position, at: Number.parseInt(entry.id, 10), client: '', changes: [] })
    }
    return { ...page, batches }
  }

  async release(group: string, id: string): Promise<boolean> {
    const { id: checked } = assertPosition('id', { id, epoch: NO_EPOCH })
    return this.#store.release(nonEmptyString('group', group), checked)
  }

  status(): Promise<ChangeStatus> {
    return this.#store.status()
  }

  #reader(options: ChangesOptions): { reader: ChangeReader; end: () => void } {
    const how = howToRead(options)
    const { signal, end } = closeWithClient(this.#handle.context.buffers, options.signal)
    return { reader: new ChangeReader({ store: this.#store, handle: this.#handle, ...how, signal }), end }
  }
}

/** @throws InvalidArgumentError */
export function howToRead(options: ChangesOptions): Pick<ReaderParams, 'start' | 'reader' | 'claimAfterMs'> {
  onlyKnown('options', options, OPTIONS)
  const { group, from = group === undefined ? 'end' : 'start', claimAfter = CLAIM_AFTER_MS } = options
  if (group === undefined && options.consumer !== undefined)
    throw new InvalidArgumentError('consumer', 'none without a group', options.consumer)
  const consumer = options.consumer ?? randomBytes(CONSUMER_BYTES).toString('base64url')
  const names = (of: string): Reader => {
    return { group: nonEmptyString('group', of), consumer: nonEmptyString('consumer', consumer) }
  }
  return {
    start: assertStart(from),
    reader: group === undefined ? undefined : names(group),
    claimAfterMs: durationMs('claimAfter', claimAfter, 1),
  }
}

/** @throws InvalidArgumentError */
function asDigest(digest: unknown): string {
  if (digest === undefined || digest === null) return ''
  if (typeof digest === 'string' && DIGEST.test(digest)) return digest
  throw new InvalidArgumentError('after.digest', 'that of a position', digest)
}

function assertStart(from: unknown): Start {
  return from === 'start' || from === 'end' ? from : assertPosition('from', from)
}

/** @throws InvalidArgumentError */
export function assertPosition(what: string, position: unknown): ChangePosition {
  if (typeof position === 'object' && position !== null && 'epoch' in position && 'id' in position) {
    const { epoch, id } = position
    if (typeof epoch === 'string' && EPOCH.test(epoch) && typeof id === 'string' && ID.test(id)) return { epoch, id }
  }
  throw new InvalidArgumentError(what, 'a position with epoch and id', position)
}
