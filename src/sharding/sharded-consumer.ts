import { isBrief } from '../redis/replies/server-errors.js'
import { ConnectionError, toError } from '../errors.js'
import { backoffDelay } from '../timing/backoff.js'
import type { Clock } from '../timing/clock.js'
import { DeadlineTimer } from '../timing/deadline-timer.js'
import type { PrefetchBuffer } from '../queues/context.js'
import type { ShardSource } from './held.js'
import { WaiterQueue, type TakerOptions } from '../queues/takers.js'

/** How long waits go on when nobody asks any more: a consumer in a loop asks again at once. */
const LINGER_MS = 50
/** How long a look at the lists waits for waits that are being ended, and may have popped something. */
const QUIET_MS = 100
/** A wait that has lasted so long works; what is refused is refused sooner. No longer than a wait lingers. */
const WORKS_MS = 50
/** A shard whose elements had to be put back is asked so long before all others. */
const HEAD_START_MS = 5
const BACKOFF = { baseMs: 100, maxMs: 5_000 }
/** After what a server refused for the moment: its free moments can be short. */
const BRIEF = { baseMs: 250, maxMs: 250 }
/** The most that a wait at one shard can ask for. */
const MAX_SHARE = 10_000

export interface ShardedConsumerParams<E> {
  readonly sources: readonly ShardSource<E>[]
  /** The client's; it is among them while it waits or has something. */
  readonly holders: Set<PrefetchBuffer>
  readonly clock: Clock
  readonly random: () => number
  /** What the takers get that wait when it is closed, and those that come later. */
  readonly closedError: () => Error
  /** A shard fails again and again, while others work. */
  readonly onFailure: (shard: number, error: Error) => void
  /** Elements could not be put back, or nobody knows whether they were: they are given up, so that none comes twice. */
  readonly onLost: (shard: number, count: number, error: Error) => void
}

interface Shard<E> {
  readonly index: number
  readonly source: ShardSource<E>
  /** Ends when nobody wants anything, or with a failure. */
  loop: Promise<void> | undefined
  /** The wait under way; never rejects, and by its end what came is given out. */
  attempt: Promise<void> | undefined
  /** Elements on their way back; never rejects. Before its end nothing is taken from the shard, or the order would be lost. */
  returning: Promise<void> | undefined
  /** In a row. */
  failures: number
  retryAt: number
  /** Since a shard gave something, or all takers were told that none works. */
  failed: boolean
  /** Why its last wait failed; nothing since one works. */
  refusal: Error | undefined
  /** When the wait under way began. */
  since: number
}

/**
 * Takes from many shards at once. While somebody waits, every shard has one wait under way, for its share of what is wanted.
 * So more can come than is wanted, at most one share per shard: it is kept for the next call, and put back at the
 * head of its list when none comes soon.
 */
export class ShardedConsumer<E> implements PrefetchBuffer {
  readonly #params: ShardedConsumerParams<E>
  readonly #clock: Clock
  readonly #shards: Shard<E>[]
  readonly #takers: WaiterQueue<E>
  readonly #linger: DeadlineTimer
  readonly #retry: DeadlineTimer
  readonly #headStart: DeadlineTimer
  /** Popped for nobody, the first popped first. */
  #spare: { shard: Shard<E>; element: E }[] = []
  /** Whose elements were put back: they come first, or a slow consumer would only ever see the fastest shard. */
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
    this.#takers = new WaiterQueue(
      params.clock,
      () => this.#settle(),
      () => this.#whyNone(),
    )
    this.#linger = new DeadlineTimer(params.clock, () => void this.#rest())
    this.#retry = new DeadlineTimer(params.clock, () => this.#serve())
    this.#headStart = new DeadlineTimer(params.clock, () => this.#serve())
  }

  get holding(): boolean {
    return this.#spare.length > 0 || this.#shards.some((shard) => shard.returning !== undefined)
  }

  /** Waits for 1 to `max` elements; none when the time is over, or the last error when all shards have failed by then. */
  async take(max: number, options: TakerOptions): Promise<E[]> {
    if (options.signal?.aborted === true) throw toError(options.signal.reason)
    this.#enter()
    if (this.#spare.length > 0) return this.#takeSpare(max)
    const taken = this.#takers.add(max, options)
    const owed = [...this.#owed].slice(0, this.#takers.wanted)
    for (const shard of owed) this.#owed.delete(shard)
    if (owed.length === 0) this.#serve()
    else {
      this.#linger.clear()
      this.#serve(owed)
      this.#headStart.lower(this.#clock.now() + HEAD_START_MS)
    }
    return taken
  }

  /** Up to `max` elements that are there, shard by shard; fails when there are none and not all shards could be looked at. */
  async drain(max: number): Promise<E[]> {
    this.#enter()
    await this.#quiet()
    const elements = this.#takeSpare(max)
    let failure: Error | undefined
    for (const shard of this.#rotation()) {
      await shard.returning
      elements.push(...this.#takeSpare(max - elements.length)) // what could not be put back
      if (elements.length >= max) break
      try {
        elements.push(...(await shard.source.drain(max - elements.length)))
        shard.failures = 0
      } catch (thrown) {
        shard.failures++
        failure ??= toError(thrown)
      }
    }
    if (elements.length === 0 && failure !== undefined) throw failure
    return elements
  }

  /** Ends the waits. What they popped goes to those who wait, and the rest back. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#isClosed = true
    for (const timer of [this.#linger, this.#retry, this.#headStart]) timer.clear()
    this.#interrupt()
    await Promise.all(this.#shards.flatMap(({ attempt }) => attempt ?? []))
    this.#takers.rejectAll(this.#params.closedError())
    await Promise.all(this.#shards.map((shard) => this.#putBack(shard)))
    this.#params.holders.delete(this)
  }

  #enter(): void {
    if (this.#isClosed) throw this.#params.closedError()
    this.#calls++
    this.#params.holders.add(this)
  }

  /** Gives the shards that have no wait one, if somebody waits. */
  #serve(shards: readonly Shard<E>[] = this.#rotation()): void {
    if (this.#takers.wanted === 0 || this.#isClosed) return
    this.#linger.clear()
    const now = this.#clock.now()
    for (const shard of shards) {
      if (shard.retryAt > now) this.#retry.lower(shard.retryAt)
      else shard.loop ??= this.#loop(shard)
    }
  }

  async #loop(shard: Shard<E>): Promise<void> {
    await shard.returning
    while (this.#takers.wanted > 0 && !this.#isClosed && shard.retryAt <= this.#clock.now()) {
      shard.attempt = this.#attempt(shard)
      await shard.attempt
    }
    shard.attempt = undefined
    shard.loop = undefined
  }

  async #attempt(shard: Shard<E>): Promise<void> {
    const { signal } = this.#interruption
    const share = Math.min(MAX_SHARE, Math.ceil(this.#takers.wanted / this.#shards.length))
    shard.since = this.#clock.now()
    try {
      const elements = await shard.source.wait(share, signal)
      shard.refusal = undefined
      for (const each of this.#shards) each.failed = false
      shard.failures = 0
      this.#deliver(shard, elements)
    } catch (thrown) {
      if (!signal.aborted) this.#onFailure(shard, toError(thrown))
      else if (this.#works(shard)) shard.refusal = undefined
    } finally {
      shard.since = Infinity
    }
  }

  #deliver(shard: Shard<E>, elements: readonly E[]): void {
    for (const element of this.#takers.give(elements)) this.#spare.push({ shard, element })
    this.#settle()
  }

  #onFailure(shard: Shard<E>, error: Error): void {
    shard.refusal = error
    shard.failed = true
    shard.failures++
    const backoff = isBrief(error) ? BRIEF : BACKOFF
    shard.retryAt = this.#clock.now() + backoffDelay(backoff, shard.failures, this.#params.random())
    this.#retry.lower(shard.retryAt)
    if (this.#shards.every(({ failed }) => failed)) {
      for (const each of this.#shards) each.failed = false
      this.#takers.rejectAll(error)
      this.#settle()
    } else if (shard.failures > 1) this.#params.onFailure(shard.index, error)
  }

  /** While every shard refuses its waits, nothing having come does not mean that nothing is there. */
  #whyNone(): Error | undefined {
    const refusals = this.#shards.flatMap((shard) => (this.#works(shard) ? [] : (shard.refusal ?? [])))
    return refusals.length === this.#shards.length ? refusals[0] : undefined
  }

  #works({ since }: Shard<E>): boolean {
    return this.#clock.now() - since >= WORKS_MS
  }

  /** When nobody waits any more, the waits and what they popped have a short time left. */
  #settle(): void {
    if (this.#takers.wanted > 0 || this.#isClosed) return
    this.#headStart.clear()
    this.#retry.clear()
    const failures = this.#returnFailures
    const wait = failures === 0 ? LINGER_MS : backoffDelay(BACKOFF, failures, this.#params.random())
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
    if (!isOver() && !this.holding) this.#params.holders.delete(this)
  }

  #interrupt(): void {
    this.#interruption.abort()
    this.#interruption = new AbortController()
  }

  /** When nobody waits: what the last waits have popped comes in, so that an element is in a list or at hand. */
  async #quiet(): Promise<void> {
    const attempts = this.#shards.flatMap(({ attempt }) => attempt ?? [])
    if (this.#takers.wanted > 0 || attempts.length === 0) return
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

  #takeSpare(max: number): E[] {
    const elements = this.#spare.splice(0, max).map(({ element }) => element)
    this.#settle()
    return elements
  }

  async #putBack(shard: Shard<E>): Promise<void> {
    if (shard.returning !== undefined) await shard.returning
    const own = this.#spare.filter((spare) => spare.shard === shard)
    if (own.length === 0) return
    this.#spare = this.#spare.filter((spare) => spare.shard !== shard)
    const returning = this.#return(
      shard,
      own.map(({ element }) => element),
    )
    shard.returning = returning
    await returning
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
      const left = this.#takers.give(elements)
      this.#spare.unshift(...left.map((element) => ({ shard, element })))
      this.#settle()
    }
  }

  /** All shards, each first in its turn; those that fail or are busy come last, so that they hold up nobody. */
  #rotation(): Shard<E>[] {
    const first = this.#turn
    this.#turn = (first + 1) % this.#shards.length
    const turned = [...this.#shards.slice(first), ...this.#shards.slice(0, first)]
    const isSlow = ({ failures, returning }: Shard<E>): boolean => failures > 0 || returning !== undefined
    return [...turned.filter((shard) => !isSlow(shard)), ...turned.filter(isSlow)]
  }
}
