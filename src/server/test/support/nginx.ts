import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { eventually } from './eventually.js'

const CONFIG = fileURLToPath(new URL('../../deploy/nginx.conf', import.meta.url))
// Debian has it where users have no path to
const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin:/usr/local/sbin` }

/** Whether nginx is installed. */
export const hasNginx = spawnSync('nginx', ['-v'], { env }).status === 0

/**
 * The nginx.conf of compose.yaml for ports of this machine: only addresses and the files of nginx itself are replaced. `resolve` is left
 * out: versions before 1.27.3 do not know it, and there is no name to resolve.
 */
export function renderedConfig(dir: string, port: number, instances: readonly [number, number]): string {
  let text = readFileSync(CONFIG, 'utf8')
  const replace = (what: string, by: string): void => {
    if (!text.includes(what)) throw new Error(`nginx.conf has no ${what}`)
    text = text.replace(what, by)
  }
  replace('pid /tmp/nginx.pid;', `pid ${dir}/nginx.pid; error_log ${dir}/error.log;`)
  replace('worker_processes auto;', 'worker_processes 1;')
  replace('listen 8080;', `listen 127.0.0.1:${port};`)
  replace('server redelayed-1:8080 resolve', `server 127.0.0.1:${instances[0]}`)
  replace('server redelayed-2:8080 resolve', `server 127.0.0.1:${instances[1]}`)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${dir}/${kind};`)
  replace('http {', `http {\n  ${paths.join(' ')}`)
  return text
}

/** What `nginx -t` says about it; undefined when it is fine. */
export function faultsOf(config: string): string | undefined {
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-nginx-'))
  const path = join(dir, 'nginx.conf')
  writeFileSync(path, config.replaceAll('DIR', dir))
  const { status, stderr } = spawnSync('nginx', ['-t', '-p', dir, '-c', path], { env, encoding: 'utf8' })
  rmSync(dir, { recursive: true, force: true })
  return status === 0 ? undefined : stderr
}

/** An nginx before two instances. */
export class Nginx {
  readonly url: string
  readonly #child: ChildProcess
  readonly #dir: string

  private constructor(url: string, child: ChildProcess, dir: string) {
    this.url = url
    this.#child = child
    this.#dir = dir
  }

  static async start(instances: readonly [number, number]): Promise<Nginx> {
    const dir = mkdtempSync(join(tmpdir(), 'redelayed-nginx-'))
    mkdirSync(join(dir, 'logs'), { recursive: true })
    const port = await freePort()
    const path = join(dir, 'nginx.conf')
    writeFileSync(path, renderedConfig(dir, port, instances))
    const child = spawn('nginx', ['-p', dir, '-c', path, '-g', 'daemon off;'], { env, stdio: 'ignore' })
    const nginx = new Nginx(`http://127.0.0.1:${port}`, child, dir)
    await eventually(() => reachable(port))
    return nginx
  }

  /** Its log. */
  get log(): string {
    return readFileSync(join(this.#dir, 'error.log'), 'utf8')
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('close', resolve))
    if (this.#child.exitCode === null && this.#child.kill('SIGTERM')) await ended
    rmSync(this.#dir, { recursive: true, force: true })
  }
}

/** A port below those that connections get, so that it is free again when a server comes back. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
    })
    if (isFree) return port
  }
}

function reachable(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.destroy()
      resolve()
    })
  })
}
