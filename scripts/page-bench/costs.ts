// What processes and calls have cost.
import type { Redis } from 'ioredis'
import { readFileSync } from 'node:fs'
import * as ofConsole from '../../src/server/console/scripts/generated.js'
import * as ofDelivery from '../../src/server/delivery/scripts/generated.js'
import * as ofRecords from '../../src/server/records/scripts/generated.js'
import * as ofTopics from '../../src/server/topics/scripts/generated.js'
import * as ofStore from '../../src/store/scripts/generated.js'

/** The longest call that Redis has carried out, by its own clock: what waited for a processor in between is in it. */
export interface LongestCall {
  readonly ms: number
  /** The script, else the command; nothing where no call was long enough to be noted. */
  readonly what: string
}

interface Script {
  readonly name: string
  readonly sha1: string
}

const scripts = [ofConsole, ofDelivery, ofRecords, ofTopics, ofStore].flatMap((module) => Object.values<Script>(module))
const NAMES = new Map(scripts.map(({ name, sha1 }) => [sha1, name]))
/** Calls that take less are not noted. */
export const NOTED_MS = 0.5
const MOST_NOTED = 100_000

export async function beginNoting(redis: Redis): Promise<void> {
  await redis.config('SET', 'slowlog-log-slower-than', String(NOTED_MS * 1_000))
  await redis.config('SET', 'slowlog-max-len', String(MOST_NOTED))
  await redis.slowlog('RESET')
}

/** Of those since the last call of this. */
export async function longestCall(redis: Redis): Promise<LongestCall> {
  const entries = (await redis.slowlog('GET', MOST_NOTED)) as [number, number, number, string[]][]
  await redis.slowlog('RESET')
  const others = entries.filter(([, , , [command = '']]) => command.toUpperCase() !== 'SLOWLOG') // but for this question itself
  const [longest] = others.sort((a, b) => b[2] - a[2])
  if (longest === undefined) return { ms: 0, what: '' }
  const [, , micros, [command = '', first = '']] = longest
  return { ms: micros / 1_000, what: NAMES.get(first) ?? command.toUpperCase() }
}

/** Seconds of CPU that a process has used. */
export function cpuSeconds(pid: number): number {
  const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
  const fields = rest.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100 // utime and stime, in ticks
}

/** MiB of memory that a process has now, and has had at most. */
export function memoryMb(pid: number): { readonly now: number; readonly most: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const of = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? NaN) / 1_024
  return { now: of('VmRSS'), most: of('VmHWM') }
}
