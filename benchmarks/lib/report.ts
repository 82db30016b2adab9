import { mkdirSync, writeFileSync } from 'node:fs'
import { arch, cpus, loadavg, platform, totalmem } from 'node:os'
import { join } from 'node:path'
import { median, type Scenario, type ScenarioResult } from './scenario.js'

export interface Environment {
  readonly command: string
  readonly date: string
  readonly machine: string
  readonly loadBefore: string
  readonly versions: Readonly<Record<string, string>>
  readonly runs: number
}

export function environment(command: string, runs: number, versions: Record<string, string>): Environment {
  const [cpu] = cpus()
  return {
    command,
    date: new Date().toISOString(),
    machine: `${platform()} ${arch()}, ${cpus().length} x ${cpu?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    loadBefore: loadavg()
      .map((load) => load.toFixed(2))
      .join(' '),
    versions: { node: process.version, ...versions },
    runs,
  }
}

export type Finished = readonly [Scenario, ScenarioResult]

/** By scenario, an SVG. */
export type Pictures = ReadonlyMap<string, string>

export function markdown(env: Environment, finished: readonly Finished[], stem: string, pictures: Pictures): string {
  const lines = [
    '# Benchmark results',
    '',
    `Made by \`${env.command}\` on ${env.date}.`,
    `${env.machine}; load before the start ${env.loadBefore}.`,
    `${Object.entries(env.versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', ')}.`,
    `Medians of ${env.runs} runs, or as many as a scenario says; in brackets the lowest and the highest.`,
    ...(env.command.includes('--quick') ? ['A quick run: fewer messages than the descriptions say.'] : []),
  ]
  for (const [scenario, result] of finished) {
    lines.push('', `## ${scenario.name}`, '', scenario.description, '', ...roundsOfIt(scenario, env), ...table(result))
    if (pictures.has(scenario.name)) lines.push(`![${scenario.name}](${pictureName(stem, scenario.name)})`, '')
    for (const goal of result.goals ?? []) {
      lines.push(
        `- ${goal.reached ? 'reached' : '**NOT reached**'}: ${goal.what} ${format(goal.measured)} (goal ${goal.goal})`,
      )
    }
    for (const note of result.notes ?? []) lines.push(`- ${note}`)
  }
  return `${lines.join('\n')}\n`
}

function roundsOfIt({ maxRuns }: Scenario, { runs }: Environment): string[] {
  return maxRuns === undefined || maxRuns >= runs ? [] : [`Rounds: ${maxRuns}.`, '']
}

function table({ rows }: ScenarioResult): string[] {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.figures)))]
  const body = rows.map((row) => [row.subject, ...names.map((name) => cell(row.figures[name]))])
  return [
    `| | ${names.join(' | ')} |`,
    `|---|${names.map(() => '---:').join('|')}|`,
    ...body.map((cells) => `| ${cells.join(' | ')} |`),
    '',
  ]
}

function cell(values: readonly number[] | undefined): string {
  if (values === undefined || values.length === 0) return ''
  const middle = format(median(values))
  if (values.length === 1) return middle
  return `${middle} (${format(Math.min(...values))} to ${format(Math.max(...values))})`
}

export function format(value: number): string {
  if (value === Infinity) return 'does not keep up'
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US')
  return String(Math.round(value * 100) / 100)
}

export function save(
  dir: string,
  stem: string,
  env: Environment,
  finished: readonly Finished[],
  pictures: Pictures,
): void {
  mkdirSync(join(dir, 'plots', stem), { recursive: true })
  const scenarios = finished.map(([{ name, description, maxRuns }, result]) => ({
    name,
    description,
    maxRuns,
    ...result,
  }))
  writeFileSync(join(dir, `${stem}.json`), `${JSON.stringify({ ...env, scenarios }, null, 2)}\n`)
  writeFileSync(join(dir, `${stem}.md`), markdown(env, finished, stem, pictures))
  for (const [name, svg] of pictures) writeFileSync(join(dir, pictureName(stem, name)), `${svg}\n`)
}

function pictureName(stem: string, scenario: string): string {
  return `plots/${stem}/${scenario}.svg`
}
