/**
 * Load against latency. Messages are sent at their moments whatever has become of those before them, and latency counts from the moment
 * at which each was to be sent: who falls behind is late for all that wait, too.
 */
import { roundsOf, type Bench, type Figures, type Point, type Row, type Scenario } from '../lib/scenario.js'
import { onStage } from '../lib/stage.js'
import type { Subject } from '../subjects/subject.js'
import { consumersOf } from './burst.js'
import { percentilesOf, within } from './lateness.js'
import { MIXED_SUBJECTS, mixedRate } from './mixed.js'

const SHARES = [10, 25, 50, 75, 90, 95]
const GIVE_UP_MS = 20_000
const FIGURES = ['messages/s', 'p50 ms', 'p99 ms', 'p99.9 ms', 'max ms']

async function atRate(bench: Bench, subject: Subject, perSecond: number): Promise<Figures> {
  return onStage(bench, {}, async (stage) => {
    const seconds = bench.quick ? 2 : 5
    const count = Math.max(10, Math.round(perSecond * seconds))
    const session = await stage.open(subject)
    await session.ready()
    const taking = session.take(count, consumersOf(subject))
    const start = Date.now() + 500
    const at = Array.from({ length: count }, () => Math.floor(start + Math.random() * seconds * 1_000)).sort(
      (a, b) => a - b,
    )
    const producing = session.produce(at)
    producing.catch(() => undefined) // whether all came is asked below
    const taken = await within(taking, 500 + seconds * 1_000 + GIVE_UP_MS)
    if (taken === undefined) {
      return Object.fromEntries(FIGURES.map((figure) => [figure, figure === 'messages/s' ? perSecond : Infinity]))
    }
    await producing
    return { ...percentilesOf(taken, at).figures, 'messages/s': perSecond }
  })
}

const nameOf = (share: number, figure: string): string => `${share} %: ${figure}`

async function measure(bench: Bench, subject: Subject, most: number): Promise<Figures> {
  const figures: Record<string, number> = {}
  const points: Point[] = []
  for (const share of SHARES) {
    const one = await atRate(bench, subject, (most * share) / 100)
    for (const figure of FIGURES) figures[nameOf(share, figure)] = one[figure] ?? NaN
    points.push([(most * share) / 100, one['p99 ms'] ?? NaN])
  }
  bench.curve(subject.name, points)
  return figures
}

/** A row for each share of the maximum. */
function rowsByShare(rows: readonly Row[]): Row[] {
  return rows.flatMap(({ subject, promise, figures }) =>
    SHARES.map((share) => ({
      subject: `${subject}, ${share} %`,
      ...(promise !== undefined && { promise }),
      figures: Object.fromEntries(FIGURES.map((figure) => [figure, figures[nameOf(share, figure)] ?? []])),
    })),
  )
}

export const openLoop: Scenario = {
  name: 'open-loop',
  maxRuns: 3,
  description:
    'Latency by load, open loop: single messages without a delay at random moments, at 10 to 95 % of what the subject carries at most (as in `mixed`, measured at the start of the run), for 5 s each; from the moment at which a message was to be sent until it is taken. A timer of Node fires up to a millisecond late, which is in the figures of all subjects in JavaScript.',
  async run(bench) {
    const most = new Map<Subject, number>()
    for (const subject of MIXED_SUBJECTS) {
      if (subject.missing?.() !== undefined || (bench.quick && subject.notInQuickRuns === true)) continue
      const count = bench.quick ? 10_000 : 30_000
      const figures = await bench.measured(`most of ${subject.name}`, 0, () => mixedRate(bench, subject, count))
      most.set(subject, figures?.['messages/s'] ?? 1_000)
    }
    const rows = await roundsOf(bench, MIXED_SUBJECTS, (subject) => measure(bench, subject, most.get(subject) ?? 1_000))
    return { rows: rowsByShare(rows), plot: { x: 'messages a second', y: 'p99 of the latency, ms' } }
  },
}
