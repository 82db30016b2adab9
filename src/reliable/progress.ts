import type { Duration } from '../duration.js'

/** What a consumer said last of how far a message is. */
export interface MessageProgress {
  /** As the queue's codec reads it; it is not checked. */
  readonly value: unknown
  /** The number of the delivery that said it. */
  readonly attempt: number
  /** Epoch milliseconds by the Redis clock. */
  readonly at: number
}

/** What goes with a progress. */
export interface ProgressOptions {
  /** Also extends the visibility: to so many milliseconds from now, or, with `true`, as the queue says. Default false: it stays. */
  readonly extend?: Duration | boolean | undefined
}

/** Of one progress, in bytes of the codec: it is read with each failure of its message. */
export const MAX_PROGRESS_BYTES = 4_096
