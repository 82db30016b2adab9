// `npm run benchmark:compare -- <commit> [<later commit>] [--rounds 5] [--only workers,offers]`: the figures that a change of the structure must not
// lower, of an earlier commit and of a later one or this checkout, in turns in one run. A commit is checked out, installed and built
// once, in .cache/compare. Every measurement has a Redis and a process of its own; the one that begins changes each round.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ensureBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { findServerBin, startServer } from './redis.js'

const FIGURES = ['lateness', 'offers', 'adding', 'takes', 'network', 'workers', 'reliable', 'transfers', 'load']
const LOWER_IS_BETTER = /lateness|bytes|load|CPU/

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '5' }, only: { type: 'string' } },
})
const [commit, later] = positionals
const rounds = Number(options.rounds)
const only = options.only?.split(',') ?? FIGURES
if (commit === undefined || positionals.length > 2 || !Number.isInteger(rounds) || rounds < 1) {
  console.error('usage: npm run benchmark:compare -- <commit> [<later commit>] [--rounds 5] [--only lateness,workers]')
  process.exit(2)
}
const unknown = only.filter((name) => !FIGURES.includes(name))
if (unknown.length > 0) {
  console.error(`No such figure: ${unknown.join(', ')}. There are ${FIGURES.join(', ')}.`)
  process.exit(2)
}
const bin = findServerBin()
if (bin === undefined) {
  console.error('A comparison needs redis-server or valkey-server on PATH.')
  process.exit(1)
}

const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
const short = (name: string): string => git('rev-parse', '--short', name)
const [before, after] = [short(commit), later === undefined ? git('describe', '--always', '--dirty') : short(later)]
ensureBuilt()
const sides = { [before]: checkOut(before), [after]: later === undefined ? root : checkOut(after) }
const values = new Map<string, Record<string, number[]>>()
const loads: string[] = []
for (let round = 0; round < rounds; round++) {
  loads.push((loadavg()[0] ?? 0).toFixed(1))
  for (const figure of only) {
    const turn = round % 2 === 0 ? Object.entries(sides) : Object.entries(sides).reverse()
    for (const [side, folder] of turn) {
      for (const [what, value] of Object.entries(await measure(folder, figure))) {
        const ofBoth = values.get(what) ?? { [before]: [], [after]: [] }
        ofBoth[side]?.push(value)
        values.set(what, ofBoth)
        console.error(`round ${round + 1} of ${rounds}, ${side}: ${what} ${shown(value)}`)
      }
    }
  }
}
const text = report()
console.log(text)
const stem = join(
  root,
  `benchmarks/results/${new Date().toISOString().slice(0, 10)}-compare-${[before, ...(later === undefined ? [] : [after]), ...(options.only?.split(',') ?? [])].join('-')}`,
)
writeFileSync(`${stem}.md`, text)
writeFileSync(
  `${stem}.json`,
  `${JSON.stringify({ before, after, rounds, loads, figures: Object.fromEntries(values) }, null, 2)}\n`,
)

/** Its files, packages and build in a folder that stays. */
function checkOut(name: string): string {
  const folder = join(root, '.cache/compare', name)
  if (existsSync(join(folder, 'dist'))) return folder
  mkdirSync(folder, { recursive: true })
  spawnSync('bash', ['-c', `git archive ${name} | tar -x -C ${JSON.stringify(folder)}`], {
    cwd: root,
    stdio: 'inherit',
  })
  ensureInstalled(folder)
  const built = spawnSync('npm', ['run', '--silent', 'build'], { cwd: folder, stdio: 'inherit' })
  if (built.status !== 0) throw new Error(`${name} could not be built in ${folder}`)
  return folder
}

async function measure(folder: string, figure: string): Promise<Record<string, number>> {
  const server = await startServer({ bin: bin ?? '', args: ['--save', '', '--appendonly', 'no'] })
  try {
    const child = join(root, 'scripts/compare-child.ts')
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      ['--import', 'tsx', child, folder, figure, server.url],
      {
        cwd: root,
        encoding: 'utf8',
        timeout: 300_000,
      },
    )
    if (status !== 0) throw new Error(`${figure} of ${folder} could not be measured: ${stderr}`)
    return JSON.parse(stdout) as Record<string, number>
  } finally {
    await server.stop()
  }
}

function report(): string {
  const rows = Array.from(values, ([what, ofBoth]) => {
    const [old = [], now = []] = [ofBoth[before], ofBoth[after]]
    const ratios = old.map((value, round) => {
      const quotient = (now[round] ?? NaN) / value
      return LOWER_IS_BETTER.test(what) ? 1 / quotient : quotient
    })
    const spread = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`
    return `| ${what} | ${shown(median(old))} | ${shown(median(now))} | **${median(ratios).toFixed(2)}** | ${spread} |`
  })
  return [
    `# ${after} beside ${before}`,
    '',
    `${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, ${cpus().length} × ${(cpus()[0]?.model ?? '').trim()}, node ${process.version}. ` +
      `\`npm run benchmark:compare -- ${process.argv.slice(2).join(' ')}\`; load before each round: ${loads.join(', ')}.`,
    '',
    `Medians of ${rounds} rounds. A ratio is of one round: how many times as good this commit is as the earlier one, so that 1 is the same.`,
    '',
    '| what | before | now | ratio | lowest to highest |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

function median(list: readonly number[]): number {
  return [...list].sort((a, b) => a - b)[list.length >> 1] ?? NaN
}

function shown(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}
