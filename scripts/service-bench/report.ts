import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** What is wanted of a figure. */
export type Goal = { readonly atLeast: number } | { readonly below: number }

/** One measured figure, of each run. */
export interface Row {
  readonly what: string
  readonly unit: string
  readonly values: readonly number[]
  readonly goal?: Goal
}

export interface Part {
  readonly name: string
  readonly rows: readonly Row[]
  /** Why there are no rows. */
  readonly problem?: string
  readonly loadBefore: string
  readonly seconds: number
  readonly at: string
}

export interface Report {
  readonly command: string
  readonly date: string
  readonly machine: string
  readonly versions: Readonly<Record<string, string>>
  readonly options: Readonly<Record<string, number>>
  readonly parts: readonly Part[]
}

export function readReport(path: string): Report | undefined {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Report) : undefined
}

export function writeReport(path: string, report: Report): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `${JSON.stringify(report, undefined, 2)}\n`)
}

/** With this part in the place of an older one of its name; the others stay where they are. */
export function withPart(parts: readonly Part[], part: Part, order: readonly string[]): Part[] {
  const all = [...parts.filter(({ name }) => name !== part.name), part]
  return all.sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name))
}

export function medianOf(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? NaN
}

export function isMet({ values, goal }: Row): boolean {
  if (goal === undefined) return true
  const median = medianOf(values)
  return 'atLeast' in goal ? median >= goal.atLeast : median < goal.below
}

export function lineOf(row: Row): string {
  const { what, unit, values, goal } = row
  const text = (value: number): string =>
    Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(1).replace(/\.0$/, '')
  const wanted = goal === undefined ? '' : 'atLeast' in goal ? `≥ ${text(goal.atLeast)}` : `< ${text(goal.below)}`
  const spread = `${text(Math.min(...values))} to ${text(Math.max(...values))}`
  return `| ${what} | ${text(medianOf(values))} ${unit} | ${spread} | ${wanted} | ${goal === undefined ? '' : isMet(row) ? 'yes' : '**no**'} |`
}

export function tableOf(parts: readonly Part[]): string {
  return [
    '| what | median | lowest to highest | goal | met |',
    '|---|---|---|---|---|',
    ...parts.flatMap(({ name, rows, problem }) =>
      problem === undefined ? rows.map(lineOf) : [`| ${name} | not measured: ${problem.replaceAll('|', '/')} | | | |`],
    ),
  ].join('\n')
}

/** Puts the text between two comments of a page. */
export function fillPage(path: string, name: string, text: string): void {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`]
  const page = readFileSync(path, 'utf8')
  const [before, after] = [page.indexOf(begin), page.indexOf(end)]
  if (before < 0 || after < before) throw new Error(`${path} has no place for ${name}`)
  writeFileSync(path, `${page.slice(0, before + begin.length)}\n\n${text}\n\n${page.slice(after)}`)
}
