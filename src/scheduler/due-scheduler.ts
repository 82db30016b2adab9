import { toError } from '../errors.js'
import type { Clock } from '../timing/clock.js'
import { DeadlineTimer } from '../timing/deadline-timer.js'
import type { FineWaits } from '../timing/fine-waits.js'
import type { RemoteClock } from '../timing/remote-clock.js'
import type { Retries } from './retries.js'
import { INITIAL, transition, type DueEvent, type DueReply, type DueState, type ScriptOptions } from './due-machine.js'

/** The result of one run of the script. Unlike in `DueReply`, times are milliseconds of the Redis clock. */
export interface ScriptResult extends Omit<DueReply, 'next'> {
  /** The earliest due time left, `null` when there is none. */
  readonly next: number | null
  /** When the script ran. */
  readonly now: number
}

export interface DueSchedulerParams {
  /** Runs the script once; `null` when there was no reason to run it. The `target` is by the Redis clock here. */
  readonly script: (options: ScriptOptions) => Promise<ScriptResult | null>
  /** Whether a failure can end at any moment: the wait after it does not grow. */
  readonly isBrief: (error: Error) => boolean
  readonly onError: (error: Error) => void
  readonly clock: Clock
  readonly remote: RemoteClock
  /** Returns a number in [0, 1). */
  readonly random: () => number
  /** Shared by the queues of a client; without it retries are not paced. */
  readonly retries?: Retries
  /** Those of the client, if it has any. */
  readonly fineWaits: FineWaits | undefined
}

/**
 * Runs the script of one queue when entries are due. `transition` decides when; this class has the timer, the running
 * script, and the conversion from the Redis clock to the local one.
 */
export class DueScheduler {
  readonly #params: DueSchedulerParams
  readonly #timer: DeadlineTimer
  #state: DueState = INITIAL
  #running: Promise<void> | undefined

  constructor(params: DueSchedulerParams) {
    this.#params = params
    this.#timer = new DeadlineTimer(params.clock, () => this.#apply({ type: 'deadline' }), params.fineWaits)
  }

  /** Runs the script now, whatever the deadline, as a sweep does. */
  wake(): void {
    this.#apply({ type: 'wake' })
  }

  /** As `wake`, and ends the back-off of earlier failures, because the connection is new. */
  onSubscribed(): void {
    this.#apply({ type: 'subscribed' })
  }

  /** A client announced that the next transfer is at `due`, by the Redis clock. */
  onAnnounced(due: number): void {
    this.#apply({ type: 'announced', at: this.#params.remote.toLocal(due) })
  }

  /** This client knows of an entry due at `due`, by the Redis clock. */
  onKnown(due: number): void {
    this.#apply({ type: 'known', at: this.#params.remote.toLocal(due) })
  }

  /** Clears the timer; resolves when a running script has ended. */
  async stop(): Promise<void> {
    this.#apply({ type: 'stop' })
    this.#params.retries?.leave(this)
    await this.#running
  }

  #apply(event: DueEvent): void {
    const { clock, random } = this.#params
    const { state, run } = transition(this.#state, event, { now: clock.now(), random: random() })
    this.#state = state
    if (state.is === 'running' || state.deadline === Infinity) this.#timer.clear()
    else if (state.deadline !== this.#timer.deadline) this.#timer.replace(state.deadline, isFirst(state))
    if (run !== undefined) this.#running = this.#run(run)
  }

  async #run(options: ScriptOptions): Promise<void> {
    const { clock, remote, retries } = this.#params
    const isRetry = this.#state.failures > 0
    const turn = isRetry ? retries?.turn(this) : undefined
    if (turn !== undefined) await turn
    if (this.#isStopped) return
    const sentAt = clock.now()
    const target = remote.toRemote(options.target) ?? Infinity
    let result: ScriptResult | null
    try {
      result = await this.#params.script({ ...options, target })
    } catch (thrown) {
      this.#onFailure(toError(thrown))
      return
    }
    if (isRetry && result !== null) retries?.letAllGo()
    this.#apply(result === null ? { type: 'skipped' } : { type: 'replied', reply: this.#toLocal(result, sentAt) })
  }

  get #isStopped(): boolean {
    return this.#state.is === 'stopped'
  }

  #onFailure(error: Error): void {
    if (this.#isStopped) return
    this.#apply({ type: 'failed', isBrief: this.#params.isBrief(error) })
    this.#params.onError(error)
  }

  /** Converts field by field, because it runs for each due time: rest syntax would make a kilobyte of garbage. */
  #toLocal({ moved, next, now, subscribers, leader, leaseUntil, isStuck }: ScriptResult, sentAt: number): DueReply {
    const { remote } = this.#params
    remote.observe(now, sentAt)
    const localNext = next === null ? Infinity : remote.toLocal(next)
    return { moved, next: localNext, subscribers, leader, leaseUntil: remote.toLocal(leaseUntil), isStuck }
  }
}

/** Whether the script runs at the deadline; followers let the leader go first. */
function isFirst({ is, isLeader, subscribers }: DueState): boolean {
  return is === 'waiting' && (isLeader || subscribers <= 1)
}

/**
 * The time in a message on a queue's channel, epoch milliseconds; `undefined` if the message is not a time, as any client can publish
 * there.
 */
export function announcedTime(message: string): number | undefined {
  // the greatest safe integer has 16 digits; a longer message is not parsed
  if (message.length > 16 || !/^\d+$/.test(message)) return undefined
  const at = Number(message)
  return Number.isSafeInteger(at) ? at : undefined
}
