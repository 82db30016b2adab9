import type { Redis } from 'ioredis'

/** What a scenario is given: a private server, and how thorough to be. */
export interface Bench {
  readonly url: string
  /** A plain client for setting up and looking. */
  readonly raw: Redis
  readonly quick: boolean
  readonly runs: number
  progress(text: string): void
}

/** One measured row: the same figure of several runs. */
export interface Row {
  readonly subject: string
  /** Figures by name, one value per run. */
  readonly figures: Readonly<Record<string, readonly number[]>>
}

export interface Goal {
  readonly what: string
  readonly measured: number
  readonly goal: string
  readonly reached: boolean
}

export interface ScenarioResult {
  readonly rows: readonly Row[]
  readonly goals?: readonly Goal[]
  readonly notes?: readonly string[]
}

export interface Scenario {
  readonly name: string
  readonly description: string
  run(bench: Bench): Promise<ScenarioResult>
}

/**
 * Runs every subject once per round, so that a slow minute of the machine hits all of them, and collects their figures.
 * Each round begins with another one, so that no subject always meets the cold process.
 */
export async function rounds(
  bench: Bench,
  subjects: Readonly<Record<string, () => Promise<Record<string, number>>>>,
): Promise<Row[]> {
  const collected = new Map<string, Record<string, number[]>>()
  const entries = Object.entries(subjects)
  for (const [subject] of entries) collected.set(subject, {})
  for (let round = 1; round <= bench.runs; round++) {
    const first = (round - 1) % entries.length
    for (const [subject, measure] of [...entries.slice(first), ...entries.slice(0, first)]) {
      bench.progress(`round ${round} of ${bench.runs}: ${subject}`)
      const figures = await measure()
      const sofar = collected.get(subject) ?? {}
      for (const [name, value] of Object.entries(figures)) (sofar[name] ??= []).push(value)
    }
  }
  return Array.from(collected, ([subject, figures]) => ({ subject, figures }))
}

/** The median of a figure. */
export function medianOf(rows: readonly Row[], subject: string, figure: string): number {
  const values = rows.find((row) => row.subject === subject)?.figures[figure]
  if (values === undefined) throw new Error(`no figure ${figure} of ${subject}`)
  return median(values)
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2
}

export function atMost(what: string, measured: number, limit: number, unit: string): Goal {
  return { what, measured, goal: `<= ${limit} ${unit}`, reached: measured <= limit }
}

export function atLeast(what: string, measured: number, limit: number, unit: string): Goal {
  return { what, measured, goal: `>= ${limit} ${unit}`, reached: measured >= limit }
}
