import { isBrief } from '../redis/replies/server-errors.js'
import { ShutdownError, isOfShutdown, toError } from '../errors.js'
import type { ReliableMessage } from '../reliable/message.js'
import type { PollOptions } from '../reliable/claims.js'
import { ShardedReliableQueue } from '../sharding/sharded-reliable-queue.js'
import { atMost } from '../timing/pause.js'
import { Assignment } from './assignment.js'
import type { Sources, WorkerQueue } from './sources.js'

/** The wait before a failed queue is polled again. */
const RETRY_MS = 1_000
/** The wait after a temporary refusal of the server. */
const BRIEF_MS = 200
/** How long an unresponsive queue delays the polls of the others. */
const MOST_DELAY_MS = 500
/** The most messages of one poll. */
const MOST = 1_000

/** Ends waits of workers. Shared, because no caller sees it, and making an error takes longer than handling a message. */
export const OVER = new ShutdownError('the worker waits no longer')

/** The result of a poll. */
interface Reply {
  readonly messages: readonly ReliableMessage[]
  readonly thrown?: unknown
}

/** The end of the waits of one round: the worker's signal aborts, or one of the queues has replied. */
class Ending {
  /** Aborts the polls. A queue alone gets the worker's own signal, because a new one for each round would outlive it (decision 0052). */
  readonly signal: AbortSignal
  /** Resolves at the end; never rejects. */
  readonly over: Promise<void>
  readonly #workers: AbortSignal
  #end = (): void => undefined

  constructor(workers: AbortSignal, queues: number) {
    const controller = queues > 1 ? new AbortController() : undefined
    this.#workers = workers
    this.signal = controller?.signal ?? workers
    this.over = new Promise((resolve) => {
      this.#end = () => {
        controller?.abort(OVER)
        resolve()
      }
    })
    workers.addEventListener('abort', this.#end, { once: true })
    if (workers.aborted) this.#end()
  }

  end(): void {
    this.#workers.removeEventListener('abort', this.#end)
    this.#end()
  }
}

/** Takes messages from the queues of a worker. A failing or unresponsive queue does not stop the polls of the others. */
export class Fetching {
  readonly #sources: Sources
  readonly #visibilityTimeout: number
  readonly #beforehand: boolean
  readonly #onError: (thrown: unknown) => void
  /**
   * Polls whose replies are too late for their round: a later round waits for them, or their messages are given back. They never reject.
   */
  readonly #overdue = new Map<WorkerQueue, Set<Promise<Reply>>>()
  /** When a queue that failed is polled again, while other queues have messages. */
  readonly #retryAt = new Map<WorkerQueue, number>()

  /** `beforehand`: the messages may have to wait for a handler. */
  constructor(sources: Sources, visibilityTimeout: number, beforehand: boolean, onError: (thrown: unknown) => void) {
    this.#sources = sources
    this.#visibilityTimeout = visibilityTimeout
    this.#beforehand = beforehand
    this.#onError = onError
  }

  /** Waits for up to `room` messages; several queues can give more. None after an abort, or if all queues fail. */
  async take(room: number, signal: AbortSignal): Promise<Assignment[]> {
    const count = Math.min(room, MOST)
    const queues = this.#sources.next()
    if (queues.length > 1) {
      const taken = await this.#takeNow(queues, count, signal)
      if (taken.length > 0 || signal.aborted) return taken
    }
    // several queues can reply at once: the worker keeps the messages beyond `room` for later
    const ending = new Ending(signal, queues.length)
    const taken = await Promise.all(queues.map((queue) => this.#wait(queue, count, ending)))
    return taken.flat()
  }

  /** Takes the messages of the first queue that has any now; skips a queue that owes a reply or has just failed. */
  async #takeNow(queues: readonly WorkerQueue[], count: number, signal: AbortSignal): Promise<Assignment[]> {
    for (const queue of queues) {
      if (this.#owedBy(queue) !== undefined || performance.now() < (this.#retryAt.get(queue) ?? 0)) continue
      const asked = this.#ask(queue, count, {})
      const { messages, thrown } = await this.#before(atMost(MOST_DELAY_MS, asked), queue, asked)
      if (messages.length > 0) return assignmentsOf(queue, messages)
      if (thrown !== undefined) this.#failed(queue, thrown)
      if (signal.aborted) break
    }
    return []
  }

  /** Waits for one queue. The first queue with messages ends the waits of the others; a failed one does so after a while. */
  async #wait(queue: WorkerQueue, count: number, ending: Ending): Promise<Assignment[]> {
    const { signal, over } = ending
    try {
      const owed = this.#owedBy(queue)
      if (owed !== undefined) this.#overdue.get(queue)?.delete(owed)
      const asked = owed ?? this.#ask(queue, count, { timeout: Infinity, signal })
      // an aborted poll ends at once, unless it has just got messages
      const end = owed === undefined ? over.then(() => atMost(MOST_DELAY_MS, asked)) : over
      const { messages, thrown } = await this.#before(end, queue, asked)
      // an owed poll can end because its own round was aborted
      if (thrown !== undefined && thrown !== OVER && !signal.aborted) {
        this.#failed(queue, thrown)
        await atMost(retryAfter(thrown), over) // not longer: messages of the other queues are not extended yet
      }
      return assignmentsOf(queue, messages)
    } finally {
      ending.end()
    }
  }

  async #ask(queue: WorkerQueue, count: number, options: PollOptions): Promise<Reply> {
    try {
      const asked = { ...options, count, visibilityTimeout: this.#visibilityTimeout }
      return { messages: await queue.pollFor(asked, this.#beforehand) }
    } catch (thrown) {
      return { messages: [], thrown }
    }
  }

  /** The reply if it comes before `end`; else no messages, and the poll is overdue. */
  async #before(end: Promise<unknown>, queue: WorkerQueue, asked: Promise<Reply>): Promise<Reply> {
    const reply = await Promise.race([asked, end.then(() => undefined)])
    if (reply !== undefined) return reply
    const overdue = this.#overdue.get(queue) ?? new Set()
    this.#overdue.set(queue, overdue.add(asked))
    void asked.then((late) => {
      // otherwise a later round waits for it
      if (overdue.delete(asked)) this.#giveBack(queue, late)
    })
    return { messages: [] }
  }

  #owedBy(queue: WorkerQueue): Promise<Reply> | undefined {
    return this.#overdue.get(queue)?.values().next().value
  }

  #giveBack(queue: WorkerQueue, { messages, thrown }: Reply): void {
    const report = (error: unknown): void => {
      if (!isOfShutdown(toError(error))) this.#onError(error)
    }
    if (thrown !== undefined) report(thrown)
    // messages that cannot be given back are redelivered when their visibility timeout ends
    if (messages.length > 0) queue.negativeAcknowledge(messages, { countAttempt: false }).catch(report)
  }

  /** Throws an error that ends the worker, and reports any other. */
  #failed(queue: WorkerQueue, thrown: unknown): void {
    if (thrown instanceof ShutdownError) throw thrown
    this.#retryAt.set(queue, performance.now() + retryAfter(thrown))
    this.#onError(thrown)
  }
}

function retryAfter(thrown: unknown): number {
  return isBrief(toError(thrown)) ? BRIEF_MS : RETRY_MS
}

/** Assigns each message to its shard, so that a failing shard does not affect the messages of the others. */
function assignmentsOf(queue: WorkerQueue, messages: readonly ReliableMessage[]): Assignment[] {
  const isSharded = queue instanceof ShardedReliableQueue
  return messages.map((message) => new Assignment(isSharded ? queue.queueOf(message) : queue, message, queue.name))
}
