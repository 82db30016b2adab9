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

function programOf(args: readonly string[]): string[] {
  const isBuilt = process.env['REDELAYED_TEST_DIST'] !== undefined
  return [...(isBuilt ? ['dist/cli/main.js'] : ['--import', 'tsx', 'src/cli/main.ts']), ...args]
}

const environment = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  ...process.env,
  ...{ NODE_OPTIONS: undefined, REDIS_URL: redisUrl() },
  ...env,
})

/** The command line in a process of its own: what was built, where the tests run against that. */
export function spawnCli(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  return spawn(process.execPath, programOf(args), {
    cwd: root,
    env: environment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

/** The same in a terminal of so many columns and rows, made by `script`: what is written to its input is typed. */
export function spawnAtTerminal(args: readonly string[], { columns, rows }: { columns: number; rows: number }) {
  const quoted = [process.execPath, ...programOf(args)].map((each) => `'${each.replaceAll("'", "'\\''")}'`)
  const command = `stty cols ${columns} rows ${rows}; exec ${quoted.join(' ')}`
  return spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
    cwd: root,
    env: environment({}),
    stdio: ['pipe', 'pipe', 'pipe'],
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
