/** The least time between two turns of failing shards. */
const PAUSE_MS = 100
/** The pause after a failure, in times of its length: silent shards cost a loop of calls at most a quarter of its time. */
const PAUSE_FACTOR = 3

/**
 * The shards whose last answer was an error. They are asked after the others; but now and then one of them gets a turn, because otherwise
 * none would be asked again while the others have elements.
 */
export class FailingShards {
  /** The one whose last failure is the oldest comes first. */
  readonly #shards = new Set<number>()
  #turnAt = -Infinity

  has(shard: number): boolean {
    return this.#shards.has(shard)
  }

  /** `heldUpMs`: how long a call waited for the error. */
  add(shard: number, now: number, heldUpMs: number): void {
    this.#shards.delete(shard)
    this.#shards.add(shard)
    this.#pause(now, Math.max(PAUSE_MS, PAUSE_FACTOR * heldUpMs))
  }

  delete(shard: number): void {
    this.#shards.delete(shard)
  }

  /** The shard that is asked before all others now, if any. */
  takeTurn(now: number): number | undefined {
    const [shard] = this.#shards
    if (shard === undefined || this.#turnAt > now) return undefined
    this.#pause(now, PAUSE_MS)
    return shard
  }

  #pause(now: number, ms: number): void {
    this.#turnAt = Math.max(this.#turnAt, now + ms)
  }
}
