import { ShutdownError, toRedelayed, type RedelayedError } from '../errors.js'
import { Events, type EventHub, type SettledEvent, type SettledOutcome } from '../events.js'
import type { PrefetchBuffer } from '../queues/context.js'
import type { ReliableContext } from '../reliable/context.js'
import { TASK_HEADER } from '../reliable/record.js'
import { systemClock } from '../timing/clock.js'
import { atMost, nextTurn } from '../timing/pause.js'
import type { Assignment, Outcome } from './assignment.js'
import { Dispatcher } from './dispatcher.js'
import { Fetching, OVER } from './fetching.js'
import { handlerOf, type Handler, type Handlers } from './handlers.js'
import { Heartbeat } from './heartbeat.js'
import { InHand } from './in-hand.js'
import { RateLimit } from './rate-limit.js'
import { usualDelay } from './retry-delays.js'
import { Settlement } from './settlement.js'
import { Sources, type WorkerQueues } from './sources.js'
import { healthOf, type WorkerHealth, type WorkerHealthOptions } from './worker-health.js'
import { resolveWorkerOptions, type WorkerOptions, type WorkerSettings } from './worker-options.js'

export interface WorkerEvents {
  settled: SettledEvent
  /**
   * A poll or an extension failed; the worker continues. Without a listener on the worker, the client emits the `error`; a wait that had
   * reached Redis before always reports its failures on the client.
   */
  error: RedelayedError
}

/** The numbers of messages by outcome since the worker began. */
export type WorkerCounts = Readonly<Record<SettledOutcome, number>>

/** The most polls under way: the next one is at Redis when the messages of the previous one arrive. */
const MOST_ROUNDS = 2

/** How long `close` waits for Redis to get the outcomes, after `shutdownTimeout`. */
const LAST_ANSWERS_MS = 5_000

/**
 * Takes messages from reliable queues and gives them to handlers. It acknowledges handled messages, lets failed ones be redelivered
 * after a while, and extends the visibility while a handler works.
 */
export class Worker {
  readonly #settings: WorkerSettings
  readonly #hub: EventHub
  readonly #buffers: Set<PrefetchBuffer>
  readonly #events = new Events<WorkerEvents>()
  readonly #limit: RateLimit | undefined
  readonly #inHand = new InHand()
  readonly #dispatcher: Dispatcher
  readonly #settlement: Settlement
  readonly #counts: Record<SettledOutcome, number> = {
    completed: 0,
    deferred: 0,
    failed: 0,
    rejected: 0,
    released: 0,
    lost: 0,
  }
  readonly #onSignal = (): void => void this.close()
  readonly #loop: Promise<void>
  readonly #sources: Sources
  readonly #sweepInterval: number
  /** When a message was last acknowledged, by the monotonic clock, as are the other times. */
  #succeededAt = -Infinity
  #askingSince: number | undefined
  #hasEnded = false
  readonly #heartbeat: Heartbeat
  #isPaused = false
  readonly #fetching: Fetching
  #polling = new AbortController()
  /** The number of polls under way, and of messages that they ask for. */
  #rounds = 0
  #asked = 0
  /** Whether the last poll returned as many messages as it asked for. */
  #wasFull = false
  #isClientGone = false
  /** The next change of the worker's state, where something waits for it. */
  #nextChange: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined
  #closing: Promise<void> | undefined
  /** Whether the time of `close` is over. */
  #isTimeUp = false

  /** @internal use `client.createWorker` */
  constructor(
    reliable: ReliableContext,
    queues: WorkerQueues,
    handlers: Handler | Handlers,
    options: WorkerOptions = {},
  ) {
    this.#settings = resolveWorkerOptions(options)
    const sources = new Sources(reliable, queues, this.#settings.strict)
    const handler = handlerOf(handlers, reliable.instrumentation)
    const { prefetch, rateLimit, visibilityTimeout, shutdownSignals, retryDelay } = this.#settings
    this.#dispatcher = new Dispatcher({
      handler,
      retryDelay: (attempt, error) => {
        try {
          return retryDelay(attempt, error)
        } catch (thrown) {
          this.#report(thrown)
          return usualDelay(attempt, error)
        }
      },
      settings: this.#settings,
      onHandled: (assignment, outcome) => {
        assignment.isHandled = true
        this.#settlement.settle(assignment, outcome)
        this.#changed()
      },
    })
    const report = (thrown: unknown): void => this.#report(thrown)
    this.#settlement = new Settlement({
      keepsResults: this.#settings.keepResults,
      onError: report,
      mayTryAgain: (outcome) => !this.#isTimeUp && outcome.is !== 'released',
      onSettled: (assignment, outcome) => this.#finish(assignment, outcome),
    })
    this.#fetching = new Fetching(sources, visibilityTimeout, prefetch > 0, report)
    this.#limit = rateLimit && new RateLimit(rateLimit, systemClock)
    this.#sources = sources
    this.#sweepInterval = reliable.queues.settings.sweepInterval
    this.#hub = reliable.queues.hub
    this.#buffers = reliable.queues.buffers
    this.#buffers.add(this)
    for (const signal of shutdownSignals) process.once(signal, this.#onSignal)
    this.#heartbeat = new Heartbeat(this.#inHand, visibilityTimeout, report)
    this.#loop = this.#work().finally(() => (this.#hasEnded = true))
  }

  /** How many messages are being handled now. */
  get active(): number {
    return this.#dispatcher.active
  }

  /** Whether the worker has no message, not even one that waits for a handler. */
  get isIdle(): boolean {
    return this.#inHand.size === 0
  }

  get counts(): WorkerCounts {
    return { ...this.#counts }
  }

  /**
   * Whether the worker works, for a liveness probe. It says nothing about the handlers: a worker whose handlers always fail is alive.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: `maxSilence` is not a duration
   *
   * @example
   * ```ts
   * import { createServer } from 'node:http'
   *
   * const probe = createServer((_, response) => {
   *   const health = worker.health({ maxSilence: '2m' })
   *   response.writeHead(health.isAlive ? 200 : 503).end(JSON.stringify(health))
   * }).listen(8080)
   * probe.unref()
   * ```
   */
  health(options: WorkerHealthOptions = {}): WorkerHealth {
    const isClosed = this.#closing !== undefined || this.#hasEnded
    const facts = {
      state: isClosed ? 'closed' : this.#isPaused ? 'paused' : 'running',
      polledAt: Math.max(...this.#sources.queues.map((queue) => queue.polledAt)),
      succeededAt: this.#succeededAt,
      askingSince: this.#askingSince,
      active: this.active,
      begun: [...this.#inHand].flatMap(({ begunAt, isHandled }) => (isHandled ? [] : (begunAt ?? []))),
      now: performance.now(),
    } as const
    return healthOf(facts, options, this.#sweepInterval)
  }

  /** @internal */
  get holding(): boolean {
    return !this.isIdle
  }

  /**
   * Calls a listener at each event of a name.
   *
   * @throws TypeError: the listener is not a function
   *
   * @example
   * ```ts
   * worker.on('settled', ({ id, outcome, ms }) => console.log(id, outcome, ms))
   * ```
   */
  on<K extends keyof WorkerEvents>(name: K, listener: (event: WorkerEvents[K]) => void): this {
    this.#events.on(name, listener)
    return this
  }

  /**
   * Ends what `on` began; without effect for a listener that is not there.
   *
   * @throws TypeError: the listener is not a function
   *
   * @example
   * ```ts
   * const log = (error: Error) => console.error(error.message)
   * worker.on('error', log)
   * worker.off('error', log)
   * ```
   */
  off<K extends keyof WorkerEvents>(name: K, listener: (event: WorkerEvents[K]) => void): this {
    this.#events.off(name, listener)
    return this
  }

  /**
   * Takes no more messages until `resume`; the worker still handles those that it has.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * worker.pause()
   * setTimeout(() => worker.resume(), 60_000)
   * ```
   */
  pause(): void {
    this.#isPaused = true
    this.#polling.abort(OVER)
  }

  /**
   * Ends what `pause` began.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * worker.resume()
   * ```
   */
  resume(): void {
    this.#isPaused = false
    this.#changed()
  }

  /**
   * Takes no more messages, gives back those that no handler has seen, and waits for the handlers. After `shutdownTimeout` it aborts their
   * signals and gives their messages back, for at most five seconds more. May be called more than once.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * process.once('SIGTERM', () => void worker.close())
   * ```
   */
  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  /**
   * The same as `close`, at the end of a block.
   *
   * @throws as `close`
   *
   * @example
   * ```ts
   * import { once } from 'node:events'
   *
   * await using worker = client.createWorker(mails, (mail) => console.log(mail.to))
   * await once(process, 'SIGTERM')
   * ```
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #end(): Promise<void> {
    for (const signal of this.#settings.shutdownSignals) process.off(signal, this.#onSignal)
    this.#dispatcher.close()
    this.#polling.abort(OVER)
    this.#changed()
    await atMost(this.#settings.shutdownTimeout, this.#drain())
    this.#isTimeUp = true
    for (const assignment of this.#inHand) assignment.abort(new ShutdownError('the worker was closed'))
    await atMost(LAST_ANSWERS_MS, this.#drain())
    this.#heartbeat.stop()
    this.#buffers.delete(this)
  }

  /** Gives back the messages that no handler has seen, and resolves when the worker has none left. */
  async #drain(): Promise<void> {
    await this.#loop
    for (const assignment of this.#dispatcher.takeWaiting()) this.#settlement.settle(assignment, { is: 'released' })
    while (this.#inHand.size > 0) await this.#change()
  }

  async #work(): Promise<void> {
    while (this.#closing === undefined && !this.#isClientGone) {
      // the wait before the count: in between the limit can only allow more
      const waitMs = this.#isPaused ? 0 : (this.#limit?.waitMs ?? 0)
      const count = this.#countToAskFor()
      if (count > 0) {
        this.#startRound(count)
        continue
      }
      if (this.#rounds === 0) this.#askingSince = undefined
      await this.#change(waitMs === 0 ? undefined : waitMs)
    }
    while (this.#rounds > 0) await this.#change()
  }

  /**
   * The number of messages for a new round. A second round begins only after a full one, and for a full portion: small rounds would cost
   * too much.
   */
  #countToAskFor(): number {
    const count = Math.min(this.#room(), this.#portion)
    const isFirst = this.#rounds === 0
    const mayFollow = this.#wasFull && this.#rounds < MOST_ROUNDS && count === this.#portion
    return isFirst || mayFollow ? count : 0
  }

  #startRound(count: number): void {
    if (this.#polling.signal.aborted) this.#polling = new AbortController()
    this.#askingSince ??= performance.now() // a failed round is not an answer
    this.#rounds++
    this.#asked += count
    void this.#round(count).finally(() => {
      this.#rounds--
      this.#asked -= count
      this.#changed()
    })
  }

  async #round(count: number): Promise<void> {
    try {
      const taken = await this.#fetching.take(count, this.#polling.signal)
      this.#wasFull = taken.length >= count
      if (taken.length === 0) return
      this.#askingSince = undefined
      for (const assignment of taken) this.#accept(assignment)
      // After a full round more messages are probably visible: the next round is sent first, so that Redis works while these are handled.
      void (this.#wasFull ? nextTurn() : Promise.resolve()).then(() => this.#dispatcher.fill())
    } catch (thrown) {
      this.#isClientGone = true // any other error is retried
      this.#polling.abort(OVER)
      if (!this.#isEnding()) this.#report(thrown)
    }
  }

  /** How many more messages the worker may take now. */
  #room(): number {
    if (this.#isPaused) return 0
    // handled messages take no room, but those whose outcome Redis does not have yet must not accumulate
    const most = Math.min(
      this.#capacity - this.#dispatcher.size,
      2 * this.#capacity - this.#inHand.size,
      this.#limit?.allowed ?? Infinity,
    )
    return most - this.#asked
  }

  get #capacity(): number {
    return this.#settings.concurrency + this.#settings.prefetch
  }

  /** The messages of one round: half the capacity, so that one half arrives while the other is handled. */
  get #portion(): number {
    return Math.ceil(this.#capacity / 2)
  }

  #accept(assignment: Assignment): void {
    this.#limit?.count(1)
    this.#inHand.add(assignment)
    this.#dispatcher.add(assignment)
  }

  #finish(assignment: Assignment, outcome: Outcome): void {
    this.#inHand.delete(assignment)
    this.#counts[outcome.is]++
    if (outcome.is === 'completed') this.#succeededAt = performance.now()
    this.#emitSettled(assignment, outcome)
    this.#changed()
  }

  #emitSettled({ queue, message, begunAt }: Assignment, outcome: Outcome): void {
    const hasHubListener = this.#hub.hasListener('settled', queue.name)
    if (!this.#events.hasListener('settled') && !hasHubListener && outcome.is !== 'failed') return
    const { id, attempt, headers } = message
    const ms = begunAt === undefined ? 0 : performance.now() - begunAt
    // never infinite, as the sum of a metric would stay infinite
    const lateMs = Math.max(0, message.polledAt - Math.max(0, message.visibleAt))
    const error = 'error' in outcome ? outcome.error : undefined
    const event = { queue: queue.name, id, task: headers[TASK_HEADER], attempt, ms, lateMs, outcome: outcome.is, error }
    const hadListener = this.#events.emit('settled', event, (thrown) => this.#report(thrown))
    // the hub warns of a failure without a listener
    if (hasHubListener || !hadListener) this.#hub.emit('settled', event)
  }

  /** Resolves when the worker's state changes, or after `ms`. */
  async #change(ms?: number): Promise<void> {
    this.#nextChange ??= deferred()
    const { promise } = this.#nextChange
    await (ms === undefined ? promise : atMost(ms, promise))
  }

  #changed(): void {
    const change = this.#nextChange
    this.#nextChange = undefined
    change?.resolve()
  }

  #isEnding(): boolean {
    return this.#closing !== undefined
  }

  #report(thrown: unknown): void {
    const error = toRedelayed(thrown)
    const handled = this.#events.emit('error', error, () => undefined)
    if (!handled) this.#hub.emit('error', error)
  }
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined
  const promise = new Promise<void>((resolved) => (resolve = resolved))
  return { promise, resolve }
}
