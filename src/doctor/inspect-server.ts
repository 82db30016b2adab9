import type { Server } from './access.js'
import { inspectAcl, type AclState } from './inspect-acl.js'
import { Refusals } from './refusals.js'

/** The state of one server, without the parts that the server refused, which are listed in `refusals`. */
export interface ServerState {
  readonly address: string
  /** The fields of INFO. */
  readonly info: Readonly<Record<string, string>>
  readonly config: Readonly<Record<string, string>>
  /** By how many milliseconds the server's clock is ahead of this process's, and the uncertainty. */
  readonly clock: { readonly aheadMs: number; readonly uncertainMs: number } | undefined
  readonly acl: AclState | undefined
  readonly refusals: Refusals
}

const SETTINGS = ['maxmemory', 'maxmemory-policy', 'save', 'appendfsync'] as const
const CLOCK_SAMPLES = 3

export async function inspectServer(server: Server, isCluster: boolean): Promise<ServerState> {
  const refusals = new Refusals()
  const info = parseInfo(await refusals.unlessRefused('INFO', server.ask('INFO')))
  const config: Record<string, string> = {}
  for (const name of SETTINGS) {
    const reply = await refusals.unlessRefused(`CONFIG GET ${name}`, server.ask('CONFIG', 'GET', name))
    const value = Array.isArray(reply) ? (reply[1] as unknown) : undefined
    if (typeof value === 'string') config[name] = value
    else if (reply !== undefined) refusals.note(`CONFIG GET ${name}`, 'the server has no such setting')
  }
  const clock = await refusals.unlessRefused('TIME', measureClock(server))
  const acl = await inspectAcl(server, isCluster, refusals)
  return { address: server.address, info, config, clock, acl, refusals }
}

/** Uses the fastest of a few replies, which bounds the server's time best. */
async function measureClock(server: Server): Promise<ServerState['clock']> {
  let best = { aheadMs: 0, uncertainMs: Infinity }
  for (let sample = 0; sample < CLOCK_SAMPLES; sample++) {
    const sentAt = Date.now()
    const started = performance.now()
    const [seconds, micros] = (await server.ask('TIME')) as [string, string]
    const uncertainMs = (performance.now() - started) / 2
    const aheadMs = Number(seconds) * 1000 + Number(micros) / 1000 - (sentAt + uncertainMs)
    if (uncertainMs < best.uncertainMs) best = { aheadMs, uncertainMs }
  }
  return best
}

function parseInfo(reply: unknown): Record<string, string> {
  const lines = typeof reply === 'string' ? reply.matchAll(/^(\w+):(.*?)\r?$/gm) : []
  return Object.fromEntries(Array.from(lines, ([, name = '', value = '']) => [name, value]))
}
