import { toError } from '../errors.js'
import { backoffDelay, type Backoff } from '../timing/backoff.js'
import type { Clock } from '../timing/clock.js'
import { DeadlineTimer } from '../timing/deadline-timer.js'
import type { RemoteClock } from '../timing/remote-clock.js'
import { Lease, MAX_LEASE_MS } from './lease.js'

/** What one run of the transfer reports; times are milliseconds of the Redis clock. */
export interface TransferResult {
  readonly moved: number
  /** The earliest due time left, `null` when there is none. */
  readonly next: number | null
  readonly now: number
  /** How many clients subscribe to the queue's channel. */
  readonly subscribers: number
  /** The time of the other clients' next transfer, if the script published one. */
  readonly announcedAt?: number | null
  /** How many entries the script moved, set aside or put off. Absent where that is not known. */
  readonly progress?: number
}

/** How the transfer is run. */
export interface TransferOptions {
  /** Whether the script publishes the time of the next transfer even if it moved nothing. */
  readonly announce: boolean
  /** While more is due within this window, the script publishes a lease of this length instead of the next due time. */
  readonly leaseWindowMs: number
  /** When the lease ends that this client published, by the Redis clock; 0 without one. */
  readonly leaseUntil: number
}

export interface TransferTaskParams {
  /** Runs the script once; `null` when there was no reason to run it. */
  readonly transfer: (options: TransferOptions) => Promise<TransferResult | null>
  /** Whether a failure can end at any moment: the wait after it does not grow. */
  readonly isBrief: (error: Error) => boolean
  readonly onError: (error: Error) => void
  readonly clock: Clock
  readonly remote: RemoteClock
  /** In [0, 1). */
  readonly random: () => number
}

const BACKOFF: Backoff = { baseMs: 100, maxMs: 5_000 }
/** After a temporary refusal, `BUSY` above all. Constant, because the server's free moments can be short. */
const BRIEF: Backoff = { baseMs: 250, maxMs: 250 }

/** After so many scripts in a row that found due entries and changed nothing, each further script waits longer. */
const MAX_STUCK = 10

/** The tolerance for a due time that was converted from one clock to the other and back. */
const SAME_MS = 0.01

/**
 * With several clients on a queue, the one that moved the last messages leads. A follower defers its transfer by this time, plus
 * a random part that grows with the number of clients, so that few followers collide when the leader is gone. The leader's
 * announcement cancels the deferred transfer.
 */
const FOLLOW_MS = 3
const SPREAD_MS_PER_CLIENT = 0.25
const MAX_SPREAD_MS = 25
/**
 * At most about so many followers publish after a transfer that moved nothing. More would repeat what every client knows by then:
 * a hundred announcements to a hundred subscribers would delay the next one.
 */
const MAX_ANNOUNCING_FOLLOWERS = 8

/**
 * On a busy queue the leader publishes one lease per window instead of every due time. The window grows with the number of clients:
 * up to a hundred clients together receive some 8,000 announcements a second.
 */
const LEASE_WINDOW_MS_PER_CLIENT = 0.25

/**
 * Delivers one queue: waits for the earliest due time it knows, runs the transfer, and lets the reply arm the timer again.
 * Three sources change the deadline. A reply may be older than an announcement that arrived meanwhile, so a reply only lowers the
 * deadline. Announcements arrive in the order in which Redis changed the head of the schedule, so an announcement replaces the
 * deadline, also by a later one: after one client's transfer the others skip theirs. The leader's own announcements do not defer
 * the leader; `Lease` recognizes them. A failure sets a back-off.
 */
export class TransferTask {
  readonly #params: TransferTaskParams
  readonly #timer: DeadlineTimer
  readonly #takeoverTimer: DeadlineTimer
  #running: Promise<void> | undefined
  /** A transfer was requested while one was running, which may have read an older state: run once more. */
  #again = false
  #announce = false
  #stopped = false
  #isLeader = false
  /** The due time, by the Redis clock, for which the timer fired last. */
  #targetDue = -Infinity
  #subscribers = 1
  readonly #lease = new Lease()
  /** Whether this client publishes after a deferred transfer that moved nothing. */
  #announceIfEmpty = false
  #failures = 0
  /** Scripts in a row that found due entries and changed nothing. */
  #stuck = 0
  #notBefore = 0

  constructor(params: TransferTaskParams) {
    this.#params = params
    this.#timer = new DeadlineTimer(params.clock, (deadline) => this.#onDue(deadline))
    this.#takeoverTimer = new DeadlineTimer(params.clock, () => this.#request(this.#announceIfEmpty))
  }

  /** Runs the transfer now, whatever the timer's deadline: as a sweep. */
  wake(): void {
    this.#request(false)
  }

  /** As `wake`, and ends the back-off of earlier failures, because the connection is new. */
  onSubscribed(): void {
    this.#lease.onSubscribed()
    this.#notBefore = 0
    this.#request(false)
  }

  /** A client announced that the next transfer is at `due`, by the Redis clock. */
  onAnnounced(due: number): void {
    if (this.#stopped) return
    const deadline = this.#params.remote.toLocal(due)
    if (deadline > this.#params.clock.now()) this.#takeoverTimer.clear()
    const outcome = this.#lease.onAnnounced(due)
    if (outcome === 'taken over') this.#isLeader = false
    if (outcome === 'no reason to wait') this.#timer.lower(deadline)
    else this.#timer.replace(deadline)
  }

  /** This client knows of an entry due at `due`, by the Redis clock. */
  onKnown(due: number): void {
    if (!this.#stopped) this.#timer.lower(this.#params.remote.toLocal(due))
  }

  /** Clears all timers; resolves when a running transfer has ended. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer.clear()
    this.#takeoverTimer.clear()
    await this.#running
  }

  #onDue(due: number): void {
    this.#targetDue = this.#params.remote.toRemote(due) ?? -Infinity
    if (this.#isLeader || this.#subscribers <= 1) {
      this.#request(true)
      return
    }
    const spread = Math.min(this.#subscribers * SPREAD_MS_PER_CLIENT, MAX_SPREAD_MS)
    const place = this.#params.random()
    const deadline = this.#params.clock.now() + FOLLOW_MS + spread * place
    if (deadline >= this.#takeoverTimer.deadline) return
    this.#announceIfEmpty = place * this.#subscribers < MAX_ANNOUNCING_FOLLOWERS
    this.#takeoverTimer.replace(deadline)
  }

  #request(announce: boolean): void {
    if (this.#stopped) return
    if (this.#params.clock.now() < this.#notBefore) {
      this.#timer.lower(this.#notBefore)
      return
    }
    this.#announce ||= announce
    this.#again = true
    if (this.#running === undefined) this.#start()
  }

  #start(): void {
    this.#running = this.#run().finally(() => {
      this.#running = undefined
      // requested between the end of the loop and this moment
      if (this.#again && !this.#stopped) this.#start()
    })
  }

  async #run(): Promise<void> {
    const { clock, remote } = this.#params
    while (this.#again && !this.#stopped) {
      const announce = this.#announce
      this.#again = this.#announce = false
      this.#takeoverTimer.clear()
      const sentAt = clock.now()
      this.#lease.onSent()
      let result: TransferResult | null
      try {
        const leaseWindowMs = Math.min(Math.floor(this.#subscribers * LEASE_WINDOW_MS_PER_CLIENT), MAX_LEASE_MS)
        result = await this.#params.transfer({ announce, leaseWindowMs, leaseUntil: this.#lease.until })
      } catch (thrown) {
        this.#onFailure(toError(thrown))
        return
      }
      if (result === null) {
        this.#lease.end()
        continue
      }
      this.#failures = 0
      remote.observe(result.now, sentAt)
      this.#subscribers = result.subscribers
      const outcome = this.#lease.onReply(result.announcedAt ?? null, result.next, result.now)
      const next = result.next ?? Infinity
      if (outcome === 'taken over') {
        this.#isLeader = false
        continue // the new leader's announcement has armed the timer
      }
      if (result.moved > 0) this.#isLeader = true
      // Another client moved the entries. A sweep that moves nothing proves nothing, nor does a script that ran too early.
      else if (announce && next > this.#targetDue + SAME_MS) this.#isLeader = false
      this.#stuck = next <= result.now && result.progress === 0 ? this.#stuck + 1 : 0
      if (next === Infinity || this.#stopped) continue
      const deadline = remote.toLocal(next)
      if (this.#stuck > MAX_STUCK) this.#backOff(BACKOFF, this.#stuck - MAX_STUCK)
      else if (next <= result.now) this.#again = true
      // also when the script ran a moment early: one that is sent now does not
      else if (deadline <= clock.now()) this.#onDue(deadline)
      else this.#timer.lower(deadline)
    }
  }

  #onFailure(error: Error): void {
    if (this.#stopped) return
    this.#isLeader = false
    this.#lease.end()
    this.#backOff(this.#params.isBrief(error) ? BRIEF : BACKOFF, ++this.#failures)
    this.#params.onError(error)
  }

  #backOff(backoff: Backoff, attempt: number): void {
    const { clock, random } = this.#params
    this.#again = this.#announce = false
    this.#notBefore = clock.now() + backoffDelay(backoff, attempt, random())
    this.#timer.lower(this.#notBefore)
  }
}
