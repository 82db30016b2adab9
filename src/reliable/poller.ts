import { isBrief } from '../redis/replies/server-errors.js'
import { ShutdownError } from '../errors.js'
import type { PollReply, PolledRecord } from '../store/reliable-scripts.js'
import type { HowToHold } from '../store/reliable-store.js'
import { WaiterQueue, type WaiterOptions } from '../queues/waiter-queue.js'
import type { Clock } from '../timing/clock.js'
import { RemoteClock } from '../timing/remote-clock.js'
import type { ScriptOptions } from '../scheduler/due-machine.js'
import { announcedTime, DueScheduler, type ScriptResult } from '../scheduler/due-scheduler.js'
import { LINGER_MS, type QueueAddress, type ServedQueue } from '../scheduler/queue-registry.js'
import type { FineWaits } from '../timing/fine-waits.js'
import type { Retries } from '../scheduler/retries.js'

export interface PollerParams {
  readonly address: QueueAddress
  /** Runs the script. */
  readonly poll: (count: number, how: HowToHold, announce: boolean) => Promise<PollReply>
  /** Returns messages that no caller waits for any more to the queue. */
  readonly release: (polled: readonly PolledRecord[]) => Promise<void>
  readonly onError: (error: Error) => void
  /** The error of a wait that has not reached Redis within this time. */
  readonly noConnectionYet: (triedForMs: number) => Error | undefined
  readonly clock: Clock
  readonly random: () => number
  readonly retries?: Retries
  readonly fineWaits: FineWaits | undefined
}

interface Group {
  readonly how: HowToHold
  readonly waiters: WaiterQueue<PolledRecord>
}

/** The tolerance for a due time that was converted from one clock to the other and back. */
const SAME_MS = 0.5

/** The most messages that one script hands out. */
const MOST = 500

/**
 * The waiting polls of one queue. The poller runs the script when a caller begins to wait, at the times in replies and announcements,
 * and as a sweep; while no caller waits it does not run the script.
 */
export class Poller implements ServedQueue {
  readonly #params: PollerParams
  /** The callers by visibility and prefetch: callers that differ in these cannot share a script. */
  readonly #waiters = new Map<string, Group>()
  readonly #scheduler: DueScheduler
  #waking = false
  /** When Redis last answered the script, by the clock of the poller. */
  answeredAt = -Infinity
  /** When the first caller began to wait. */
  #triedSince: number | undefined
  #lastUsed = -Infinity
  #closed: Error | undefined

  constructor(params: PollerParams) {
    this.#params = params
    this.#scheduler = new DueScheduler({
      script: (how) => this.#poll(how),
      isBrief,
      onError: (error) => this.#onError(error),
      clock: params.clock,
      remote: new RemoteClock(params.clock),
      random: params.random,
      ...(params.retries && { retries: params.retries }),
      fineWaits: params.fineWaits,
    })
  }

  get address(): QueueAddress {
    return this.#params.address
  }

  get isUsed(): boolean {
    return this.#isWanted || this.#params.clock.now() - this.#lastUsed < LINGER_MS
  }

  /** Whether any caller waits. */
  get #isWanted(): boolean {
    return [...this.#waiters.values()].some(({ waiters }) => waiters.wanted > 0)
  }

  /** Waits for 1 to `max` messages; resolves with none when the time is over. */
  take(max: number, how: HowToHold, options: WaiterOptions): Promise<PolledRecord[]> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed)
    const key = `${how.visibilityMs} ${how.beforehand}`
    const group = this.#waiters.get(key) ?? { how, waiters: this.#noWaiters() }
    this.#waiters.set(key, group)
    this.#lastUsed = this.#params.clock.now()
    this.#triedSince ??= this.#lastUsed
    const taken = group.waiters.add(max, options)
    this.#wake()
    return taken
  }

  /** The channel is subscribed (again). */
  onSubscribed(): void {
    this.#scheduler.onSubscribed()
  }

  onUnsubscribed(): void {
    // the sweep finds messages that are announced meanwhile
  }

  /** A client announced that the script is to run at a time of the Redis clock. */
  onMessage(message: string): void {
    const at = announcedTime(message)
    if (at !== undefined) this.#scheduler.onAnnounced(at)
  }

  sweep(): void {
    if (this.#isWanted) this.#scheduler.wake()
  }

  async stop(): Promise<void> {
    this.#closed = new ShutdownError('the client was shut down')
    for (const { waiters } of this.#waiters.values()) waiters.rejectAll(this.#closed)
    await this.#scheduler.stop()
  }

  /** Wakes the scheduler once for all callers that begin to wait in this turn of the event loop. */
  #wake(): void {
    if (this.#waking) return
    this.#waking = true
    process.nextTick(() => {
      this.#waking = false
      if (this.#isWanted) this.#scheduler.wake()
    })
  }

  async #poll({ announce, target }: ScriptOptions): Promise<ScriptResult | null> {
    let last: PollReply | undefined
    let moved = 0
    let progress = 0
    for (const [key, group] of [...this.#waiters]) {
      const { how, waiters } = group
      if (waiters.wanted === 0) {
        this.#waiters.delete(key)
        continue
      }
      this.#lastUsed = this.#params.clock.now()
      last = await this.#params.poll(Math.min(MOST, waiters.wanted), how, announce)
      this.answeredAt = this.#params.clock.now()
      moved += last.messages.length
      progress += last.changed
      const left = waiters.give(last.messages)
      if (last.messages.length > 0) this.#toTheEnd(key, group)
      if (left.length > 0) void this.#params.release(left).catch(this.#params.onError)
    }
    if (last === undefined) return null
    const { now, next, subscribers } = last
    // where more is visible and no caller waits, the next caller that begins to wait starts a poll
    const isDue = next !== null && next <= now
    const isUnwanted = isDue && !this.#isWanted
    // Polls take no leases. A poll for a due time that found it gone shows that another client was faster.
    const isLeader = moved > 0 || isDue
    const isLate = announce && (next === null || next > target + SAME_MS)
    const leader = isLeader ? 'self' : isLate ? 'other' : 'none'
    const isStuck = isDue && !isUnwanted && progress === 0
    return { moved, next: isUnwanted ? null : next, now, subscribers, leader, leaseUntil: 0, isStuck }
  }

  get #hasServed(): boolean {
    return this.answeredAt > -Infinity
  }

  /** A group that got messages is served last at the next poll, so that it cannot starve the others. */
  #toTheEnd(key: string, group: Group): void {
    if (this.#waiters.size === 1) return
    this.#waiters.delete(key)
    this.#waiters.set(key, group)
  }

  #noWaiters(): WaiterQueue<PolledRecord> {
    return new WaiterQueue<PolledRecord>(
      this.#params.clock,
      () => undefined,
      () => this.#whyNone(),
    )
  }

  /**
   * The error for a call whose time is over: without a connection it is unknown whether messages are visible. Only until the first success.
   */
  #whyNone(): Error | undefined {
    if (this.#hasServed) return undefined
    return this.#params.noConnectionYet(this.#params.clock.now() - (this.#triedSince ?? Infinity))
  }

  /** Reject until the first success; afterwards retry and emit `error`. */
  #onError(error: Error): void {
    if (this.#hasServed) this.#params.onError(error)
    else for (const { waiters } of this.#waiters.values()) waiters.rejectAll(error)
  }
}
