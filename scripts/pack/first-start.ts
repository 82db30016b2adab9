// What a newcomer does: the packed command with nothing configured, and the three commands that it prints.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

/** Processor time of a process, in ticks of the system. */
interface Ticks {
  readonly own: number
  /** Of its children that have ended. */
  readonly ofChildren: number
}

export interface FirstStart {
  /** So many times the processor time of a `node` that does nothing; `undefined` where the system does not say. */
  readonly cost: number | undefined
  readonly ms: number
}

const LIMIT_MS = 120_000
const COMMAND_MS = 60_000
const BARE_STARTS = 10

/** @throws Error it does not start, or a command that it prints does not do what is said of it */
export async function firstStart(program: string, cwd: string, env: NodeJS.ProcessEnv): Promise<FirstStart> {
  const bare = costOfBareNode(env)
  const begun = performance.now()
  const child = spawn(program, ['--port', '0'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', resolve)
    child.once('error', () => resolve(null)) // it was not started
  })
  let output = ''
  try {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`it is not ready:\n${output}`)), LIMIT_MS)
      const look = (bytes: Buffer): void => {
        output += bytes.toString()
        if (!output.includes('/openapi.json')) return
        clearTimeout(timer)
        resolve()
      }
      child.stdout.on('data', look)
      child.stderr.on('data', look)
      child.once('error', reject)
      child.once('close', () => reject(new Error(`it has ended:\n${output}`)))
    })
    const ms = Math.round(performance.now() - begun)
    const ticks = ticksOf(child.pid ?? 0)?.own
    tryCommands(output)
    return { ms, cost: ticks === undefined || bare === undefined ? undefined : Math.round(ticks / bare) }
  } finally {
    child.kill('SIGTERM')
    await ended
  }
}

function tryCommands(output: string): void {
  const commands = output.split('\n').flatMap((line) => /^ {2}(curl .*)$/.exec(line)?.[1] ?? [])
  const run = (command = ''): Record<string, unknown> =>
    JSON.parse(execFileSync('sh', ['-c', command], { encoding: 'utf8', timeout: COMMAND_MS })) as Record<
      string,
      unknown
    >
  const [push, receive, acknowledge = ''] = commands
  const pushed = run(push)
  if (pushed['outcome'] !== 'added') throw new Error(`the first command: ${JSON.stringify(pushed)}`)
  const received = run(receive)
  const [message] = received['messages'] as { lease: string; body: unknown }[]
  if (JSON.stringify(message?.body) !== '{"order":7}') throw new Error(`the second one: ${JSON.stringify(received)}`)
  const answered = run(acknowledge.replace('<lease>', message?.lease ?? ''))
  if (JSON.stringify(answered) !== '{"results":["ok"]}') throw new Error(`the third one: ${JSON.stringify(answered)}`)
}

/** One start is too short for the ticks. */
function costOfBareNode(env: NodeJS.ProcessEnv): number | undefined {
  const before = ticksOf(process.pid)
  for (let n = 0; n < BARE_STARTS; n++) spawnSync(process.execPath, ['-e', '0'], { env })
  const after = ticksOf(process.pid)
  if (before === undefined || after === undefined || after.ofChildren === before.ofChildren) return undefined
  return (after.ofChildren - before.ofChildren) / BARE_STARTS
}

function ticksOf(pid: number): Ticks | undefined {
  const path = `/proc/${pid}/stat`
  if (!existsSync(path)) return undefined
  const text = readFileSync(path, 'utf8')
  // behind the name, which can have spaces; `man 5 proc` counts utime as the 14th field
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15)
  return { own: utime + stime, ofChildren: cutime + cstime }
}
