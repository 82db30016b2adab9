// Runs mocha in a process of its own and counts. Used by test.mjs and test-nodes.mjs.
// It guards against two runs that look green and are not: one that found no tests, and one that never ends because a
// test left something open.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './ensure-installed.mjs'

const ALL_TESTS = 'test/**/*.test.ts'
const EXIT_GRACE_MS = 15_000

/** @typedef {{ passed: number, failed: number, skipped: number }} Counts */

/**
 * @param {object} options
 * @param {string[]} [options.args] passed on to mocha; without a path among them all tests run
 * @param {string} [options.node] the node binary
 * @param {NodeJS.ProcessEnv} [options.env]
 * @param {boolean} [options.coverage] over src, into coverage/
 * @param {(text: string) => void} [options.onOutput] gets the output instead of the terminal
 * @returns {Promise<Counts>}
 */
export async function runMocha({ args = [], node = process.execPath, env = {}, coverage = false, onOutput }) {
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-mocha-'))
  const countsFile = join(dir, 'counts.json')
  const mocha = [join(root, 'node_modules/mocha/bin/mocha.js'), '--reporter', join(root, 'scripts/mocha-reporter.mjs')]
  const paths = args.some((arg) => /\.ts$|^(\.\/)?test\//.test(arg)) ? [] : [ALL_TESTS]
  const c8 = coverage ? [join(root, 'node_modules/c8/bin/c8.js'), ...coverageArgs, node] : []

  const child = spawn(node, [...c8, ...mocha, ...args, ...paths], {
    cwd: root,
    env: { ...process.env, ...env, REDELAYED_TEST_COUNTS: countsFile },
    stdio: onOutput ? ['ignore', 'pipe', 'pipe'] : 'inherit',
  })
  child.stdout?.on('data', (bytes) => onOutput?.(bytes.toString()))
  child.stderr?.on('data', (bytes) => onOutput?.(bytes.toString()))

  // Ctrl-C reaches mocha too: it stops, and this process goes on to clean up.
  const forward = () => child.kill('SIGINT')
  const ignore = () => {}
  process.on('SIGTERM', forward).on('SIGINT', ignore)
  let hung = false
  const watchdog = setInterval(() => {
    if (!existsSync(countsFile)) return
    clearInterval(watchdog)
    killer = setTimeout(() => {
      hung = true
      child.kill('SIGINT')
    }, EXIT_GRACE_MS)
  }, 250)
  /** @type {NodeJS.Timeout | undefined} */
  let killer

  const code = await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  clearInterval(watchdog)
  clearTimeout(killer)
  process.off('SIGTERM', forward).off('SIGINT', ignore)

  const counts = existsSync(countsFile)
    ? JSON.parse(readFileSync(countsFile, 'utf8'))
    : { passed: 0, failed: 0, skipped: 0 }
  rmSync(dir, { recursive: true })
  const report = onOutput ?? console.error
  const alsoFailed = (/** @type {string} */ why) => {
    report(`${why}\n`)
    counts.failed++
  }
  if (hung) alsoFailed('All tests had ended, but mocha had not after 15 s: a test has left something open.')
  else if (counts.passed + counts.failed + counts.skipped === 0) alsoFailed('No test ran.')
  else if (code !== 0 && counts.failed === 0) alsoFailed(`mocha ended with code ${code}.`)
  return counts
}

const coverageArgs = [
  ...['--src', 'src', '--all', '--include', 'src/**', '--exclude', 'src/store/scripts/generated.ts'],
  ...['--reporter', 'text-summary', '--reporter', 'html', '--reports-dir', 'coverage'],
]

/** @param {Counts} counts */
export function summary({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`
}
