/** What a server did between two moments, from its own counters. */
import type { Redis } from 'ioredis'

interface Counters {
  readonly commands: number
  readonly cpuSeconds: number
  readonly bytes: number
  readonly scriptSeconds: number
  readonly at: number
}

export interface ServerWork {
  readonly commands: number
  readonly cpuMs: number
  readonly bytes: number
  /** Of the time that passed, the share in which the server ran scripts. */
  readonly scriptShare: number
  readonly seconds: number
}

/** Begins to count; the returned function gives the work since then. */
export async function countWork(raw: Redis): Promise<() => Promise<ServerWork>> {
  const before = await read(raw)
  return async () => {
    const after = await read(raw)
    const seconds = (after.at - before.at) / 1000
    return {
      commands: after.commands - before.commands - OWN_COMMANDS,
      cpuMs: (after.cpuSeconds - before.cpuSeconds) * 1000,
      bytes: after.bytes - before.bytes,
      scriptShare: (after.scriptSeconds - before.scriptSeconds) / seconds,
      seconds,
    }
  }
}

/** Those of `read` itself. */
const OWN_COMMANDS = 1

async function read(raw: Redis): Promise<Counters> {
  const info = await raw.info('everything')
  const number = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? NaN)
  const scripts = [...info.matchAll(/^cmdstat_(?:evalsha|eval|fcall):calls=\d+,usec=(\d+)/gm)]
  return {
    commands: number('total_commands_processed'),
    cpuSeconds: number('used_cpu_user') + number('used_cpu_sys'),
    bytes: number('total_net_input_bytes') + number('total_net_output_bytes'),
    scriptSeconds: scripts.reduce((sum, [, micros]) => sum + Number(micros), 0) / 1e6,
    at: performance.now(),
  }
}

/** The longest script in the slow log, in milliseconds; 0 when none took a millisecond. */
export async function longestScript(raw: Redis): Promise<number> {
  const log = (await raw.slowlog('GET', 1_000)) as [number, number, number, string[]][]
  const scripts = log.filter(([, , , [command]]) => /^(evalsha?|fcall)$/i.test(command ?? ''))
  return Math.max(0, ...scripts.map(([, , micros]) => micros / 1000))
}

/** Counts what clients send, without the commands inside scripts, until the function it gives is called. */
export async function countSent(raw: Redis): Promise<() => Promise<number>> {
  const [, own] = / addr=(\S+)/.exec(await raw.client('INFO')) ?? []
  const monitor = await raw.monitor()
  let sent = 0
  monitor.on('monitor', (_time: string, _args: string[], source: string) => {
    if (source !== 'lua' && source !== own) sent++
  })
  return async () => {
    await raw.ping() // what came before it has been counted
    monitor.disconnect()
    return sent
  }
}
