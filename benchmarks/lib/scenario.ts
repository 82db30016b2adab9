import type { Redis } from 'ioredis'
import type { Subject } from '../subjects/subject.js'

/** What a queue promises for a message that a consumer has been given, and so what may be compared with what. */
export type Promised = 'at most once' | 'at least once' | 'no queue'

export type Figures = Readonly<Record<string, number>>

/** What a scenario is given: a private server, and how thorough to be. */
export interface Bench {
  readonly url: string
  /** A plain client for setting up and looking. */
  readonly raw: Redis
  readonly quick: boolean
  readonly runs: number
  /** What servers are started with, where a measurement needs one of its own. */
  readonly serverBin: string
  progress(text: string): void
  /**
   * Measures once and keeps the figures: a run that goes on after an end gives what it measured before. `undefined` where the
   * measurement failed, which the report says.
   */
  measured(subject: string, round: number, measure: () => Promise<Figures>): Promise<Figures | undefined>
  /** Remembers a curve of what is being measured for the plot: x and y. */
  curve(subject: string, points: readonly Point[]): void
}

export type Point = readonly [x: number, y: number]

/** One measured row: the same figure of several rounds. */
export interface Row {
  readonly subject: string
  /** Of the subject; without it that of the whole scenario. */
  readonly promise?: Promised
  /** Figures by name, one value per round; NaN where a round has none. */
  readonly figures: Readonly<Record<string, readonly number[]>>
}

export interface Goal {
  readonly what: string
  /** The median of the rounds, where there is a value for each. */
  readonly measured: number
  /** By round: for a comparison, each of one round. */
  readonly rounds?: readonly number[]
  readonly goal: string
  readonly reached: boolean
  /** From 1 on it is reached; NaN where the goal is no number to divide by. */
  readonly times: number
  /** A comparison within one run, which CI holds against the committed one. */
  readonly isRatio?: boolean
  /** What has to hold on any machine, however slow; CI fails without it. */
  readonly isDuty?: boolean
}

/** How a result is drawn, if at all: curves of lateness, other curves, or bars of one figure. */
export type Plot =
  'lateness' | { readonly bars: string; readonly unit: string } | { readonly x: string; readonly y: string }

export interface ScenarioResult {
  readonly rows: readonly Row[]
  readonly plot?: Plot
  readonly goals?: readonly Goal[]
  readonly notes?: readonly string[]
  /** Markdown that is computed from the rows. */
  readonly text?: readonly string[]
}

export interface Scenario {
  readonly name: string
  readonly description: string
  /** Of all rows that have none of their own. */
  readonly promise?: Promised
  /** Where one round takes minutes: no more of them than this. */
  readonly maxRuns?: number
  run(bench: Bench): Promise<ScenarioResult>
}

/** As `rounds`, for subjects, in groups of equal promises; one that cannot run here is left out with a word. */
export async function roundsOf(
  bench: Bench,
  subjects: readonly Subject[],
  measure: (subject: Subject) => Promise<Figures>,
): Promise<Row[]> {
  const able = inGroups(subjects).filter((subject) => {
    if (bench.quick && subject.notInQuickRuns === true) return false
    const missing = subject.missing?.()
    if (missing !== undefined) bench.progress(`without ${subject.name}: ${missing}`)
    return missing === undefined
  })
  const rows = await rounds(bench, Object.fromEntries(able.map((subject) => [subject.name, () => measure(subject)])))
  return rows.map((row, place) => ({ ...row, promise: able[place]?.promise ?? 'no queue' }))
}

const GROUPS: readonly Promised[] = ['at most once', 'at least once', 'no queue']

/** Equal promises side by side, each group in the order that was given. */
function inGroups(subjects: readonly Subject[]): readonly Subject[] {
  return GROUPS.flatMap((promise) => subjects.filter((subject) => subject.promise === promise))
}

/**
 * Runs every subject once per round, so that a slow minute of the machine hits all of them, and collects their figures.
 * Each round begins with another one, so that no subject always meets the cold process.
 */
export async function rounds(bench: Bench, subjects: Readonly<Record<string, () => Promise<Figures>>>): Promise<Row[]> {
  const collected = new Map<string, Record<string, number[]>>()
  const entries = Object.entries(subjects)
  for (const [subject] of entries) collected.set(subject, {})
  for (let round = 1; round <= bench.runs; round++) {
    const first = (round - 1) % entries.length
    for (const [subject, measure] of [...entries.slice(first), ...entries.slice(0, first)]) {
      bench.progress(`round ${round} of ${bench.runs}: ${subject}`)
      const figures = await bench.measured(subject, round, measure)
      const sofar = collected.get(subject) ?? {}
      for (const [name, value] of Object.entries(figures ?? {})) {
        const values = (sofar[name] ??= Array.from({ length: bench.runs }, () => NaN))
        values[round - 1] = value
      }
    }
  }
  return Array.from(collected, ([subject, figures]) => ({ subject, figures }))
}

/** The values of a figure in all rounds that have one. */
export function valuesOf(rows: readonly Row[], subject: string, figure: string): readonly number[] {
  return present(rows.find((row) => row.subject === subject)?.figures[figure] ?? [])
}

export function present(values: readonly number[]): readonly number[] {
  return values.filter((value) => !Number.isNaN(value))
}

/** The median of a figure; NaN where there is none. */
export function medianOf(rows: readonly Row[], subject: string, figure: string): number {
  return median(valuesOf(rows, subject, figure))
}

/** Both sides in the same round, so that a slow minute of the machine does not decide. */
export function paired(
  rows: readonly Row[],
  [subject, figure]: readonly [subject: string, figure: string],
  [otherSubject, otherFigure]: readonly [subject: string, figure: string],
  combine: (value: number, other: number) => number,
): readonly number[] {
  const of = (name: string, what: string): readonly number[] =>
    rows.find((row) => row.subject === name)?.figures[what] ?? []
  const others = of(otherSubject, otherFigure)
  return present(of(subject, figure).map((value, round) => combine(value, others[round] ?? NaN)))
}

/** How many times the other's figure, round by round. */
export function quotients(
  rows: readonly Row[],
  figure: string,
  subject: { readonly name: string },
  other: { readonly name: string },
): readonly number[] {
  return paired(rows, [subject.name, figure], [other.name, figure], (a, b) => a / b)
}

/** By how much the figure is above the other's, round by round. */
export function differences(
  rows: readonly Row[],
  figure: string,
  subject: { readonly name: string },
  other: { readonly name: string },
): readonly number[] {
  return paired(rows, [subject.name, figure], [other.name, figure], (a, b) => a - b)
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2
}

type Measured = number | readonly number[]

function goalOf(what: string, measured: Measured): { what: string; measured: number; rounds?: readonly number[] } {
  return typeof measured === 'number' ? { what, measured } : { what, measured: median(measured), rounds: measured }
}

export function atMost(what: string, given: Measured, limit: number, unit: string): Goal {
  const goal = goalOf(what, given)
  const times = limit > 0 && goal.measured > 0 ? limit / goal.measured : NaN
  return { ...goal, goal: `<= ${limit} ${unit}`.trim(), reached: goal.measured <= limit, times }
}

export function atLeast(what: string, given: Measured, limit: number, unit: string): Goal {
  const goal = goalOf(what, given)
  const times = limit > 0 ? goal.measured / limit : NaN
  return { ...goal, goal: `>= ${limit} ${unit}`.trim(), reached: goal.measured >= limit, times }
}

/** What no round may miss: the highest of all rounds is judged, and a round without the figure is a miss. */
export function inNoRound(rows: readonly Row[], subject: string, figure: string): Goal {
  const values = rows.find((row) => row.subject === subject)?.figures[figure] ?? [NaN]
  const measured = Math.max(...values.map((value) => (Number.isNaN(value) ? Infinity : value)))
  const what = `${subject}: ${figure}, in any round`
  return { what, measured, goal: '0', reached: measured === 0, times: NaN, isDuty: true }
}

/** A comparison within one run, of equal promises: how many times as good we are. */
export function ratio(what: string, given: Measured, limit: number): Goal {
  return { ...atLeast(what, given, limit, ''), isRatio: true }
}
