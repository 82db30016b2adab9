import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './ensure-installed.mjs'

export interface ServiceProcess {
  readonly url: string
  /** May do everything. */
  readonly key: string
  readonly pid: number
  readonly dataDir: string
  stop(): Promise<void>
}

/** The package as its users get it. */
const program = join(root, 'src/server/dist/cli/main.js')
const LIMIT_MS = 120_000

/** The built service as a process of its own, on a free port; its first key is what it prints. It ends with this process. */
export async function startServiceProcess(
  redisUrl: string,
  flags: readonly string[] = [],
  nodeFlags: readonly string[] = [],
): Promise<ServiceProcess> {
  const dataDir = mkdtempSync(join(tmpdir(), 'redelayed-service-'))
  const args = [...nodeFlags, program, '--port', '0', '--data-dir', dataDir, '--log-level', 'warn', ...flags]
  const child = spawn(process.execPath, args, {
    cwd: dataDir,
    env: { ...process.env, REDIS_URL: redisUrl, NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  let output = ''
  const { url, key } = await new Promise<{ url: string; key: string }>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`the service did not start:\n${output}`)), LIMIT_MS)
    const look = (bytes: Buffer): void => {
      if (output.length < 100_000) output += bytes.toString()
      const [found] = /http:\/\/127\.0\.0\.1:\d+/.exec(output) ?? []
      const [key] = /\brdk_[0-9a-f]{12}_[\w-]{43}\b/.exec(output) ?? []
      if (found === undefined || key === undefined) return
      clearTimeout(timer)
      resolve({ url: found, key })
    }
    child.stdout.on('data', look)
    child.stderr.on('data', look)
    child.once('close', (code) => reject(new Error(`the service ended with code ${code}:\n${output}`)))
  })
  return {
    ...{ url, key, dataDir },
    pid: child.pid ?? 0,
    async stop() {
      const ended = new Promise((resolve) => child.once('close', resolve))
      if (child.exitCode === null && child.kill('SIGTERM')) await ended
      process.off('exit', kill)
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
