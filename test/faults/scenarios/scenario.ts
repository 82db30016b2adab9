import type { Bench, BenchParams, Result } from '../bench/bench.js'
import type { Allowance } from '../bench/books.js'
import type { Stage } from '../bench/stage.js'

/** A fault with its name, and what it may do; whatever bench it is done to. */
export interface AnyScenario<S extends Stage, B, R, A> {
  readonly name: string
  /** Does it and heals it; there is load all the time. */
  readonly fault: (bench: B, stage: S) => Promise<void>
  readonly allowed?: A
  /** What else must hold; throws when it does not. */
  readonly also?: (result: R, bench: B, stage: S) => void | Promise<void>
}

/** A fault of delayed queues. */
export interface Scenario<S extends Stage = Stage> extends AnyScenario<S, Bench, Result, Allowance> {
  readonly bench?: Partial<BenchParams>
  /** Not in a soak, where one fleet goes through many faults: too much, or it leaves the fleet without its messages. */
  readonly alone?: true
}
