/** What the pages with the findings of fault benches have in common. */
import { spawnSync } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'

const LOAD_EVERY_MS = 10_000
/** Of a fault, in words; the table counts all. */
const MOST_PROBLEMS = 10

/** The origin of a page: commit and load since this was made, at the start of a run. */
export class Origin {
  /** At the start: what is committed meanwhile was not tested. */
  readonly #commit = output('git', ['describe', '--always', '--dirty', '--abbrev=10']) ?? 'that is not known'
  readonly #started = performance.now()
  readonly #loads = [loadavg()[0] ?? 0]
  readonly #command: string

  constructor(command: string) {
    this.#command = command
    setInterval(() => this.#loads.push(loadavg()[0] ?? 0), LOAD_EVERY_MS).unref()
  }

  /** @param databases their versions */
  sentence(...databases: string[]): string {
    const minutes = ((performance.now() - this.#started) / 60_000).toFixed(1)
    const redis = `Redis ${/v=(\S+)/.exec(output('redis-server', ['--version']) ?? '')?.[1] ?? 'of an unknown version'}`
    const machine = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`
    return (
      `Made by \`${this.#command}\` at commit ${this.#commit} in ${minutes} minutes. ` +
      `Node ${process.versions.node}, ${[redis, ...databases].join(', ')}, ${machine}, ${this.#load()}.`
    )
  }

  #load(): string {
    const sorted = this.#loads.toSorted((a, b) => a - b).map((load) => load.toFixed(1))
    return `load average ${sorted[0]} to ${sorted.at(-1)} (median ${sorted[Math.floor(sorted.length / 2)]})`
  }
}

/** The command for the same run: without a path of a report, and without what is not set. */
export function commandOf(
  script: string,
  seed: string | number,
  options: Readonly<Record<string, string | boolean | readonly string[] | undefined>>,
): string {
  const all = Object.entries(options).flatMap(([name, value]) => [value].flat().map((one) => [name, one] as const))
  const words = all.flatMap(([name, value]) => {
    if (value === undefined || value === false || value === '') return []
    if (value === true) return [`--${name}`]
    return [`--${name} ${/^[\w.-]+$/.test(value) ? value : JSON.stringify(value)}`]
  })
  return ['npm run', script, '--', `--seed ${seed}`, ...words].join(' ')
}

/** A table whose first column is text. */
export function table(heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
  return [row(heads), row(heads.map((_, at) => (at === 0 ? '---' : '---:'))), ...rows.map(row)]
}

/** Rows for each name, for each kind where there are several, and for all. */
export function totals<T extends { readonly name: string; readonly kind: string }>(
  all: readonly T[],
  cellsOf: (some: readonly T[]) => readonly number[],
): (string | number)[][] {
  const names = [...new Set(all.map(({ name }) => name))].sort()
  const kinds = [...new Set(all.map(({ kind }) => kind))]
  const only = (which: (each: T) => boolean): (string | number)[] => {
    const some = all.filter(which)
    return [some.length, ...cellsOf(some)]
  }
  return [
    ...names.map((name) => [name, ...only((each) => each.name === name)]),
    ...(kinds.length > 1 ? kinds : []).map((kind) => [`**${kind}**`, ...only((each) => each.kind === kind)]),
    ['**all**', ...only(() => true)],
  ]
}

/** The section with everything that was wrong. */
export function wrongSection(
  lines: readonly { readonly what: string; readonly problems: readonly string[] }[],
): string[] {
  const failed = lines.flatMap(({ what, problems }) => {
    const more = problems.length - MOST_PROBLEMS
    const shown = [...problems.slice(0, MOST_PROBLEMS), ...(more > 0 ? [`and ${more} more`] : [])]
    return shown.map((problem) => `- ${what}: ${problem.replaceAll('\n', ' ')}`)
  })
  return ['', '## What was wrong', '', ...(failed.length === 0 ? ['Nothing.'] : failed)]
}

/** The section with the planted faults; empty without any. */
export function plantSection(
  plants: readonly { readonly what: string; readonly on: string; readonly rounds: number; readonly found: string }[],
): string[] {
  if (plants.length === 0) return []
  const rows = plants.map(({ what, on, rounds, found }) => [what, on, rounds, found === '' ? '**not found**' : found])
  const heads = ['planted', 'on', 'found in round', 'as']
  return ['', '## Planted faults', '', row(heads), row(['---', '---', '---:', '---']), ...rows.map(row)]
}

function row(cells: readonly (string | number)[]): string {
  return `| ${cells.map((cell) => (typeof cell === 'number' ? cell.toLocaleString('en') : cell)).join(' | ')} |`
}

function output(command: string, args: readonly string[]): string | undefined {
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const { status, stdout } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}
