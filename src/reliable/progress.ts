import type { Duration } from '../duration.js'

/** The last progress of a message that a consumer reported. */
export interface MessageProgress {
  /** The value as the queue's codec decodes it, unchecked. */
  readonly value: unknown
  /** The number of the delivery that reported it. */
  readonly attempt: number
  /** Epoch milliseconds by the Redis clock. */
  readonly at: number
}

/** Options of a progress. */
export interface ProgressOptions {
  /**
   * Also extends the visibility: to a number of milliseconds from now, at most 365 days, or, with `true`, to the queue's. Default false.
   */
  readonly extend?: Duration | boolean | undefined
}

/** The most encoded bytes of a progress, which scripts read with each failure of its message. */
export const MAX_PROGRESS_BYTES = 4_096
