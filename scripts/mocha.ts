// Runs mocha in a process of its own and counts. It guards against a run that never ends because a test left something open.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './ensure-installed.mjs'

const EXIT_GRACE_MS = 15_000

/** `failures` has the titles; `seconds` what each file took */
export interface Counts {
  passed: number
  failed: number
  skipped: number
  failures: string[]
  seconds: Record<string, number>
}

export async function runMocha({
  args,
  node = process.execPath,
  env = {},
  onOutput,
}: {
  /** options and files for mocha */
  args: string[]
  /** the node binary */
  node?: string
  env?: NodeJS.ProcessEnv
  /** gets the output instead of the terminal */
  onOutput?: (text: string) => void
}): Promise<Counts> {
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-mocha-'))
  const countsFile = join(dir, 'counts.json')
  const mocha = [join(root, 'node_modules/mocha/bin/mocha.js'), '--reporter', join(root, 'scripts/mocha-reporter.ts')]

  const child = spawn(node, [...mocha, ...args], {
    cwd: root,
    env: { ...process.env, ...env, REDELAYED_TEST_COUNTS: countsFile },
    stdio: onOutput ? ['ignore', 'pipe', 'pipe'] : 'inherit',
  })
  child.stdout?.on('data', (bytes: Buffer) => onOutput?.(bytes.toString()))
  child.stderr?.on('data', (bytes: Buffer) => onOutput?.(bytes.toString()))

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
  let killer: NodeJS.Timeout | undefined

  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  clearInterval(watchdog)
  clearTimeout(killer)
  process.off('SIGTERM', forward).off('SIGINT', ignore)

  const counts: Counts = existsSync(countsFile)
    ? (JSON.parse(readFileSync(countsFile, 'utf8')) as Counts)
    : { passed: 0, failed: 0, skipped: 0, failures: [], seconds: {} }
  rmSync(dir, { recursive: true })
  const report = onOutput ?? console.error
  const alsoFailed = (why: string) => {
    report(`${why}\n`)
    counts.failed++
    counts.failures.push(`${why} (${args.join(' ')})`)
  }
  if (hung) alsoFailed('All tests had ended, but mocha had not after 15 s: a test has left something open.')
  else if (code !== 0 && counts.failed === 0) alsoFailed(`mocha ended with code ${String(code)}.`)
  return counts
}

export function summary({ passed, failed, skipped }: { passed: number; failed: number; skipped: number }) {
  return `${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`
}
