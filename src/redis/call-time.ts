import type { ConnectionError } from '../errors.js'
import type { Resend } from '../store/sender.js'

/**
 * The time limit of calls. A call may begin another attempt until the limit has passed since its start. After a shutdown has begun, a
 * repetition must also begin within the limit since then (`mayRepeat` has the exceptions). All times are of the monotonic clock.
 */
export class CallTime {
  readonly limitMs: number
  /** When a shutdown began. */
  #shutdownAt = Infinity

  constructor(limitMs: number) {
    this.limitMs = limitMs
  }

  beginShutdown(): void {
    this.#shutdownAt = performance.now()
  }

  /** When a shutdown began; infinite before. */
  get shutdownAt(): number {
    return this.#shutdownAt
  }

  /** Whether a call may begin another attempt; `waitMs`: how long each may wait for replicas or the disk. */
  isInTime(startedAt: number, waitMs = 0): boolean {
    return performance.now() - startedAt < this.limitMs + waitMs
  }

  /**
   * Whether a call may be repeated although a shutdown has begun. Calls without `resend` always may: they are repeated only if they were
   * certainly not carried out, and one of them may be putting a taken element back.
   */
  mayRepeat(resend: Resend | undefined): boolean {
    return resend === undefined || performance.now() - this.#shutdownAt < this.limitMs
  }

  /** The remaining time of a call; Node's timers can be a millisecond early. */
  leftMs(startedAt: number, waitMs = 0): number {
    return Math.max(0, startedAt + this.limitMs + waitMs - performance.now()) + 1
  }

  /** Settles as the promise of `begin`, or rejects when the time of a call is over and `isSilent` is true then. */
  async settle<T>(
    startedAt: number,
    begin: () => Promise<T>,
    late: () => ConnectionError,
    isSilent = (): boolean => true,
  ): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const limit = new Promise<never>((_, reject) => {
      timer = setTimeout(() => isSilent() && reject(late()), this.leftMs(startedAt))
    })
    return Promise.race([begin(), limit]).finally(() => clearTimeout(timer))
  }
}
