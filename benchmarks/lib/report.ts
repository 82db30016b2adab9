import { mkdirSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { machineName, type Place } from './machine.js'
import { stringify, type Measurement } from './run-state.js'
import { median, present, type Goal, type Row, type Scenario, type ScenarioResult } from './scenario.js'

export interface Environment {
  readonly commit: string
  /** A hash of what was measured. */
  readonly code: string
  readonly command: string
  readonly date: string
  readonly machine: string
  readonly loadBefore: string
  readonly versions: Readonly<Record<string, string>>
  readonly runs: number
}

export function environment(
  { commit, code }: Pick<Environment, 'commit' | 'code'>,
  command: string,
  runs: number,
  versions: Record<string, string>,
): Environment {
  return {
    commit,
    code,
    command,
    date: new Date().toISOString(),
    machine: machineName(),
    loadBefore: loadavg()
      .map((load) => load.toFixed(2))
      .join(' '),
    versions: { node: process.version, ...versions },
    runs,
  }
}

export interface Finished {
  readonly scenario: Scenario
  readonly result: ScenarioResult
  readonly measurements: readonly Measurement[]
}

export interface Run {
  readonly env: Environment
  readonly stem: string
  readonly places: readonly Place[]
  readonly finished: readonly Finished[]
  /** Scenarios that were asked for and have not ended. */
  readonly missing: readonly string[]
  /** By scenario, an SVG. */
  readonly pictures: ReadonlyMap<string, string>
}

export function markdown({ env, stem, places, finished, missing, pictures }: Run): string {
  const lines = [
    '# Benchmark results',
    '',
    `Made by \`${env.command}\` of commit ${env.commit}, begun on ${env.date}.`,
    `${env.machine}; load before the start ${env.loadBefore}.`,
    `${Object.entries(env.versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', ')}.`,
    `Medians of ${env.runs} rounds, or as many as a scenario says; in brackets the lowest and the highest. The file beside this one has every round, with the load and the steal of the machine.`,
    ...(places.length > 1 ? whereabouts(places) : []),
    ...(env.command.includes('--quick') ? ['A quick run: fewer messages than the descriptions say.'] : []),
    ...(missing.length === 0
      ? []
      : ['', `**This run is not complete: it ended before ${missing.join(', ')}.** What it measured stays.`]),
  ]
  for (const { scenario, result, measurements } of finished) {
    lines.push(
      '',
      `## ${scenario.name}`,
      '',
      scenario.description,
      '',
      ...circumstances(measurements, places.length),
      '',
    )
    lines.push(...table(scenario, result))
    if (pictures.has(scenario.name)) lines.push(`![${scenario.name}](${pictureName(stem, scenario.name)})`, '')
    for (const note of result.notes ?? []) lines.push(`- ${note}`)
    for (const { subject, round, error } of measurements.filter((one) => one.error !== undefined)) {
      lines.push(`- **failed**: round ${round} of ${subject}: ${error}`)
    }
    if (result.text !== undefined) lines.push('', ...result.text)
  }
  lines.push('', ...tableOfGoals(finished))
  return `${lines.join('\n').replaceAll(/\n{3,}/g, '\n\n')}\n`
}

function whereabouts(places: readonly Place[]): string[] {
  const list = places.map(({ machine, since }, index) => `${index + 1}. ${machine}, since ${since}`)
  return ['', 'The run was on these machines, one after the other, and each scenario on one of them:', '', ...list, '']
}

function circumstances(measurements: readonly Measurement[], places: number): string[] {
  if (measurements.length === 0) return []
  const seconds = measurements.reduce((sum, one) => sum + one.seconds, 0)
  const spread = (values: readonly number[]): string =>
    `${format(Math.min(...values))} to ${format(Math.max(...values))}`
  const rounds = Math.max(...measurements.map(({ round }) => round))
  const loads = spread(measurements.map(({ load }) => load))
  const steals = spread(measurements.map(({ stealPercent }) => stealPercent))
  const where = places > 1 ? `Machine ${measurements[0]?.place ?? 1}, ` : ''
  return [
    `${where}${rounds} round${rounds === 1 ? '' : 's'}, ${format(Math.round(seconds))} s; load before a measurement ${loads}, steal in one ${steals} %.`,
  ]
}

export function promiseOf(scenario: Scenario, row: Row): string {
  const promise = row.promise ?? scenario.promise
  if (promise === undefined) throw new Error(`${scenario.name}: what does ${row.subject} promise?`)
  return promise
}

function table(scenario: Scenario, { rows }: ScenarioResult): string[] {
  if (rows.length === 0) return []
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.figures)))]
  const body = rows.map((row) => [
    row.subject,
    promiseOf(scenario, row),
    ...names.map((name) => cell(row.figures[name])),
  ])
  return [
    `| | promise | ${names.join(' | ')} |`,
    `|---|---|${names.map(() => '---:').join('|')}|`,
    ...body.map((cells) => `| ${cells.join(' | ')} |`),
    '',
  ]
}

/** All goals of the run, with by how much each was reached or missed. */
export function tableOfGoals(finished: readonly Finished[]): string[] {
  const goals = finished.flatMap(({ scenario, result }) => (result.goals ?? []).map((goal) => ({ scenario, goal })))
  if (goals.length === 0) return []
  const measured = goals.filter(({ goal }) => !Number.isNaN(goal.measured))
  const reached = measured.filter(({ goal }) => goal.reached).length
  return [
    '## Goals',
    '',
    `${reached} of ${measured.length} reached. A comparison is made within each round; the times say how many times as good as the goal the figure is, so that 1 and more is reached.`,
    '',
    '| scenario | what | measured | goal | times | reached |',
    '|---|---|---:|---:|---:|---|',
    ...goals.map(({ scenario, goal }) => `| ${scenario.name} | ${goal.what} | ${cellOf(goal)} |`),
  ]
}

function cellOf(goal: Goal): string {
  if (Number.isNaN(goal.measured)) return ['', goal.goal, '', 'not measured'].join(' | ')
  const times = Number.isFinite(goal.times) ? format(goal.times) : ''
  return [cell(goal.rounds ?? [goal.measured]), goal.goal, times, goal.reached ? 'yes' : '**no**'].join(' | ')
}

function cell(given: readonly number[] | undefined): string {
  const values = present(given ?? [])
  if (values.length === 0) return ''
  const middle = format(median(values))
  if (values.length === 1) return middle
  return `${middle} (${format(Math.min(...values))} to ${format(Math.max(...values))})`
}

export function format(value: number): string {
  if (value === Infinity) return 'does not keep up'
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US')
  return String(Math.round(value * 100) / 100)
}

export function save(dir: string, run: Run): void {
  const { env, stem, places, finished, missing, pictures } = run
  mkdirSync(join(dir, 'plots', stem), { recursive: true })
  const scenarios = finished.map(({ scenario: { name, description, promise, maxRuns }, result, measurements }) => ({
    name,
    description,
    promise,
    maxRuns,
    ...result,
    measurements,
  }))
  writeFileSync(
    join(dir, `${stem}.json`),
    `${stringify({ ...env, places, isComplete: missing.length === 0, missing, scenarios }, 2)}\n`,
  )
  writeFileSync(join(dir, `${stem}.md`), markdown(run))
  for (const [name, svg] of pictures) writeFileSync(join(dir, pictureName(stem, name)), `${svg}\n`)
}

function pictureName(stem: string, scenario: string): string {
  return `plots/${stem}/${scenario}.svg`
}
