import { spawn } from 'node:child_process'

export interface Shell {
  readonly cwd: string
  readonly env?: NodeJS.ProcessEnv
  readonly limitMs: number
  /** Ctrl-C, once it has printed this: for commands that do not end by themselves. */
  readonly until?: RegExp
}

/** Runs commands of `sh` in a process group of their own; what they print on both outputs, in its order. What they started ends with the limit. */
export function runShell(
  commands: string,
  { cwd, env = process.env, limitMs, until }: Shell,
): Promise<{ output: string; code: number | null; signal: NodeJS.Signals | null }> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', `exec 2>&1\n${commands}`], {
      ...{ cwd, env },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    })
    const signal = (name: NodeJS.Signals): void => {
      try {
        process.kill(-(child.pid ?? 0), name)
      } catch {
        // all of the group have ended
      }
    }
    const timer = setTimeout(() => {
      signal('SIGKILL')
      child.stdout.destroy() // a process that left the group can still hold it open
    }, limitMs)
    let output = ''
    let isInterrupted = false
    child.stdout.on('data', (bytes: Buffer) => {
      output += bytes.toString()
      if (isInterrupted || until?.test(output) !== true) return
      isInterrupted = true
      signal('SIGINT')
    })
    child.once('error', reject)
    child.once('close', (code, ended) => {
      clearTimeout(timer)
      resolve({ output, code, signal: ended })
    })
  })
}
