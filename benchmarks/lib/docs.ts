/** Puts the figures of a whole run into README.md and docs/performance.md, so that all of them are of one run of one commit. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { format, tableOfGoals, type Run } from './report.js'
import { medianOf, type Promised, type Row } from './scenario.js'

const ROOT = new URL('../../', import.meta.url)

interface Line {
  readonly what: string
  readonly scenario: string
  readonly figure: string
  readonly unit: string
  readonly isLessBetter: boolean
  /** Ours, by promise; a line for each. */
  readonly ours: readonly string[]
}

const COMPACT = "redelayed, layout 'compact'"
const RELIABLE = 'redelayed, reliable queue'
const BOTH = [COMPACT, RELIABLE]

const LINES: readonly Line[] = [
  late('lateness p99, a message every 90 ms', 'lateness-sparse'),
  late('lateness p99, 1,000 a second', 'lateness-uniform'),
  late('lateness p99, 1,000 a second while 1,000,000 others wait', 'lateness-backlog-1000000'),
  less('50,000 due in one millisecond, until the last is taken', 'burst-until-taken', 'ms until the last', ' ms', BOTH),
  more('handled a second by a worker with a concurrency of 100', 'worker-100', [RELIABLE]),
  more('taken a second in batches', 'take-batches', [COMPACT]),
  more('added a second in bulk', 'add-bulk', BOTH),
  less('bytes per pending message of 100 bytes', 'memory-100-bytes', 'bytes per message', '', BOTH),
  less('recovery of 300,000 overdue, with loading', 'recovery', 'last after s, with loading', ' s', BOTH),
]

function less(what: string, scenario: string, figure: string, unit: string, ours: readonly string[]): Line {
  return { what, scenario, figure, unit, isLessBetter: true, ours }
}

function late(what: string, scenario: string): Line {
  return less(what, scenario, 'p99 ms', ' ms', BOTH)
}

function more(what: string, scenario: string, ours: readonly string[]): Line {
  return { what, scenario, figure: 'messages/s', unit: '', isLessBetter: false, ours }
}

/** Neither ours nor a floor, and what is early is not compared in lateness. */
function isRival({ subject }: Row, { figure }: Line): boolean {
  if (/^redelayed|floor|^plain Redis/.test(subject)) return false
  return !(figure === 'p99 ms' && subject.startsWith('asynq'))
}

function cellsOf(line: Line, ours: string, rows: readonly Row[]): string[] {
  const promise: Promised | undefined = rows.find(({ subject }) => subject === ours)?.promise
  const equals = rows.filter((row) => row.promise === promise && isRival(row, line))
  const value = (subject: string): number => medianOf(rows, subject, line.figure)
  const show = (subject: string | undefined): string =>
    subject === undefined ? '' : `${format(value(subject))}${Number.isFinite(value(subject)) ? line.unit : ''}`
  const others = equals.filter(({ subject }) => subject !== 'BullMQ' && !Number.isNaN(value(subject)))
  const sign = line.isLessBetter ? 1 : -1
  const [nearest] = others.map(({ subject }) => subject).sort((a, b) => sign * (value(a) - value(b)))
  const bullmq = equals.find(({ subject }) => subject === 'BullMQ')?.subject
  return [
    line.what,
    promise ?? '',
    show(ours),
    nearest === undefined ? '' : `${short(nearest)} ${show(nearest)}`,
    show(bullmq),
  ]
}

const short = (subject: string): string => subject.replace(/,.*| RDelayedQueue/, '')

function readme({ env, stem, finished, pictures }: Run): string[] {
  const picture = (name: string, what: string): string =>
    pictures.has(name) ? `![${what}](benchmarks/results/plots/${stem}/${name}.svg)` : ''
  const rows = LINES.flatMap((line) => {
    const found = finished.find(({ scenario }) => scenario.name === line.scenario)
    return found === undefined ? [] : line.ours.map((ours) => cellsOf(line, ours, found.result.rows))
  })
  return [
    picture('burst-until-taken', '50,000 messages due at once, until the last is taken, by promise'),
    '',
    `Medians of up to ${env.runs} rounds of [one run](benchmarks/results/${stem}.md) of commit ${env.commit}, each row on one machine of two cores that server, producers and consumers share: trust the ratios, not the rates. Each row compares queues of one promise. A take that keeps and acknowledges the message does more work than one that only removes it.`,
    '',
    '| | promise | redelayed | nearest rival | BullMQ |',
    '|---|---|---:|---:|---:|',
    ...rows.map((cells) => `| ${cells.join(' | ')} |`),
    '',
    picture('worker-100', 'handled by a worker with a concurrency of 100, all at least once'),
  ]
}

function performancePage(run: Run): string[] {
  const { env, stem, places, finished, pictures } = run
  const planning = finished.find(({ scenario }) => scenario.name === 'planning')?.result.text ?? []
  const goals = tableOfGoals(finished).slice(2) // it has a heading there
  return [
    `All figures are of [one run](../benchmarks/results/${stem}.md) of commit ${env.commit}, begun on ${env.date.slice(0, 16).replace('T', ' ')} UTC with up to ${env.runs} rounds of each scenario. ${env.machine}${places.length > 1 ? `, and other machines, which the page of the run lists, each scenario on one of them` : ''}; ${Object.entries(
      env.versions,
    )
      .map(([name, version]) => `${name} ${version}`)
      .join(', ')}.`,
    '',
    ...goals,
    '',
    ...[
      'lateness-uniform',
      'lateness-100-clients',
      'add-bulk',
      'burst-until-taken',
      'worker-100',
      'open-loop',
      'recovery',
    ]
      .filter((name) => pictures.has(name))
      .flatMap((name) => [`![${name}](../benchmarks/results/plots/${stem}/${name}.svg)`, '']),
    ...planning,
  ]
}

/** Between a comment that begins a part and one that ends it. */
function replacePart(file: string, part: string, lines: readonly string[]): void {
  const path = fileURLToPath(new URL(file, ROOT))
  const text = readFileSync(path, 'utf8')
  const [begin, end] = [`<!-- bench: ${part} -->`, `<!-- end of bench: ${part} -->`]
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`${file} has no part between ${begin} and ${end}`)
  writeFileSync(path, `${text.slice(0, from + begin.length)}\n\n${lines.join('\n').trim()}\n\n${text.slice(to)}`)
}

export function writeDocs(run: Run): void {
  replacePart('README.md', 'comparison', readme(run))
  replacePart('docs/performance.md', 'goals', performancePage(run))
}
