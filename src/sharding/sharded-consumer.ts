import { isBrief } from '../redis/replies/server-errors.js'
import { ConnectionError, isOfShutdown, toError } from '../errors.js'
import { AFTER_BRIEF_REFUSAL, AFTER_FAILURE, backoffDelay } from '../timing/backoff.js'
import type { Clock } from '../timing/clock.js'
import { DeadlineTimer } from '../timing/deadline-timer.js'
import type { PrefetchBuffer } from '../queues/context.js'
import { FailingShards } from './failing-shards.js'
import type { ShardSource } from './shard-source.js'
import { Surplus } from './surplus.js'
import { WaiterQueue, type WaiterOptions } from '../queues/waiter-queue.js'

/** How long waits continue without a waiter: a consumer in a loop calls again at once. */
const LINGER_MS = 50
/** How long `drain` waits for waits that are being ended and may have popped elements. */
const QUIET_MS = 100
/** A wait that has lasted this long works: a server that refuses a wait refuses it sooner. At most `LINGER_MS`. */
const WORKS_MS = 50
/** How much earlier than the others a shard gets its wait if its elements were put back, or if it is asked first. */
const HEAD_START_MS = 5
/** The most shards that may keep one `drain` waiting for an error, and the least time that counts as waiting. */
const MOST_SLOW_FAILURES = 2
const SLOW_FAILURE_MS = 500
/** The most elements that a wait at one shard may ask for. */
const MAX_SHARE = 10_000

export interface ShardedConsumerParams<E> {
  readonly sources: readonly ShardSource<E>[]
  /** Shared by several consumers of the same shards, so that a new one knows which shards have failed. */
  readonly failing?: FailingShards
  /** The client's buffers; this consumer is among them while it waits or holds elements. */
  readonly buffers: Pick<Set<PrefetchBuffer>, 'add' | 'delete'>
  readonly clock: Clock
  readonly random: () => number
  /** The error for waiters that wait when the consumer is closed, and for later ones. */
  readonly closedError: () => Error
  /**
   * Whether a shutdown of the client has begun, in which no wait can begin any more: calls must not wait until a shard may be asked again.
   */
  readonly isShutDown: () => boolean
  /** Called when a shard fails repeatedly while others work. */
  readonly onFailure: (shard: number, error: Error) => void
  /** Called when elements could not be put back, or when that is unknown: they are dropped, so that none is delivered twice. */
  readonly onLost: (shard: number, count: number, error: Error) => void
  /**
   * Whether a wait begins at one shard, and at the others only if that one has no elements at once: for elements that are costly to put
   * back. Default false: at all shards.
   */
  readonly asksOneFirst?: boolean
  /** The elements are claims, whose visibility can end: a call that has some waits for no failing shard. */
  readonly areClaims?: boolean
  /**
   * The bytes of an element; without it, limits in bytes have no effect. A method, so that a consumer of one element type is assignable to
   * one of `unknown`.
   */
  bytesOf?(element: E): number
}

interface Shard<E> {
  readonly index: number
  readonly source: ShardSource<E>
  /** Ends when no waiter waits, or with a failure. */
  loop: Promise<void> | undefined
  /** The current wait; never rejects, and resolves after its elements were handed out. */
  attempt: Promise<void> | undefined
  /** Elements being put back; never rejects. Until it resolves nothing is taken from the shard, to keep the order. */
  returning: Promise<void> | undefined
  /** Consecutive failures of waits. */
  failures: number
  retryAt: number
  /** Whether it failed since any shard served elements, or since all waiters were rejected because no shard works. */
  failed: boolean
  /** The error of the last wait; undefined once a wait works. */
  refusal: Error | undefined
  /** When the wait under way began. */
  since: number
}

/**
 * Takes from many shards at once. While a waiter waits, every shard has one wait, for its share of the wanted elements. So the shards
 * may serve more elements than are wanted, at most one share per shard: the consumer keeps the surplus for the next call, and puts
 * it back at the head of its list when no call follows soon.
 */
export class ShardedConsumer<E> implements PrefetchBuffer {
  readonly #params: ShardedConsumerParams<E>
  readonly #clock: Clock
  readonly #shards: Shard<E>[]
  readonly #waiters: WaiterQueue<E>
  readonly #linger: DeadlineTimer
  readonly #retry: DeadlineTimer
  readonly #headStart: DeadlineTimer
  readonly #failing: FailingShards
  readonly #surplus: Surplus<Shard<E>, E>
  /** Shards whose elements were put back: they are served first, or a slow consumer would only ever see the fastest shard. */
  readonly #owed = new Set<Shard<E>>()
  #interruption = new AbortController()
  #turn: number
  #calls = 0
  #returnFailures = 0
  #isClosed = false
  #closing: Promise<void> | undefined

  constructor(params: ShardedConsumerParams<E>) {
    this.#params = params
    this.#clock = params.clock
    this.#failing = params.failing ?? new FailingShards()
    this.#surplus = new Surplus(params)
    this.#shards = params.sources.map((source, index) => ({
      index,
      source,
      loop: undefined,
      attempt: undefined,
      returning: undefined,
      failures: 0,
      retryAt: -Infinity,
      failed: false,
      refusal: undefined,
      since: Infinity,
    }))
    this.#turn = Math.floor(params.random() * params.sources.length)
    this.#waiters = new WaiterQueue(
      params.clock,
      () => this.#settle(),
      () => this.#whyNone(),
    )
    this.#linger = new DeadlineTimer(params.clock, () => void this.#rest())
    this.#retry = new DeadlineTimer(params.clock, () => this.#serve())
    this.#headStart = new DeadlineTimer(params.clock, () => this.#serve(this.#shards)) // the order of the turns stays
  }

  get holding(): boolean {
    return !this.#surplus.isEmpty || this.#shards.some((shard) => shard.returning !== undefined)
  }

  /** Waits for 1 to `max` elements; resolves with none when the time is over, or rejects with the last error when all shards failed. */
  async take(max: number, options: WaiterOptions, maxBytes = Infinity): Promise<E[]> {
    if (options.signal?.aborted === true) throw toError(options.signal.reason)
    if (this.#params.isShutDown()) throw this.#params.closedError()
    this.#enter()
    if (!this.#surplus.isEmpty) return this.#takeSurplus(max, maxBytes)
    const taken = this.#waiters.add(max, options)
    const first = this.#first()
    if (first.length === 0) this.#serve()
    else {
      this.#linger.clear()
      this.#serve(first)
      this.#headStart.lower(this.#clock.now() + HEAD_START_MS)
    }
    return taken
  }

  /** The shards that are asked before the others. */
  #first(): Shard<E>[] {
    const owed = [...this.#owed].slice(0, this.#waiters.wanted)
    for (const shard of owed) this.#owed.delete(shard)
    if (owed.length > 0 || this.#params.asksOneFirst !== true || this.#waits > 0) return owed
    const now = this.#clock.now()
    const canBeAsked = ({ returning, retryAt }: Shard<E>): boolean => returning === undefined && retryAt <= now
    const first = this.#failing.takeTurn(now, this.#shards.filter(canBeAsked)) ?? this.#rotation().find(canBeAsked)
    return first === undefined ? [] : [first]
  }

  /** The number of shards with a wait under way. */
  get #waits(): number {
    return this.#shards.filter(({ loop }) => loop !== undefined).length
  }

  /**
   * Takes up to `max` available elements, shard by shard, and stops at `maxBytes`; rejects if there are none and a shard could not be read.
   * It asks no further shard after two slow connection errors, because each silent shard costs the limit of a call.
   */
  async drain(max: number, maxBytes = Infinity): Promise<E[]> {
    this.#enter()
    await this.#quiet()
    const elements = this.#takeSurplus(max, maxBytes)
    if (elements.length >= max || this.#bytesOf(elements) >= maxBytes) return elements
    let failure: Error | undefined
    const repeated: { readonly shard: number; readonly error: Error }[] = []
    let slowFailures = 0
    const holdsClaims = (): boolean => this.#params.areClaims === true && elements.length > 0
    for (const shard of this.#turns(holdsClaims)) {
      await shard.returning
      elements.push(...this.#takeSurplus(max - elements.length, maxBytes - this.#bytesOf(elements))) // elements that could not be put back
      const left = maxBytes - this.#bytesOf(elements)
      if (elements.length >= max || left <= 0) break
      if (slowFailures >= MOST_SLOW_FAILURES) break
      const askedAt = this.#clock.now()
      try {
        elements.push(...(await shard.source.drain(max - elements.length, left)))
        this.#failing.delete(shard.index)
      } catch (thrown) {
        const now = this.#clock.now()
        const error = toError(thrown)
        if (this.#failing.has(shard.index) && !isOfShutdown(error)) repeated.push({ shard: shard.index, error })
        this.#failing.add(shard.index, now, now - askedAt)
        failure ??= error
        const isSlow = thrown instanceof ConnectionError && now - askedAt >= SLOW_FAILURE_MS
        if (isSlow && holdsClaims()) break // for long enough
        if (isSlow) slowFailures++
      }
    }
    if (elements.length === 0 && failure !== undefined) throw failure
    for (const { shard, error } of repeated)
      // of which the caller learns nothing
      if (this.#failing.mayReport(shard, this.#clock.now())) this.#params.onFailure(shard, error)
    return elements
  }

  /** Ends the waits. Elements that they popped go to the waiting waiters; the rest is put back. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#isClosed = true
    for (const timer of [this.#linger, this.#retry, this.#headStart]) timer.clear()
    this.#interrupt()
    await Promise.all(this.#shards.flatMap(({ attempt }) => attempt ?? []))
    this.#waiters.rejectAll(this.#params.closedError())
    await Promise.all(this.#shards.map((shard) => this.#putBack(shard)))
    this.#params.buffers.delete(this)
  }

  #enter(): void {
    if (this.#isClosed) throw this.#params.closedError()
    this.#calls++
    this.#params.buffers.add(this)
  }

  /** Starts a wait at each shard that has none, if a waiter waits. */
  #serve(shards: readonly Shard<E>[] = this.#rotation()): void {
    if (this.#waiters.wanted === 0 || this.#isClosed) return
    this.#linger.clear()
    const now = this.#clock.now()
    for (const shard of shards) {
      if (shard.retryAt > now) this.#retry.lower(shard.retryAt)
      else shard.loop ??= this.#loop(shard)
    }
  }

  async #loop(shard: Shard<E>): Promise<void> {
    await shard.returning
    while (this.#waiters.wanted > 0 && !this.#isClosed && shard.retryAt <= this.#clock.now()) {
      shard.attempt = this.#attempt(shard)
      await shard.attempt
    }
    shard.attempt = undefined
    shard.loop = undefined
  }

  async #attempt(shard: Shard<E>): Promise<void> {
    const { signal } = this.#interruption
    const among = this.#params.asksOneFirst === true ? this.#waits : this.#shards.length
    const share = Math.min(MAX_SHARE, Math.ceil(this.#waiters.wanted / among))
    shard.since = this.#clock.now()
    try {
      const elements = await shard.source.wait(share, signal)
      shard.refusal = undefined
      for (const each of this.#shards) each.failed = false
      shard.failures = 0
      this.#failing.delete(shard.index)
      this.#deliver(shard, elements)
    } catch (thrown) {
      if (!signal.aborted) this.#onFailure(shard, toError(thrown))
      else if (this.#works(shard)) shard.refusal = undefined
    } finally {
      shard.since = Infinity
    }
  }

  #deliver(shard: Shard<E>, elements: readonly E[]): void {
    this.#surplus.add(shard, this.#waiters.give(elements))
    this.#settle()
  }

  #onFailure(shard: Shard<E>, error: Error): void {
    if (isOfShutdown(error)) {
      this.#waiters.rejectAll(this.#params.closedError()) // no shard serves any more
      this.#settle()
      return
    }
    shard.refusal = error
    shard.failed = true
    shard.failures++
    if (!this.#failing.has(shard.index)) this.#failing.add(shard.index, this.#clock.now(), 0) // no call waited for this error
    const backoff = isBrief(error) ? AFTER_BRIEF_REFUSAL : AFTER_FAILURE
    shard.retryAt = this.#clock.now() + backoffDelay(backoff, shard.failures, this.#params.random())
    this.#retry.lower(shard.retryAt)
    if (this.#shards.every(({ failed }) => failed)) {
      for (const each of this.#shards) each.failed = false
      this.#waiters.rejectAll(error)
      this.#settle()
    } else if (shard.failures > 1) this.#params.onFailure(shard.index, error)
  }

  /** The error for a call without elements: while every shard refuses its waits, the lists may hold some. */
  #whyNone(): Error | undefined {
    const refusals = this.#shards.flatMap((shard) => (this.#works(shard) ? [] : (shard.refusal ?? [])))
    return refusals.length === this.#shards.length ? refusals[0] : undefined
  }

  #works({ since }: Shard<E>): boolean {
    return this.#clock.now() - since >= WORKS_MS
  }

  /** When no waiter waits any more, the waits end and the surplus is put back after a short time. */
  #settle(): void {
    if (this.#waiters.wanted > 0 || this.#isClosed) return
    this.#headStart.clear()
    this.#retry.clear()
    const failures = this.#returnFailures
    const wait = failures === 0 ? LINGER_MS : backoffDelay(AFTER_FAILURE, failures, this.#params.random())
    this.#linger.replace(this.#clock.now() + wait)
  }

  async #rest(): Promise<void> {
    const calls = this.#calls
    const isOver = (): boolean => this.#calls !== calls || this.#isClosed
    this.#interrupt()
    const putBack = async (shard: Shard<E>): Promise<void> => {
      await shard.attempt
      if (!isOver()) await this.#putBack(shard)
    }
    await Promise.all(this.#shards.map(putBack))
    if (!isOver() && !this.holding) this.#params.buffers.delete(this)
  }

  #interrupt(): void {
    this.#interruption.abort()
    this.#interruption = new AbortController()
  }

  /** Without a waiter: ends the last waits and receives what they popped, so that each element is in a list or in the surplus. */
  async #quiet(): Promise<void> {
    const attempts = this.#shards.flatMap(({ attempt }) => attempt ?? [])
    if (this.#waiters.wanted > 0 || attempts.length === 0) return
    this.#interrupt()
    await new Promise<void>((resolve) => {
      const timer = new DeadlineTimer(this.#clock, () => resolve())
      timer.replace(this.#clock.now() + QUIET_MS)
      void Promise.all(attempts).then(() => {
        timer.clear()
        resolve()
      })
    })
  }

  #takeSurplus(max: number, maxBytes: number): E[] {
    const elements = this.#surplus.take(max, maxBytes)
    this.#settle()
    return elements
  }

  #bytesOf(elements: readonly E[]): number {
    return elements.reduce((sum, element) => sum + (this.#params.bytesOf?.(element) ?? 0), 0)
  }

  async #putBack(shard: Shard<E>): Promise<void> {
    if (shard.returning !== undefined) await shard.returning
    const own = this.#surplus.takeOf(shard)
    if (own.length === 0) return
    shard.returning = this.#return(shard, own)
    await shard.returning
    shard.returning = undefined
  }

  async #return(shard: Shard<E>, elements: readonly E[]): Promise<void> {
    try {
      await shard.source.putBack(elements)
      this.#returnFailures = 0
      this.#owed.add(shard)
    } catch (thrown) {
      const error = toError(thrown)
      if (this.#isClosed || (error instanceof ConnectionError && error.outcome === 'unknown')) {
        this.#params.onLost(shard.index, elements.length, error)
        return
      }
      this.#returnFailures++
      this.#surplus.addFirst(shard, this.#waiters.give(elements))
      this.#settle()
    }
  }

  /**
   * All shards in the order of `#rotation`, but the failing one that has its turn is the first. A call that holds claims leaves out those
   * whose pause has not ended: it could hold the claims longer than their visibility timeouts.
   */
  *#turns(holdsClaims: () => boolean): Generator<Shard<E>, void> {
    const idle = this.#shards.filter(({ returning }) => returning === undefined)
    let first: Shard<E> | undefined
    if (!holdsClaims()) {
      for (const shard of this.#failing.probe(this.#clock.now(), idle)) {
        first = shard
        yield shard
      }
    }
    for (const shard of this.#rotation())
      if (shard !== first && !(holdsClaims() && this.#failing.isPaused(shard.index, this.#clock.now()))) yield shard
  }

  /** All shards, each first in its turn; failing or busy shards come last, so that they do not delay the others. */
  #rotation(): Shard<E>[] {
    const first = this.#turn
    this.#turn = (first + 1) % this.#shards.length
    const turned = [...this.#shards.slice(first), ...this.#shards.slice(0, first)]
    const isSlow = ({ index, returning }: Shard<E>): boolean => this.#failing.has(index) || returning !== undefined
    return turned.sort((a, b) => Number(isSlow(a)) - Number(isSlow(b)))
  }
}
