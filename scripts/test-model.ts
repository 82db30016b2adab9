// `npm run test:model`: checks the model of the due-time protocol (test/model/*.pml) with SPIN: every order of events of the worlds
// in model-checks.ts; then every planted fault, each of which SPIN has to find.
//
//   npm run test:model -- --only "sweep"     the checks whose name contains the text
//   npm run test:model -- --trail            also the steps that lead to a planted fault
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './ensure-installed.mjs'
import { PLANTED, WORLDS } from './model-checks.js'

const MODEL = join(root, 'test/model')
/** A search that would go deeper is not complete, which is an error; the deepest so far has 90 steps. */
const DEPTH = 10_000
const MEMORY_MB = 4_000

/** What a violated assertion of the model means. */
const PROPERTIES = {
  'due[k]<=now': 'early',
  'listed[k]': 'twice',
  'stuck[k]': 'stuck for longer than a sweep',
  'late[k]': 'late',
  'scripts<=': 'too many scripts',
  'c[i].runs': 'a livelock',
  'c[i].up': 'a timer of a stopped client',
}

const { values } = parseArgs({
  options: { only: { type: 'string', default: '' }, trail: { type: 'boolean', default: false } },
})
const counts = { passed: 0, failed: 0 }
const started = performance.now()

requireTools()
check('names in the comments exist in src', staleReferences)
for (const { name, world } of WORLDS) check(`${name}: no error`, () => holds(world))
for (const { name, define, world } of PLANTED) {
  const found = WORLDS.find((one) => one.name === world)
  if (found === undefined) throw new Error(`${name}: there is no such world`)
  check(`finds: ${name}`, () => isFound([...found.world, `-DPLANT_${define}`]))
}
console.log(`${Math.round((performance.now() - started) / 1000)} s`)
if (counts.passed + counts.failed === 0) {
  console.log(`No check has "${values.only}" in its name.`)
  counts.failed = 1
}
console.log(`${counts.passed} passed, ${counts.failed} failed`)
process.exit(counts.failed > 0 ? 1 : 0)

function requireTools() {
  const missing = ['spin', 'gcc'].filter((tool) => spawnSync(tool, [tool === 'spin' ? '-V' : '--version']).error)
  if (missing.length === 0) return
  console.error(
    `npm run test:model needs ${missing.join(' and ')}: apt-get install spin gcc (Debian, Ubuntu), brew install spin gcc (macOS).`,
  )
  console.log('0 passed, 1 failed')
  process.exit(1)
}

function check(name: string, run: () => { problem?: string; figures?: string }) {
  if (!name.includes(values.only)) return
  const began = performance.now()
  const { problem, figures = '' } = attempt(run)
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  console.log(`${problem ? 'FAILED' : 'ok    '}  ${name}  (${[figures, `${seconds} s`].filter(Boolean).join(', ')})`)
  if (problem) console.log(problem.replace(/^/gm, '        '))
  counts[problem ? 'failed' : 'passed']++
}

function attempt(run: () => { problem?: string; figures?: string }) {
  try {
    return run()
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}

/** The model has no error, and SPIN has seen all of it. */
function holds(flags: readonly string[]) {
  return inFolder((dir) => {
    const result = verify(dir, flags, '-O1')
    const figures = `${result.states.toLocaleString('en-US')} states, depth ${result.depth}`
    if (result.errors > 0) return { problem: `${result.message}\n${steps(dir, flags)}`, figures }
    if (!result.complete) return { problem: `the search is not complete:\n${result.output}`, figures }
    return { figures }
  })
}

/** A planted fault shows as a violated assertion. */
function isFound(flags: readonly string[]) {
  return inFolder((dir) => {
    const result = verify(dir, flags, '-O0')
    if (result.errors === 0) return { problem: 'SPIN has not found it' }
    // "invalid end state" or a full channel would be an error of the model, not the one that was planted
    const property = Object.entries(PROPERTIES).find(([text]) => result.message.includes(text))?.[1]
    if (property === undefined) return { problem: `SPIN has found something else: ${result.message}` }
    if (values.trail) console.log(steps(dir, flags))
    return { figures: `${property}, after ${result.states.toLocaleString('en-US')} states` }
  })
}

function verify(dir: string, flags: readonly string[], optimize: string) {
  const made = run('spin', [...flags, '-a', 'due-time.pml'], dir)
  if (made.status !== 0 || /error|warning/i.test(made.output)) throw new Error(`spin: ${made.output}`)
  const compiled = run('gcc', [optimize, '-w', '-DSAFETY', `-DMEMLIM=${MEMORY_MB}`, '-o', 'pan', 'pan.c'], dir)
  if (compiled.status !== 0) throw new Error(`gcc: ${compiled.output}`)
  const { output } = run('./pan', [`-m${DEPTH}`], dir)
  const number = (pattern: RegExp) => Number(pattern.exec(output)?.[1] ?? NaN)
  const errors = number(/errors: (\d+)/)
  if (Number.isNaN(errors)) throw new Error(`pan ended without a result: ${output}`)
  return {
    errors,
    states: number(/(\d+) states, stored/),
    depth: number(/depth reached (\d+)/),
    message: /^pan:\d+: (.*)$/m.exec(output)?.[1] ?? '',
    complete: !/search not completed|max search depth too small|out of memory|reached -DMEMLIM/i.test(output),
    output,
  }
}

/** The trail of an error: which event happened in which tick. */
function steps(dir: string, flags: readonly string[]) {
  const source = readFileSync(join(dir, 'due-time.pml'), 'utf8').split('\n')
  const { output } = run('spin', [...flags, '-t', '-p', '-g', 'due-time.pml'], dir)
  const lines = []
  let step = ''
  let tick = '2'
  for (const line of output.split('\n')) {
    tick = /^\s+now = (\d+)/.exec(line)?.[1] ?? tick
    const at = /^\s*(\d+):\s+proc\s+\d+ \((\w+):\d+\) due-time.pml:(\d+)/.exec(line)
    if (at === null || at[1] === step || at[2] === 'init' || at[2] === '') continue
    step = at[1] ?? ''
    const process = Number(/proc\s+(\d+)/.exec(line)?.[1])
    const client = process <= 6 ? `client ${(process - 1) % 3}: ` : ''
    lines.push(`tick ${tick}  ${client}${source[Number(at[3]) - 1]?.trim()}`)
  }
  return lines.join('\n')
}

/** "@src file name" in a comment of the model: the file has to be there, and the name in it. */
function staleReferences() {
  const stale = []
  let count = 0
  for (const file of readdirSync(MODEL)) {
    for (const [, path = '', name = ''] of readFileSync(join(MODEL, file), 'utf8').matchAll(/@src (\S+) ([#\w]+)/g)) {
      count++
      const text = readIfThere(join(root, 'src', path))
      if (text === undefined) stale.push(`${file}: there is no src/${path}`)
      else if (!new RegExp(`(?<![\\w#])${name}(?!\\w)`).test(text)) stale.push(`${file}: no ${name} in src/${path}`)
    }
  }
  if (count < 20) stale.push(`only ${count} references were found`)
  return { problem: stale.join('\n'), figures: `${count} names` }
}

function readIfThere(path: string) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function run(command: string, args: string[], cwd: string) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 28 })
  return { status, output: `${error?.message ?? ''}${stdout}${stderr}` }
}

function inFolder<T>(use: (dir: string) => T): T {
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-model-'))
  try {
    cpSync(MODEL, dir, { recursive: true })
    return use(dir)
  } finally {
    rmSync(dir, { recursive: true })
  }
}
