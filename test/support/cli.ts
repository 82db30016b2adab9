import { cac } from 'cac'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { runProgram } from '../../src/cli/program.js'
import { redisUrl } from './redis.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Result {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** The command line in a process of its own: what was built, where the tests run against that. */
export function spawnCli(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const isBuilt = process.env['REDELAYED_TEST_DIST'] !== undefined
  const program = isBuilt ? ['dist/cli/main.js'] : ['--import', 'tsx', 'src/cli/main.ts']
  return spawn(process.execPath, [...program, ...args], {
    cwd: root,
    env: { ...process.env, NODE_OPTIONS: undefined, REDIS_URL: redisUrl(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

/** The same until it ends. */
export async function cli(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Result> {
  const child = spawnCli(args, env)
  let [out, err] = ['', '']
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => (err += bytes.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out, err }
}

/** The same without a process of its own, where there are many to try. */
export async function inProcess(args: readonly string[]): Promise<Result> {
  const { log, info, error } = console
  let [out, err] = ['', '']
  console.log = console.info = (line: string) => void (out += `${line}\n`)
  console.error = (line: string) => void (err += `${line}\n`)
  try {
    return { code: await runProgram(cac('redelayed'), args), out, err }
  } finally {
    Object.assign(console, { log, info, error })
  }
}
