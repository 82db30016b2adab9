import type { Bench, BenchParams, Result } from '../bench/bench.js'
import type { Allowance } from '../bench/books.js'
import type { Stage } from '../bench/stage.js'

/** A fault with its name, and what it may do. */
export interface Scenario<S extends Stage = Stage> {
  readonly name: string
  /** Does it and heals it; there is load all the time. */
  readonly fault: (bench: Bench, stage: S) => Promise<void>
  readonly allowed?: Allowance
  readonly bench?: Partial<BenchParams>
  /** Not in a soak, where one fleet goes through many faults: too much, or it leaves the fleet without its messages. */
  readonly alone?: true
  /** What else must hold; throws when it does not. */
  readonly also?: (result: Result, bench: Bench, stage: S) => void | Promise<void>
}
