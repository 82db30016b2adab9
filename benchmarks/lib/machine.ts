/** The machine and the code that are measured, and how much of the machine others had before and meanwhile. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { arch, cpus, hostname, loadavg, platform, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'

interface Ticks {
  readonly all: number
  readonly steal: number
}

/** Of all CPUs since the start, in ticks; zeros where the system does not say. */
function ticks(): Ticks {
  try {
    const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
    const [, ...fields] = line.trim().split(/\s+/)
    const numbers = fields.slice(0, 8).map(Number) // what follows is part of user and nice
    return { all: numbers.reduce((a, b) => a + b, 0), steal: numbers[7] ?? 0 }
  } catch {
    return { all: 0, steal: 0 }
  }
}

export interface Conditions {
  /** The mean number of running processes in the minute before. */
  readonly load: number
  /** The share of the time that the hypervisor gave to others, in percent. */
  readonly stealPercent: number
}

/** Begins to watch; the returned function gives what it was like. */
export function watchMachine(): () => Conditions {
  const before = ticks()
  const [load = NaN] = loadavg()
  return () => {
    const after = ticks()
    const all = after.all - before.all
    return { load, stealPercent: all > 0 ? (100 * (after.steal - before.steal)) / all : 0 }
  }
}

export interface Place {
  /** Another one after each start of a machine. */
  readonly boot: string
  readonly machine: string
  readonly since: string
}

export function thisPlace(): Place {
  return { boot: bootOf(), machine: machineName(), since: new Date().toISOString() }
}

export function machineName(): string {
  const [cpu] = cpus()
  return `${platform()} ${arch()}, ${cpus().length} x ${cpu?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB`
}

function bootOf(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return hostname()
  }
}

/** What a figure depends on: neither pages nor results, nor the service. */
const MEASURED = [
  'src',
  'benchmarks',
  'scripts/redis.ts',
  'tsconfig.json',
  'package-lock.json',
  ':!src/server',
  ':!benchmarks/results',
  ':!*.md',
]

/** What is measured: its commit, a word where files differ from it, and a hash by which a later commit that only adds pages is known to be the same. */
export function codeOf(): { readonly commit: string; readonly code: string } {
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const git = (...args: string[]): string => execFileSync('git', args, { cwd, encoding: 'utf8' }).trim()
  try {
    const differs = git('status', '--porcelain', '--', ...MEASURED) !== ''
    const files = git('ls-files', '--stage', '--', ...MEASURED)
    return {
      commit: git('rev-parse', '--short=12', 'HEAD') + (differs ? ', with changes' : ''),
      code: createHash('sha256').update(files).digest('hex').slice(0, 12) + (differs ? ', with changes' : ''),
    }
  } catch {
    return { commit: 'unknown', code: 'unknown' }
  }
}
