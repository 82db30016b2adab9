import { RedelayedError, ShutdownError, toError } from '../errors.js'
import { Events, type EventHub, type HandledEvent, type HandledOutcome } from '../events.js'
import type { Holder } from '../queues/context.js'
import type { ReliableContext } from '../reliable/context.js'
import { TASK_HEADER } from '../reliable/record.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import { atMost } from '../timing/at-most.js'
import { systemClock } from '../timing/clock.js'
import { Assignment, type Outcome } from './assignment.js'
import { Fetching } from './fetching.js'
import { handlerOf, type Handler, type Handlers } from './handlers.js'
import { LeaseLostError } from './outcomes.js'
import { RateLimit } from './rate-limit.js'
import { Sources, type WorkerQueues } from './sources.js'
import { resolveWorkerOptions, type WorkerOptions, type WorkerSettings } from './worker-options.js'

export interface WorkerEvents {
  handled: HandledEvent
  /**
   * Polling or extending failed; the worker goes on by itself. Where nobody listens it is an `error` of the client, as is always what
   * happens to waits that worked before.
   */
  error: RedelayedError
}

/** How many messages came to which end, since the worker began. */
export type WorkerCounts = Readonly<Record<HandledOutcome, number>>

/** What is extended so often within its visibility has two more chances when one fails. */
const HEARTBEATS = 3
/** How long a close waits until Redis knows what came of the messages, after all other time is over. */
const LAST_ANSWERS_MS = 5_000

/**
 * Takes messages from reliable queues and gives them to handlers: what they finish is acknowledged, what they fail at comes again
 * after a while, and as long as they work nobody else gets the message.
 */
export class Worker {
  readonly #sources: Sources
  readonly #handler: Handler
  readonly #settings: WorkerSettings
  readonly #hub: EventHub
  readonly #holders: Set<Holder>
  readonly #events = new Events<WorkerEvents>()
  readonly #limit: RateLimit | undefined
  readonly #inHand = new Set<Assignment>()
  readonly #buffer: Assignment[] = []
  readonly #counts: Record<HandledOutcome, number> = {
    completed: 0,
    deferred: 0,
    failed: 0,
    rejected: 0,
    released: 0,
    lost: 0,
  }
  readonly #onSignal = (): void => void this.close()
  readonly #loop: Promise<void>
  readonly #heart: NodeJS.Timeout
  #active = 0
  #isPaused = false
  readonly #fetching: Fetching
  #polling = new AbortController()
  readonly #waiting = new Set<() => void>()
  /** Whose messages are being extended now. */
  readonly #extending = new Set<ReliableQueue>()
  #closing: Promise<void> | undefined
  /** The time of `close` is over. */
  #isOver = false

  /** @internal use `client.createWorker` */
  constructor(
    reliable: ReliableContext,
    queues: WorkerQueues,
    handlers: Handler | Handlers,
    options: WorkerOptions = {},
  ) {
    this.#settings = resolveWorkerOptions(options)
    this.#sources = new Sources(reliable, queues, this.#settings.strict)
    this.#handler = handlerOf(handlers, reliable.instrumentation)
    const { rateLimit, visibility, closeOn } = this.#settings
    this.#fetching = new Fetching(this.#sources, visibility, (thrown) => this.#report(thrown))
    this.#limit = rateLimit && new RateLimit(rateLimit, systemClock)
    this.#hub = reliable.queues.hub
    this.#holders = reliable.queues.holders
    this.#holders.add(this)
    for (const signal of closeOn) process.once(signal, this.#onSignal)
    this.#heart = setInterval(() => this.#beat(), visibility / HEARTBEATS)
    this.#loop = this.#work()
  }

  /** How many messages are being handled now. */
  get active(): number {
    return this.#active
  }

  /** Whether it has no message at all, also none that waits for a handler. */
  get isIdle(): boolean {
    return this.#inHand.size === 0
  }

  get counts(): WorkerCounts {
    return { ...this.#counts }
  }

  /** @internal */
  get holding(): boolean {
    return this.#inHand.size > 0
  }

  on<K extends keyof WorkerEvents>(name: K, listener: (event: WorkerEvents[K]) => void): this {
    this.#events.on(name, listener)
    return this
  }

  off<K extends keyof WorkerEvents>(name: K, listener: (event: WorkerEvents[K]) => void): this {
    this.#events.off(name, listener)
    return this
  }

  /** Takes no more messages until `resume`; those that it has are handled. */
  pause(): void {
    this.#isPaused = true
    this.#polling.abort()
  }

  resume(): void {
    this.#isPaused = false
    this.#changed()
  }

  /**
   * Takes no more messages, gives back those that no handler has seen, and waits for the handlers; after `closeTimeout` their signals are
   * aborted and their messages given back, for which it waits five seconds more at most. May be called more than once.
   */
  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #end(): Promise<void> {
    for (const signal of this.#settings.closeOn) process.off(signal, this.#onSignal)
    this.#polling.abort()
    this.#changed()
    await atMost(this.#settings.closeTimeout, this.#drain())
    this.#isOver = true
    for (const assignment of this.#inHand) assignment.abort(new ShutdownError('the worker was closed'))
    await atMost(LAST_ANSWERS_MS, this.#drain())
    clearInterval(this.#heart)
    this.#holders.delete(this)
  }

  /** Gives back what no handler has seen, and resolves when nothing is in hand. */
  async #drain(): Promise<void> {
    await this.#loop
    for (const assignment of this.#buffer.splice(0)) {
      void this.#finish(
        assignment,
        assignment.settle({ is: 'released' }, () => false),
      )
    }
    while (this.#inHand.size > 0) await this.#change()
  }

  async #work(): Promise<void> {
    while (this.#closing === undefined) {
      // first how long, then how many: between the two the limit can only allow more
      const waitMs = this.#isPaused ? 0 : (this.#limit?.waitMs ?? 0)
      const room = this.#room()
      if (room <= 0) {
        await this.#change(waitMs === 0 ? undefined : waitMs)
        continue
      }
      try {
        this.#polling = new AbortController()
        const taken = await this.#fetching.take(room, this.#polling.signal)
        for (const { queue, message } of taken) this.#accept(new Assignment(queue, message))
      } catch (thrown) {
        if (!this.#isEnding()) this.#report(thrown)
        break // the client was shut down: all else is waited out
      }
    }
  }

  /** How many more messages may be taken now. */
  #room(): number {
    if (this.#isPaused) return 0
    const { concurrency, prefetch } = this.#settings
    return Math.min(concurrency + prefetch - this.#inHand.size, this.#limit?.allowed ?? Infinity)
  }

  #accept(assignment: Assignment): void {
    this.#limit?.count(1)
    this.#inHand.add(assignment)
    this.#buffer.push(assignment)
    this.#fill()
  }

  #fill(): void {
    while (this.#active < this.#settings.concurrency && this.#closing === undefined) {
      const assignment = this.#buffer.shift()
      if (assignment === undefined) return
      this.#active++
      const { timeout, retryDelay } = this.#settings
      void this.#finish(
        assignment,
        assignment.run(this.#handler, timeout, retryDelay, () => !this.#isOver),
      ).then(() => {
        this.#active--
        this.#fill()
        this.#changed()
      })
    }
  }

  async #finish(assignment: Assignment, run: Promise<Outcome>): Promise<void> {
    const started = performance.now()
    const outcome = await run
    this.#inHand.delete(assignment)
    this.#counts[outcome.is]++
    this.#tell(assignment, outcome, performance.now() - started)
    this.#changed()
  }

  #tell({ queue, message }: Assignment, outcome: Outcome, ms: number): void {
    const { id, attempt, headers } = message
    const lateMs = Math.max(0, message.polledAt - message.visibleAt)
    const error = 'error' in outcome ? outcome.error : undefined
    const event = { queue: queue.name, id, task: headers[TASK_HEADER], attempt, ms, lateMs, outcome: outcome.is, error }
    this.#events.emit('handled', event, (thrown) => this.#report(thrown))
    this.#hub.emit('handled', event)
  }

  /** What the worker has stays its own; each queue for itself, so that one that hangs does not cost the others theirs. */
  #beat(): void {
    for (const assignment of this.#inHand) {
      if (!assignment.message.isHeld) assignment.abort(new LeaseLostError())
    }
    for (const queue of this.#sources.queues) {
      if (this.#extending.has(queue)) continue
      this.#extending.add(queue)
      void this.#extend(queue).finally(() => this.#extending.delete(queue))
    }
  }

  async #extend(queue: ReliableQueue): Promise<void> {
    const { visibility } = this.#settings
    const until = performance.now() + visibility
    // never shortens what a handler has extended itself, or is extending now
    const own = [...this.#inHand].filter(
      ({ queue: from, message }) => from === queue && message.extensions === 0 && message.heldUntil < until,
    )
    if (own.length === 0) return
    try {
      const messages = own.map(({ message }) => message)
      const extended = await queue.extend(messages, visibility)
      own.forEach((assignment, at) => {
        if (extended[at] === false && this.#inHand.has(assignment)) assignment.abort(new LeaseLostError())
      })
    } catch (thrown) {
      this.#report(thrown)
    }
  }

  /** Resolves when there may be room, or something is done, or after some time. */
  async #change(ms?: number): Promise<void> {
    let resolve: () => void = () => undefined
    const changed = new Promise<void>((resolved) => (resolve = resolved))
    this.#waiting.add(resolve)
    await (ms === undefined ? changed : atMost(ms, changed))
    this.#waiting.delete(resolve)
  }

  #changed(): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }

  #isEnding(): boolean {
    return this.#closing !== undefined
  }

  #report(thrown: unknown): void {
    const cause = toError(thrown)
    const error = cause instanceof RedelayedError ? cause : new RedelayedError('ERR_INTERNAL', cause.message, { cause })
    const heard = this.#events.emit('error', error, () => undefined)
    if (!heard) this.#hub.emit('error', error)
  }
}
