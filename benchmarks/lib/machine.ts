/** How much of the machine others had, before and while something was measured. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { loadavg } from 'node:os'
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

/** The commit that is measured, with a word where the files differ from it; results do not count. */
export function commitOf(): string {
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const git = (...args: string[]): string => execFileSync('git', args, { cwd, encoding: 'utf8' }).trim()
  try {
    const changed = git('status', '--porcelain', '--', '.', ':!benchmarks/results')
    return git('rev-parse', '--short=12', 'HEAD') + (changed === '' ? '' : ', with changes')
  } catch {
    return 'unknown'
  }
}
