import type { Redis } from 'ioredis'

/** Bytes per second below which a reply counts as stuck: no usable line is that slow. */
export const MIN_BYTES_PER_SECOND = 100

/** The received bytes that no command waits for, by connection. */
const ignored = new WeakMap<Redis['stream'], number>()

/** Notes bytes that do not belong to a reply. */
export function ignoreBytes({ stream }: Redis, bytes: number): void {
  ignored.set(stream, (ignored.get(stream) ?? 0) + bytes)
}

/** The bytes received on the connection, without ignored ones; 0 before it is opened. */
export function bytesReadOf(redis: Redis): number {
  const stream = redis.stream as Redis['stream'] | undefined
  return stream === undefined ? 0 : stream.bytesRead - (ignored.get(stream) ?? 0)
}

interface Seen {
  readonly owed: unknown
  readonly bytesRead: number
  readonly stuckChecks: number
}

/**
 * Counts the consecutive checks at which the server still owed the same reply and had sent next to nothing since the last check. It counts
 * checks, not time, because a blocked event loop says nothing about a server; a large reply on a slow line makes progress.
 */
export class StuckChecks {
  readonly #leastBytes: number
  readonly #seen = new WeakMap<Redis['stream'], Seen>()

  /** `everyMs`: the time between two checks. */
  constructor(everyMs: number) {
    this.#leastBytes = (MIN_BYTES_PER_SECOND * everyMs) / 1000
  }

  /** Checks again, and returns the number of consecutive checks without progress. */
  count(redis: Redis): number {
    const stream = redis.stream as Redis['stream'] | undefined
    if (stream === undefined) return 0
    const owed = redis.commandQueue.peekFront()
    if (stream.destroyed || owed === undefined) {
      this.#seen.delete(stream)
      return 0
    }
    const bytesRead = bytesReadOf(redis)
    const before = this.#seen.get(stream)
    const isStuck = before?.owed === owed && bytesRead - before.bytesRead < this.#leastBytes
    const stuckChecks = isStuck ? before.stuckChecks + 1 : 0
    this.#seen.set(stream, { owed, bytesRead, stuckChecks })
    return stuckChecks
  }
}
