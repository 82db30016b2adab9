import type { Bench, BenchParams, Result } from '../bench/bench.js'
import type { Allowance } from '../bench/books.js'
import type { Stage } from '../bench/stage.js'

/** A fault with its name and permitted effects, for any bench. */
export interface AnyScenario<S extends Stage, B, R, A> {
  readonly name: string
  /** Makes the fault and repairs it, under constant load. */
  readonly fault: (bench: B, stage: S) => Promise<void>
  readonly allowed?: A
  /** Plays only in the long form, or if it is named. */
  readonly isLong?: boolean | undefined
  /** A further check; throws if it fails. */
  readonly also?: (result: R, bench: B, stage: S) => void | Promise<void>
}

/** A fault of delayed queues. */
export interface Scenario<S extends Stage = Stage> extends AnyScenario<S, Bench, Result, Allowance> {
  readonly bench?: Partial<BenchParams>
  /** Not in a soak, where one fleet goes through many faults: it takes too much, or leaves the fleet without messages. */
  readonly alone?: true
}
