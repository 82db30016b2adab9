import { basename } from 'node:path'
import type { Result } from './bench/bench.js'

export interface SoakSettings {
  readonly minutes: number
  readonly seed: number
  /** The path of the report without its ending. */
  readonly out: string
  /** The settings of the run, in a line. */
  readonly versions: string
}

export interface Round {
  /** Minutes since the start. */
  readonly at: number
  readonly place: string
  readonly fault: string
  readonly result?: Result
  readonly problems: readonly string[]
}

/** The largest heap of a fleet. */
export interface Heap {
  readonly at: number
  readonly place: string
  readonly mebibytes: number
}

const COUNTS = ['acknowledged', 'delivered', 'lost', 'dropped', 'duplicated', 'early', 'wrong', 'quarantined'] as const

/** The report as a page for people, and all data for programs. */
export function soakReport(
  settings: SoakSettings,
  minutes: number,
  rounds: readonly Round[],
  heaps: readonly Heap[],
): { text: string; data: object; failed: number } {
  const failed = rounds.filter(({ problems }) => problems.length > 0)
  const line = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`
  const table = (head: readonly string[], body: readonly (readonly (string | number)[])[]): string =>
    [line(head), line(head.map((_, i) => (i < 1 ? '---' : '---:'))), ...body.map(line)].join('\n')
  const sum = (of: readonly Round[], what: (typeof COUNTS)[number]): number =>
    of.reduce((total, { result }) => total + (result?.[what] ?? 0), 0)
  const worst = (of: readonly Round[]): number => Math.max(0, ...of.map(({ result }) => result?.latestMs ?? 0))
  const rowOf = (name: string, of: readonly Round[]): (string | number)[] => [
    name,
    of.length,
    ...COUNTS.map((what) => sum(of, what).toLocaleString('en')),
    worst(of).toLocaleString('en'),
  ]

  const names = [...new Set(rounds.map(({ place, fault }) => `${place}\n${fault}`))].sort()
  const body = names.map((name) => {
    const of = rounds.filter(({ place, fault }) => `${place}\n${fault}` === name)
    return rowOf(name.replace('\n', ': '), of)
  })
  const places = [...new Set(heaps.map(({ place }) => place))]
  const memory = places.map((place) => {
    const own = heaps.filter((heap) => heap.place === place).map(({ mebibytes }) => mebibytes)
    return [place, own.length, own[0] ?? 0, own[own.length >> 1] ?? 0, own.at(-1) ?? 0, Math.max(...own)]
  })
  const text = `# Soak

Made by \`npm run soak -- --minutes ${settings.minutes} --seed ${settings.seed}\` in ${minutes.toFixed(1)} minutes. ${settings.versions}

${rounds.length} faults, drawn at random, on fleets of two producers, two clients that only deliver and two consumers, each a process of its
own, which live on from fault to fault. After each one everything is drained and the books are checked, message by message.
What is lost here was in the hands of a consumer whose connection or server went away in that moment; what came twice, at a
failover, had been taken at a master that had not replicated it yet. Each fault's share of both is limited (\`test/faults/scenarios\`).

${table(['fault', 'times', ...COUNTS, 'latest after healing, ms'], [...body, rowOf('**all**', rounds)])}

## Memory

The largest heap of a fleet's processes after each round, in MiB, garbage collected.

${table(['fleet', 'readings', 'first', 'middle', 'last', 'largest'], memory)}

## What went wrong

${failed.length === 0 ? 'Nothing.' : failed.map(({ at, place, fault, problems }) => `- ${at.toFixed(1)} min, ${place}, ${fault}: ${problems.join('; ').replaceAll('\n', ' ')}`).join('\n')}
`
  return {
    text,
    data: { settings: { ...settings, out: basename(settings.out) }, minutes, rounds, heaps },
    failed: failed.length,
  }
}
