/** Results as pictures: one SVG per scenario that can be drawn. */
import * as vega from 'vega'
import { compile, type TopLevelSpec } from 'vega-lite'
import { promiseOf } from './report.js'
import { median, present, type Point, type Scenario, type ScenarioResult } from './scenario.js'

/** By subject, one curve per round. */
export type Curves = ReadonlyMap<string, readonly (readonly Point[])[]>

const WIDTH = 640
/** A logarithmic scale has no place for nothing. */
const LEAST_MS = 0.1
/** By what a subject's name begins with, so that each looks the same in all pictures. */
const COLORS: readonly (readonly [string, string])[] = [
  ["redelayed, layout 'redisson'", '#f2a09c'],
  ['redelayed, reliable', '#7d1a1c'],
  ['redelayed', '#c6302b'],
  ['BullMQ', '#888888'],
  ['bee-queue', '#4c78a8'],
  ['Redisson', '#54a24b'],
  ['asynq', '#9ecae9'],
  ['plain Redis', '#b279a2'],
  ['a timer', '#d6a5c9'],
]

export async function plot(scenario: Scenario, result: ScenarioResult, curves: Curves): Promise<string | undefined> {
  const spec = specOf(scenario, result, curves)
  if (spec === undefined) return undefined
  const view = new vega.View(vega.parse(compile(spec).spec), { renderer: 'none' })
  return view.toSVG().finally(() => view.finalize())
}

function specOf(scenario: Scenario, result: ScenarioResult, curves: Curves): TopLevelSpec | undefined {
  if (result.plot === undefined) return undefined
  /** Every picture says what each subject promises. */
  const named = new Map(result.rows.map((row) => [row.subject, `${row.subject} (${promiseOf(scenario, row)})`]))
  const labels = (subject: string): string => named.get(subject) ?? subject
  if (result.plot === 'lateness') return latenessSpec(scenario.name, curves, labels)
  if ('bars' in result.plot) return barsSpec(scenario, result, result.plot)
  return curvesSpec(scenario.name, curves, labels, result.plot)
}

/** Curves of all rounds, as their medians at each share. */
function latenessSpec(title: string, curves: Curves, labels: (subject: string) => string): TopLevelSpec | undefined {
  const values = [...curves].flatMap(([subject, rounds]) =>
    (rounds[0] ?? []).map(([, share], place) => ({
      subject: labels(subject),
      share,
      ms: Math.max(LEAST_MS, median(rounds.map((points) => points[place]?.[0] ?? NaN))),
    })),
  )
  if (values.length === 0) return undefined
  return {
    ...frame(title),
    data: { values },
    mark: { type: 'line', interpolate: 'step-after', strokeWidth: 2 },
    encoding: {
      x: {
        field: 'ms',
        type: 'quantitative',
        scale: { type: 'log', domainMin: LEAST_MS, nice: false },
        title: `late by at most, ms (less than ${LEAST_MS} is drawn as ${LEAST_MS})`,
      },
      y: { field: 'share', type: 'quantitative', title: '% of messages' },
      color: color([...curves.keys()].map(labels)),
    },
  }
}

/** Medians of both coordinates over all rounds. */
function curvesSpec(
  title: string,
  curves: Curves,
  labels: (subject: string) => string,
  { x, y }: { readonly x: string; readonly y: string },
): TopLevelSpec | undefined {
  const values = [...curves].flatMap(([subject, rounds]) =>
    (rounds[0] ?? []).map((_, place) => ({
      subject: labels(subject),
      x: median(rounds.map((points) => points[place]?.[0] ?? NaN)),
      y: Math.max(LEAST_MS, median(rounds.map((points) => points[place]?.[1] ?? NaN))),
    })),
  )
  if (values.length === 0) return undefined
  return {
    ...frame(title),
    data: { values: values.filter((one) => Number.isFinite(one.x) && Number.isFinite(one.y)) },
    mark: { type: 'line', point: true, strokeWidth: 2 },
    encoding: {
      x: { field: 'x', type: 'quantitative', scale: { type: 'log' }, title: x },
      y: { field: 'y', type: 'quantitative', scale: { type: 'log' }, title: y },
      color: color([...new Set(values.map(({ subject }) => subject))]),
    },
  }
}

function barsSpec(
  scenario: Scenario,
  { rows }: ScenarioResult,
  { bars, unit }: { readonly bars: string; readonly unit: string },
): TopLevelSpec | undefined {
  const values = rows.flatMap((row) => {
    const all = present(row.figures[bars] ?? [])
    const subject = `${row.subject} (${promiseOf(scenario, row)})`
    return all.length === 0 ? [] : [{ subject, middle: median(all), low: Math.min(...all), high: Math.max(...all) }]
  })
  if (values.length === 0) return undefined
  const y = { field: 'subject', type: 'nominal', sort: null, title: null, axis: { labelLimit: 340 } } as const
  return {
    ...frame(scenario.name),
    height: { step: 28 },
    data: { values },
    layer: [
      {
        mark: 'bar',
        encoding: {
          y,
          x: { field: 'middle', type: 'quantitative', title: unit },
          color: { ...color(values.map((v) => v.subject)), legend: null },
        },
      },
      {
        mark: { type: 'rule', strokeWidth: 2 },
        encoding: { y, x: { field: 'low', type: 'quantitative' }, x2: { field: 'high' } },
      },
    ],
  }
}

function frame(title: string): { title: string; width: number; background: string; config: { font: string } } {
  return { title, width: WIDTH, background: 'white', config: { font: 'sans-serif' } }
}

function color(subjects: readonly string[]) {
  const range = subjects.map((subject) => COLORS.find(([start]) => subject.startsWith(start))?.[1] ?? '#eeca3b')
  const legend = { labelLimit: 340, orient: 'bottom', columns: 2 } as const
  return { field: 'subject', type: 'nominal', scale: { domain: [...subjects], range }, title: null, legend } as const
}
