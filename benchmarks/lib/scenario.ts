import type { Redis } from 'ioredis'
import type { Subject } from '../subjects/subject.js'

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
  /** Remembers a curve of this round for the plot: x and y. */
  curve(subject: string, points: readonly Point[]): void
}

export type Point = readonly [x: number, y: number]

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
  /** A comparison within one run, which CI holds against the committed one. */
  readonly isRatio?: boolean
  /** What has to hold on any machine, however slow; CI fails without it. */
  readonly isDuty?: boolean
}

/** How a result is drawn, if at all: curves of lateness, or bars of one figure. */
export type Plot = 'lateness' | { readonly bars: string; readonly unit: string }

export interface ScenarioResult {
  readonly rows: readonly Row[]
  readonly plot?: Plot
  readonly goals?: readonly Goal[]
  readonly notes?: readonly string[]
}

export interface Scenario {
  readonly name: string
  readonly description: string
  /** Where one round takes minutes: no more of them than this. */
  readonly maxRuns?: number
  run(bench: Bench): Promise<ScenarioResult>
}

/** As `rounds`, for subjects; one that cannot run here is left out with a word. */
export async function roundsOf(
  bench: Bench,
  subjects: readonly Subject[],
  measure: (subject: Subject) => Promise<Record<string, number>>,
): Promise<Row[]> {
  const able = subjects.filter((subject) => {
    if (bench.quick && subject.notInQuickRuns === true) return false
    const missing = subject.missing?.()
    if (missing !== undefined) bench.progress(`without ${subject.name}: ${missing}`)
    return missing === undefined
  })
  return rounds(bench, Object.fromEntries(able.map((subject) => [subject.name, () => measure(subject)])))
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

/** The median of a figure; NaN where there is none. */
export function medianOf(rows: readonly Row[], subject: string, figure: string): number {
  return median(rows.find((row) => row.subject === subject)?.figures[figure] ?? [])
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

/** What no round may miss: the highest of all rounds is judged. */
export function inNoRound(rows: readonly Row[], subject: string, figure: string): Goal {
  const values = rows.find((row) => row.subject === subject)?.figures[figure] ?? [Infinity]
  const measured = Math.max(...values)
  return { what: `${subject}: ${figure}, in any round`, measured, goal: '0', reached: measured === 0, isDuty: true }
}

/** A comparison within one run: how many times as good we are. */
export function ratio(what: string, measured: number, limit: number): Goal {
  return { what, measured, goal: `>= ${limit}`, reached: measured >= limit, isRatio: true }
}
