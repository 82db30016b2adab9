/** The pause after a failure, as a multiple of the time that a call waited for it: a loop of calls waits at most a quarter of its time. */
const PAUSE_FACTOR = 3
const LEAST_PAUSE_MS = 100
const MOST_PAUSE_MS = 30_000
/** The least time between two reports of one shard. */
const REPORT_MS = 5_000
/** A failure is slow if a call waited this long for it; `commandTimeout` is no shorter. */
const SLOW_MS = 100

interface Failing {
  /** When the pause after its last failure or turn ends. */
  dueAt: number
  readonly isSlow: boolean
}

/**
 * The shards whose last answer was an error. They are asked after the others; but now and then one of them gets a turn, because otherwise
 * none would be asked again while the others have elements.
 */
export class FailingShards {
  readonly #shards = new Map<number, Failing>()
  /** When the pause of all slow shards ends. They share it, so that many of them together cost no more than one. */
  #slowDueAt = -Infinity
  #isProbed = false
  /** When an error of a shard may be reported again. */
  readonly #reportAt = new Map<number, number>()

  has(shard: number): boolean {
    return this.#shards.has(shard)
  }

  /** `heldUpMs`: how long a call waited for the error. */
  add(shard: number, now: number, heldUpMs: number): void {
    const isSlow = heldUpMs >= SLOW_MS
    const dueAt = now + Math.min(MOST_PAUSE_MS, Math.max(LEAST_PAUSE_MS, PAUSE_FACTOR * heldUpMs))
    this.#shards.set(shard, { dueAt, isSlow })
    if (isSlow) this.#slowDueAt = Math.max(this.#slowDueAt, dueAt)
  }

  delete(shard: number): void {
    this.#shards.delete(shard)
  }

  /** Whether the pause of a failing shard has not ended. */
  isPaused(shard: number, now: number): boolean {
    const failing = this.#shards.get(shard)
    return failing !== undefined && this.#isInPause(failing, now)
  }

  #isInPause({ dueAt, isSlow }: Failing, now: number): boolean {
    return dueAt > now || (isSlow && this.#slowDueAt > now)
  }

  /** Whether an error of this shard may be reported now. */
  mayReport(shard: number, now: number): boolean {
    if (now < (this.#reportAt.get(shard) ?? -Infinity)) return false
    this.#reportAt.set(shard, now + REPORT_MS)
    return true
  }

  /** The one of `shards` that is asked before all others now, if any: the one that has been due longest. */
  takeTurn<S extends { readonly index: number }>(now: number, shards: readonly S[]): S | undefined {
    if (this.#isProbed) return undefined
    let first: { readonly shard: S; readonly failing: Failing } | undefined
    for (const shard of shards) {
      const failing = this.#shards.get(shard.index)
      if (failing === undefined || this.#isInPause(failing, now)) continue
      if (first === undefined || failing.dueAt < first.failing.dueAt) first = { shard, failing }
    }
    if (first !== undefined) first.failing.dueAt = now + LEAST_PAUSE_MS
    return first?.shard
  }

  /** As `takeTurn`. There is no other turn until the caller goes on, because the shard can be silent. */
  *probe<S extends { readonly index: number }>(now: number, shards: readonly S[]): Generator<S, void> {
    const shard = this.takeTurn(now, shards)
    if (shard === undefined) return
    this.#isProbed = true
    try {
      yield shard
    } finally {
      this.#isProbed = false
    }
  }
}
