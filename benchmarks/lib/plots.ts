/** Results as pictures: one SVG per scenario that can be drawn. */
import * as vega from 'vega'
import { compile, type TopLevelSpec } from 'vega-lite'
import type { Finished } from './report.js'
import { median, type Point, type Row } from './scenario.js'

/** By subject, one curve per round. */
export type Curves = ReadonlyMap<string, readonly (readonly Point[])[]>

const WIDTH = 640
/** By what a subject's name begins with, so that each looks the same in all pictures. */
const COLORS: readonly (readonly [string, string])[] = [
  ["redelayed, layout 'redisson'", '#f2a09c'],
  ['redelayed', '#c6302b'],
  ['BullMQ', '#888888'],
  ['bee-queue', '#4c78a8'],
  ['Redisson', '#54a24b'],
  ['asynq', '#9ecae9'],
  ['plain Redis', '#b279a2'],
  ['a timer', '#d6a5c9'],
]

export async function plot([scenario, result]: Finished, curves: Curves): Promise<string | undefined> {
  if (result.plot === undefined) return undefined
  const spec =
    result.plot === 'lateness' ? latenessSpec(scenario.name, curves) : barsSpec(scenario.name, result.rows, result.plot)
  if (spec === undefined) return undefined
  const view = new vega.View(vega.parse(compile(spec).spec), { renderer: 'none' })
  return view.toSVG().finally(() => view.finalize())
}

/** Curves of all rounds, as their medians at each share. */
function latenessSpec(title: string, curves: Curves): TopLevelSpec | undefined {
  const values = [...curves].flatMap(([subject, rounds]) =>
    (rounds[0] ?? []).map(([, share], place) => ({
      subject,
      share,
      ms: Math.max(0.5, median(rounds.map((points) => points[place]?.[0] ?? NaN))),
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
        scale: { type: 'log', domainMin: 0.5, nice: false },
        title: 'late by at most, ms (0 is drawn as 0.5)',
      },
      y: { field: 'share', type: 'quantitative', title: '% of messages' },
      color: color([...curves.keys()]),
    },
  }
}

function barsSpec(
  title: string,
  rows: readonly Row[],
  { bars, unit }: { bars: string; unit: string },
): TopLevelSpec | undefined {
  const values = rows.flatMap(({ subject, figures }) => {
    const all = figures[bars] ?? []
    return all.length === 0 ? [] : [{ subject, middle: median(all), low: Math.min(...all), high: Math.max(...all) }]
  })
  if (values.length === 0) return undefined
  const y = { field: 'subject', type: 'nominal', sort: null, title: null, axis: { labelLimit: 240 } } as const
  return {
    ...frame(title),
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
  const legend = { labelLimit: 240, orient: 'bottom', columns: 3 } as const
  return { field: 'subject', type: 'nominal', scale: { domain: [...subjects], range }, title: null, legend } as const
}
