import { ShutdownError, UnsupportedOperationError, ownCopy, toError } from '../errors.js'
import { onAbort } from '../redis/blocking/abort-signals.js'
import { LINGER_MS, type QueueAddress, type ServedQueue } from '../scheduler/queue-registry.js'
import type { EndReply, EndsReply } from '../store/reliable-scripts.js'
import type { Clock } from '../timing/clock.js'
import { DeadlineTimer } from '../timing/deadline-timer.js'
import { nextTurn } from '../timing/pause.js'

export interface EndWaitsParams {
  readonly address: QueueAddress
  /** Reads how messages, or batches by their names, have ended; the reply covers at least the first id. */
  readonly readEnds: (ids: readonly string[]) => Promise<EndsReply>
  readonly onError: (error: Error) => void
  /** The error of a wait that has not reached Redis within this time. */
  readonly noConnectionYet: (triedForMs: number) => Error | undefined
  readonly clock: Clock
}

export interface EndWaitOptions {
  /** How long the call waits; without it, without end. */
  readonly timeoutMs: number | undefined
  readonly signal: AbortSignal | undefined
}

/** How a wait ends: the end of the message or batch, or `waits` when the time is over first. */
export type WaitedEnd = EndReply

interface Waiter {
  /** Whether Redis has answered this call. */
  hasAnswer: boolean
  /** The call's time is over, and it waits only for that first answer. */
  isOver: boolean
  readonly settle: (how: WaitedEnd | Error) => void
}

/** The most ids of one script. */
const TOGETHER = 100
/** How much longer a call waits whose time is over before the first answer of Redis. */
const FIRST_ANSWER_MS = 1_000
/**
 * The longest message that is read. No script of this package publishes a longer one; after one of another program the calls ask Redis
 * again with the next sweep.
 */
const MOST_TEXT = 4 * 1024 * 1024
/** The most lines that a script publishes, and the longest line of an awaited id: to read four million characters takes long. */
const MOST_LINES = 10_000
const LONGEST_LINE = 2_000

/**
 * The calls of one queue that wait until messages, or batches, have ended. A call asks Redis when it begins, when the channel is
 * subscribed, when the end of its message is announced, and with each sweep, so that a lost announcement does not make it wait for ever.
 */
export class EndWaits implements ServedQueue {
  readonly #params: EndWaitsParams
  readonly #waiting = new Map<string, Set<Waiter>>()
  readonly #toAsk = new Set<string>()
  #isAsking = false
  #lastUsed = -Infinity
  #closed: Error | undefined

  constructor(params: EndWaitsParams) {
    this.#params = params
  }

  get address(): QueueAddress {
    return this.#params.address
  }

  get isUsed(): boolean {
    return this.#waiting.size > 0 || this.#params.clock.now() - this.#lastUsed < LINGER_MS
  }

  wait(id: string, { timeoutMs, signal }: EndWaitOptions): Promise<WaitedEnd> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed)
    if (signal?.aborted === true) return Promise.reject(toError(signal.reason))
    const { clock } = this.#params
    const since = clock.now()
    this.#lastUsed = since
    return new Promise((resolve, reject) => {
      const timer = new DeadlineTimer(clock, () => {
        const why = this.#whyNone(waiter, since)
        if (why !== undefined || waiter.hasAnswer || waiter.isOver) waiter.settle(why ?? { is: 'waits' })
        else {
          waiter.isOver = true
          timer.replace(clock.now() + FIRST_ANSWER_MS)
        }
      })
      const waiter: Waiter = {
        hasAnswer: false,
        isOver: false,
        settle: (how) => {
          this.#remove(id, waiter)
          timer.clear()
          unlisten?.()
          if (how instanceof Error) reject(how)
          else resolve(how)
        },
      }
      const others = this.#waiting.get(id) ?? new Set()
      this.#waiting.set(id, others.add(waiter))
      const unlisten = signal && onAbort(signal, () => waiter.settle(toError(signal.reason)))
      if (timeoutMs !== undefined) timer.replace(since + timeoutMs)
      this.#ask([id])
    })
  }

  onSubscribed(): void {
    this.#ask(this.#waiting.keys())
  }

  onUnsubscribed(): void {
    // the sweep finds messages that end meanwhile
  }

  /** Reads lines of ids, in which line feeds and backslashes are escaped. */
  onMessage(message: string): void {
    if (this.#waiting.size === 0 || message.length > MOST_TEXT) return
    const lines = message.split('\n', MOST_LINES).filter(({ length }) => length <= LONGEST_LINE)
    this.#ask(lines.map(unescaped).filter((id) => this.#waiting.has(id)))
  }

  sweep(): void {
    this.#ask(this.#waiting.keys())
  }

  stop(): Promise<void> {
    this.#closed = new ShutdownError('the client was shut down')
    for (const waiters of [...this.#waiting.values()]) for (const waiter of [...waiters]) waiter.settle(this.#closed)
    return Promise.resolve()
  }

  /** Asks for the ids of one turn of the event loop together. */
  #ask(ids: Iterable<string>): void {
    for (const id of ids) this.#toAsk.add(id)
    if (this.#toAsk.size === 0 || this.#isAsking) return
    this.#isAsking = true
    void this.#askForAll()
  }

  async #askForAll(): Promise<void> {
    await nextTurn()
    try {
      while (this.#toAsk.size > 0 && this.#closed === undefined) await this.#askForSome()
    } finally {
      this.#isAsking = false // in the same turn as the check above: a later id begins anew
    }
  }

  async #askForSome(): Promise<void> {
    const waited: string[] = []
    for (const id of this.#toAsk) {
      if (waited.length === TOGETHER) break
      this.#toAsk.delete(id) // before the question: an id published while Redis answers is asked for again
      if (this.#waiting.has(id)) waited.push(id)
    }
    if (waited.length === 0) return
    // the answer does not apply to calls that begin to wait after the question
    const asking = waited.map((id) => [...(this.#waiting.get(id) ?? [])])
    try {
      const { ends, keeps } = await this.#params.readEnds(waited)
      waited.slice(ends.length).forEach((id) => this.#toAsk.add(id))
      ends.forEach((end, at) => asking[at]?.forEach((waiter) => answer(waiter, end, keeps)))
    } catch (thrown) {
      this.#onFailure(asking.flat(), toError(thrown))
    }
  }

  /** A call that Redis has answered before waits for the next sweep; any other rejects. */
  #onFailure(waiters: readonly Waiter[], error: Error): void {
    for (const waiter of waiters) if (!waiter.hasAnswer) waiter.settle(ownCopy(error))
    if (waiters.some(({ hasAnswer }) => hasAnswer)) this.#params.onError(error)
  }

  #whyNone(waiter: Waiter, since: number): Error | undefined {
    return waiter.hasAnswer ? undefined : this.#params.noConnectionYet(this.#params.clock.now() - since)
  }

  #remove(id: string, waiter: Waiter): void {
    const waiters = this.#waiting.get(id)
    waiters?.delete(waiter)
    if (waiters?.size === 0) this.#waiting.delete(id)
    this.#lastUsed = this.#params.clock.now()
  }
}

function unescaped(line: string): string {
  return line.replace(/\\([n\\])/g, (_, sign: string) => (sign === 'n' ? '\n' : sign))
}

/** Passes an answer to a call; without effect if the call was settled meanwhile. */
function answer(waiter: Waiter, end: EndReply, keeps: boolean): void {
  waiter.hasAnswer = true
  if (end.is === 'waits' && keeps && !waiter.isOver) return
  if (end.is === 'completed' || end.is === 'dead' || keeps) waiter.settle(end)
  else waiter.settle(new UnsupportedOperationError(NOT_KEPT))
}

const NOT_KEPT = 'the queue keeps no completed messages: set keepCompleted with setConfig'
