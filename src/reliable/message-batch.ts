import { durationMs, type Duration } from '../duration.js'
import { NotCompletedError, PayloadTooLargeError } from '../errors.js'
import { nonEmptyString, onlyKnown } from '../options.js'
import { namesOperations } from '../queues/operations.js'
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

/** The state and the counts of a batch. */
export interface BatchCounts {
  /** `'open'`: messages can be added to it; `'closed'`: the queue still has some of them; `'finished'`: all have ended. */
  readonly state: 'open' | 'closed' | 'finished'
  /** Messages that were added to the batch. */
  readonly total: number
  /** Messages that are still in the queue, waiting or in flight. */
  readonly pending: number
  readonly completed: number
  /** Messages that became dead letters, or were dropped where the queue keeps none. */
  readonly dead: number
  readonly expired: number
  /** Messages that were cancelled, removed, replaced, or moved to another queue. */
  readonly removed: number
  /** When the first message was added, epoch milliseconds by the Redis clock. */
  readonly openedAt: number
  readonly closedAt: number | null
  readonly finishedAt: number | null
}

/**
 * The last message of a batch, with at most 8 KiB of payload and headers: it announces the end, and its consumer reads the rest elsewhere.
 */
export interface LastBatchMessage<T> {
  /** The value that its consumer gets. */
  readonly payload: T
  /** The name of the worker's handler, as in `addTask`. */
  readonly task?: string | undefined
  /** The priority, the highest first. 0 to 9; default 0. */
  readonly priority?: number | undefined
  /** At most 8 KiB, together with the payload. */
  readonly headers?: Headers | undefined
  /** How many milliseconds after it was added the unhandled message is removed. Default: never. */
  readonly timeToLive?: Duration | undefined
  /** The most deliveries of the message. Default: the queue's, else 10. */
  readonly deliveryLimit?: number | undefined
}

export interface CloseBatchOptions<T> {
  /** A message that is added once, when all messages of the batch have ended, whichever process handles the last of them. */
  readonly last?: LastBatchMessage<T> | undefined
}

const LAST_OPTIONS = ['payload', 'task', 'priority', 'headers', 'timeToLive', 'deliveryLimit'] as const
/** The most bytes of a last message: one script can add those of many batches. */
const MOST_LAST_BYTES = 8 * 1024

/** Messages of one queue that were added under one name, and what became of them. */
export class MessageBatch<T = unknown> {
  readonly name: string
  readonly #handle: QueueHandle<T>
  readonly #store: ReliableStore
  readonly #waits: QueueRegistry<EndWaits>
  readonly #params: EndWaitsParams

  static {
    namesOperations(this, {
      queueOf: (batch) => batch.#handle.name,
      as: { counts: 'batch.counts', close: 'batch.close', waitUntilFinished: 'batch.waitUntilFinished' },
    })
  }

  /** @internal */
  constructor(handle: QueueHandle<T>, store: ReliableStore, waits: QueueRegistry<EndWaits>, name: string) {
    this.name = assertBatchName('name', name)
    this.#handle = handle
    this.#store = store
    this.#waits = waits
    const address = { name: handle.name, channel: store.keys.batchEnds }
    this.#params = {
      address,
      readEnds: async (names) => endsOf(await store.batches(names)),
      onError: (error) => waits.report(address, error),
      noConnectionYet: (triedForMs) => handle.context.commands.noConnectionYet(triedForMs),
      clock: systemClock,
    }
  }

  /**
   * The state and the counts of the batch; `null` if no message was added to it, and if it finished so long ago
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
    const [counts = null] = await this.#store.batches([this.name])
    return counts && countsOf(counts)
  }

  /**
   * Closes the batch: no more messages can be added to it. When the last of its messages has ended (completed, dead, expired or removed),
   * or now if none is left, the batch is finished and `last` is added: once, whichever process ends that message. Closing again keeps
   * the `last` of the first call, so a failed call can be repeated; it changes nothing, unless the batch counts messages that are gone.
   * Resolves with the counts.
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
    const last = this.#lastOf(options)
    const counts = await this.#store.closeBatch(this.name, last)
    if (counts !== null) return countsOf(counts)
    throw new PayloadTooLargeError(last?.payload.length ?? 0, 'what the queue allows')
  }

  /**
   * Waits until the batch is finished, whichever processes handle its messages; resolves with its counts. One that is finished already
   * resolves at once. The call asks Redis again when the end of the batch is published, and with every sweep.
   *
   * @throws NotCompletedError `ERR_NOT_COMPLETED`: `reason` is `'gone'` if there is no such batch, and `'timeout'` if the time was over
   *   first
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
  async waitUntilFinished(options: WaitOptions = {}): Promise<BatchCounts> {
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

/** The ends for waiting calls: a batch that has not finished is still waited for. */
function endsOf(batches: readonly (BatchReply | null)[]): EndsReply {
  const ends = batches.map((counts) => {
    if (counts === null) return { is: 'gone' } as const
    return counts.state === 'finished' ? ({ is: 'finished', counts } as const) : ({ is: 'waits' } as const)
  })
  return { keeps: true, ends }
}
