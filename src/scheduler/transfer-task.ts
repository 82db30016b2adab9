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
  /** How many clients listen to the queue's channel. */
  readonly subscribers: number
  /** When the others were told to look again, if they were. */
  readonly told?: number | null
  /** How many entries are not due any more: moved, set aside or put off. Absent where that is not known. */
  readonly progress?: number
}

/** How the transfer is run. */
export interface TransferOptions {
  /** The other clients are told when to look next even if nothing was moved. */
  readonly announce: boolean
  /** While more is due within this time the others are told to look again only after it. */
  readonly soonMs: number
  /** The others do not look before, by the Redis clock: they were told so. */
  readonly toldUntil: number
}

export interface TransferTaskParams {
  /** Runs the script once. `null` when there was no reason to. */
  readonly transfer: (options: TransferOptions) => Promise<TransferResult | null>
  /** Whether a failure is of the kind that can be over at any moment: the wait after it does not grow. */
  readonly isBrief: (error: Error) => boolean
  readonly onError: (error: Error) => void
  readonly clock: Clock
  readonly remote: RemoteClock
  /** In [0, 1). */
  readonly random: () => number
}

const BACKOFF: Backoff = { baseMs: 100, maxMs: 5_000 }
/** After what a server refused for the moment, `BUSY` above all. Constant: its free moments can be short. */
const BRIEF: Backoff = { baseMs: 250, maxMs: 250 }

/** After so many scripts in a row that found something due and changed nothing, each waits longer than the one before. */
const MAX_STUCK = 10

/** Due times that went through two clocks and back are the same within this. */
const SAME_MS = 0.01

/**
 * With several clients on a queue, the one that moved the last messages goes first. The others wait this long, plus a
 * random part that grows with their number so that few of them collide when the first one is gone, and are called off by
 * its announcement.
 */
const FOLLOW_MS = 3
const SPREAD_MS_PER_CLIENT = 0.25
const MAX_SPREAD_MS = 25
/**
 * So many of those that follow, the first ones, tell the others also when they ran in vain. By then everybody has been told, and what each of a
 * hundred tells each of a hundred keeps them from hearing it.
 */
const FOLLOWERS_THAT_TELL = 8

/**
 * Where messages are due one after the other, each client is told of a span of time and not of each of them, the longer the more
 * clients would hear it: up to a hundred clients hear some 8,000 announcements a second together.
 */
const SOON_MS_PER_CLIENT = 0.25

/**
 * Delivers one queue: waits for the earliest due time it knows, runs the transfer, and lets the reply arm the timer again.
 * There are three sources of due times. A reply may be older than a message that came meanwhile, so it only ever lowers the
 * deadline. A message on the channel tells the head at that moment, in the order in which Redis changed it, so it replaces
 * the deadline, also by a later one: that is how one client's transfer spares the others theirs. It does not put off the client that
 * takes care of the queue itself, which only `Lease` can tell. A failure sets a back-off.
 */
export class TransferTask {
  readonly #params: TransferTaskParams
  readonly #timer: DeadlineTimer
  readonly #hold: DeadlineTimer
  #running: Promise<void> | undefined
  /** Asked for while a transfer was running: what it saw may be outdated, so it runs once more. */
  #again = false
  #announce = false
  #stopped = false
  #first = false
  /** The due time, by the Redis clock, for which the timer fired last. */
  #aim = -Infinity
  #subscribers = 1
  readonly #lease = new Lease()
  /** Whether it tells the others when it follows in vain. */
  #tells = false
  #failures = 0
  /** Scripts in a row that found something due and changed nothing. */
  #stuck = 0
  #notBefore = 0

  constructor(params: TransferTaskParams) {
    this.#params = params
    this.#timer = new DeadlineTimer(params.clock, (deadline) => this.#onDue(deadline))
    this.#hold = new DeadlineTimer(params.clock, () => this.#request(this.#tells))
  }

  /** Runs the transfer now, whatever the timer says: after a subscription, and as a sweep. */
  wake(): void {
    this.#request(false)
  }

  /** As `wake`, and without regard to the back-off of earlier failures: the connection is new. */
  onSubscribed(): void {
    this.#lease.onSubscribed()
    this.#notBefore = 0
    this.#request(false)
  }

  /** Somebody announced that the next look is at `due`, by the Redis clock. */
  onAnnounced(due: number): void {
    if (this.#stopped) return
    const deadline = this.#params.remote.toLocal(due)
    if (deadline > this.#params.clock.now()) this.#hold.clear()
    const news = this.#lease.onAnnounced(due)
    if (news === 'taken over') this.#first = false
    if (news === 'no reason to wait') this.#timer.lower(deadline)
    else this.#timer.replace(deadline)
  }

  /** This client knows of an entry due at `due`, by the Redis clock. */
  onKnown(due: number): void {
    if (!this.#stopped) this.#timer.lower(this.#params.remote.toLocal(due))
  }

  /** Ends all waiting; resolves when a transfer that is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer.clear()
    this.#hold.clear()
    await this.#running
  }

  #onDue(due: number): void {
    this.#aim = this.#params.remote.toRemote(due) ?? -Infinity
    if (this.#first || this.#subscribers <= 1) {
      this.#request(true)
      return
    }
    const spread = Math.min(this.#subscribers * SPREAD_MS_PER_CLIENT, MAX_SPREAD_MS)
    const place = this.#params.random()
    const deadline = this.#params.clock.now() + FOLLOW_MS + spread * place
    if (deadline >= this.#hold.deadline) return
    this.#tells = place * this.#subscribers < FOLLOWERS_THAT_TELL
    this.#hold.replace(deadline)
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
      // asked for between the end of the loop and this moment
      if (this.#again && !this.#stopped) this.#start()
    })
  }

  async #run(): Promise<void> {
    const { clock, remote } = this.#params
    while (this.#again && !this.#stopped) {
      const announce = this.#announce
      this.#again = this.#announce = false
      this.#hold.clear()
      const sentAt = clock.now()
      this.#lease.onSent()
      let result: TransferResult | null
      try {
        const soonMs = Math.min(Math.floor(this.#subscribers * SOON_MS_PER_CLIENT), MAX_LEASE_MS)
        result = await this.#params.transfer({ announce, soonMs, toldUntil: this.#lease.until })
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
      const news = this.#lease.onReply(result.told ?? null, result.next, result.now)
      const next = result.next ?? Infinity
      if (news === 'taken over') {
        this.#first = false
        continue // what was heard has armed the timer
      }
      if (result.moved > 0) this.#first = true
      // somebody else was there before; a sweep that finds nothing proves nothing, nor does a script that came too early
      else if (announce && next > this.#aim + SAME_MS) this.#first = false
      this.#stuck = next <= result.now && result.progress === 0 ? this.#stuck + 1 : 0
      if (next === Infinity || this.#stopped) continue
      const deadline = remote.toLocal(next)
      if (this.#stuck > MAX_STUCK) this.#backOff(BACKOFF, this.#stuck - MAX_STUCK)
      else if (next <= result.now) this.#again = true
      // also when it arrived a moment early: what is sent now will not
      else if (deadline <= clock.now()) this.#onDue(deadline)
      else this.#timer.lower(deadline)
    }
  }

  #onFailure(error: Error): void {
    if (this.#stopped) return
    this.#first = false
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
