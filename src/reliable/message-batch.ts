import { durationMs, type Duration } from '../duration.js'
import { NotCompletedError, PayloadTooLargeError } from '../errors.js'
import { nonEmptyString, onlyKnown } from '../options.js'
import type { QueueHandle } from '../queues/queue-handle.js'
import type { QueueRegistry } from '../scheduler/queue-registry.js'
import type { BatchReply, EndsReply } from '../store/reliable-scripts.js'
import type { LastMessage, ReliableStore } from '../store/reliable-store.js'
import { systemClock } from '../timing/clock.js'
import { prepare } from './add-options.js'
import type { WaitOptions } from './completed.js'
import { EndWaits, type EndWaitsParams } from './end-waits.js'
import { assertBatchName, drawnId } from './message-id.js'
import { TASK_HEADER, type Headers } from './record.js'

/** What is known of a batch. */
export interface BatchCounts {
  /** `'open'`: messages can be added to it; `'closed'`: some of its messages are in the queue still; `'finished'`: none is. */
  readonly state: 'open' | 'closed' | 'finished'
  /** How many messages were added to it. */
  readonly total: number
  /** How many of them are in the queue, waiting or in flight. */
  readonly pending: number
  readonly completed: number
  /** How many became dead letters, or are gone as such where the queue keeps none. */
  readonly dead: number
  readonly expired: number
  /** How many were cancelled, removed, replaced, or moved to another queue. */
  readonly removed: number
  /** When the first message was added, epoch milliseconds by the Redis clock. */
  readonly openedAt: number
  readonly closedAt: number | null
  readonly finishedAt: number | null
}

/** The last message of a batch. Its payload and headers have at most 8 KiB: it says what has ended, and its consumer reads the rest elsewhere. */
export interface LastBatchMessage<T> {
  /** What its consumer gets. */
  readonly payload: T
  /** The name of the worker's handler, as in `addTask`. */
  readonly task?: string | undefined
  /** 0 to 9, the highest first. Default 0. */
  readonly priority?: number | undefined
  /** At most 8 KiB, together with the payload. */
  readonly headers?: Headers | undefined
  /** When no consumer has handled it so many milliseconds after it was added, it is removed. Default: never. */
  readonly timeToLive?: Duration | undefined
  /** How often it is delivered at most. Default: the queue's, else 10. */
  readonly deliveryLimit?: number | undefined
}

export interface CloseBatchOptions<T> {
  /** A message that is added when all others of the batch have ended: once, whichever process handles the last of them. */
  readonly last?: LastBatchMessage<T> | undefined
}

const LAST_OPTIONS = ['payload', 'task', 'priority', 'headers', 'timeToLive', 'deliveryLimit'] as const
/** One script can add the last messages of many batches. */
const MOST_LAST_BYTES = 8 * 1024

/** Messages of one queue that were added under one name, and what became of them. */
export class MessageBatch<T = unknown> {
  readonly name: string
  readonly #handle: QueueHandle<T>
  readonly #store: ReliableStore
  readonly #waits: QueueRegistry<EndWaits>
  readonly #params: EndWaitsParams

  /** @internal */
  constructor(handle: QueueHandle<T>, store: ReliableStore, waits: QueueRegistry<EndWaits>, name: string) {
    this.name = handle.checked(() => assertBatchName('name', name))
    this.#handle = handle
    this.#store = store
    this.#waits = waits
    const address = { name: handle.name, channel: store.keys.batchEnds }
    this.#params = {
      address,
      look: async (names) => endsOf(await store.batches(names)),
      onError: (error) => waits.report(address, error),
      noConnectionYet: (triedForMs) => handle.context.commands.noConnectionYet(triedForMs),
      clock: systemClock,
    }
  }

  /**
   * How many messages of the batch there are, and how the others have ended; `null` where nothing was added to it, and where it finished so long ago
   * that it was forgotten.
   *
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const counts = await mails.batch('import-7').counts()
   * if (counts !== null) console.log(counts.state, counts.pending, 'of', counts.total, 'are left;', counts.dead, 'are dead letters')
   * ```
   */
  async counts(): Promise<BatchCounts | null> {
    const [counts = null] = await this.#handle.attribute(this.#store.batches([this.name]))
    return counts && countsOf(counts)
  }

  /**
   * Says that nothing more is added to the batch. When the last of its messages has ended (completed, dead, expired or removed), or here if none is left, the
   * batch is finished, and `last` is added: once, whichever process ends that message. Closing again changes nothing, and the `last` of the first
   * call stays; so a call that has failed can be repeated. Resolves with the counts.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`: nothing was sent
   * @throws PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: `last` is larger than 8 KiB or than the queue allows; nothing was changed
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether the batch may have been closed
   *
   * @example
   * ```ts
   * await mails.addMany([{ payload: { to: 'ada' } }, { payload: { to: 'bob' } }], { batch: 'import-7' })
   * await mails.batch('import-7').close({ last: { payload: { to: 'report@example.org' } } })
   * ```
   */
  async close(options: CloseBatchOptions<T> = {}): Promise<BatchCounts> {
    const last = this.#handle.checked(() => this.#lastOf(options))
    const counts = await this.#handle.attribute(this.#store.closeBatch(this.name, last))
    if (counts !== null) return countsOf(counts)
    throw this.#handle.withQueueName(new PayloadTooLargeError(last?.payload.length ?? 0, 'what the queue allows'))
  }

  /**
   * Waits until the batch is finished, whichever processes handle its messages; resolves with its counts. One that is finished already resolves
   * at once. The call asks Redis again when the end of the batch is published, and with every sweep.
   *
   * @throws NotCompletedError `ERR_NOT_COMPLETED`: `reason` is `'gone'` where there is no such batch, and `'timeout'` where the time was over first
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: Redis could not be reached; a wait that has begun goes on when Redis is back
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down while the call waited
   * @throws the reason of `signal`
   *
   * @example
   * ```ts
   * const { completed, dead } = await mails.batch('import-7').waitUntilFinished({ timeout: '10m' })
   * console.log(completed, 'were sent,', dead, 'were not')
   * ```
   */
  waitUntilFinished(options: WaitOptions = {}): Promise<BatchCounts> {
    return this.#handle.attribute(this.#wait(options))
  }

  async #wait(options: WaitOptions): Promise<BatchCounts> {
    onlyKnown('options', options, ['timeout', 'signal'])
    const { timeout = Infinity, signal } = options
    const timeoutMs = timeout === Infinity ? undefined : durationMs('timeout', timeout)
    const waits = this.#waits.serve(this.#params.address, () => new EndWaits(this.#params))
    const end = await waits.wait(this.name, { timeoutMs, signal })
    if (end.is === 'waits') throw new NotCompletedError('timeout', '', {}, 'batch')
    const counts = end.is === 'finished' ? end.counts : null
    if (counts === null) throw new NotCompletedError('gone', '', {}, 'batch')
    return countsOf(counts)
  }

  #lastOf(options: CloseBatchOptions<T>): LastMessage | null {
    onlyKnown('options', options, ['last'])
    if (options.last === undefined) return null
    onlyKnown('last', options.last, LAST_OPTIONS)
    const { payload, task, ...rest } = options.last
    const headers =
      task === undefined ? rest.headers : { ...rest.headers, [TASK_HEADER]: nonEmptyString('last.task', task) }
    const bytesOfPayload = this.#handle.encode(payload, 'last.payload')
    const last = prepare({ ...rest, headers }, bytesOfPayload, () => drawnId(this.#handle.context.ids))
    const bytes = last.payload.length + last.headers.length
    if (bytes > MOST_LAST_BYTES) throw new PayloadTooLargeError(bytes, MOST_LAST_BYTES)
    return last
  }
}

function countsOf({ state, pending, completed, dead, expired, removed, ...times }: BatchReply): BatchCounts {
  const total = pending + completed + dead + expired + removed
  return { state, total, pending, completed, dead, expired, removed, ...times }
}

/** For those who wait: what has not finished yet is waited for. */
function endsOf(batches: readonly (BatchReply | null)[]): EndsReply {
  const ends = batches.map((counts) => {
    if (counts === null) return { is: 'gone' } as const
    return counts.state === 'finished' ? ({ is: 'finished', counts } as const) : ({ is: 'waits' } as const)
  })
  return { keeps: true, ends }
}
