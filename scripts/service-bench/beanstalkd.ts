import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../redis.js'

export interface Beanstalkd {
  readonly port: number
  stop(): void
}

/** `undefined` where it is not installed. `isSynced`: each job is on disk before it is answered. */
export async function startBeanstalkd(isSynced: boolean): Promise<Beanstalkd | undefined> {
  const port = await freePort()
  const dir = mkdtempSync(join(tmpdir(), 'beanstalkd-'))
  const log = isSynced ? ['-b', dir, '-f', '0'] : []
  const child = spawn('beanstalkd', ['-l', '127.0.0.1', '-p', String(port), ...log], { stdio: 'ignore' })
  const kill = (): void => void child.kill()
  process.once('exit', kill)
  const isThere = await new Promise<boolean>((resolve) => {
    child.once('error', () => resolve(false))
    setTimeout(() => resolve(child.exitCode === null), 500)
  })
  if (!isThere) return undefined
  return {
    port,
    stop() {
      process.off('exit', kill)
      kill()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Its own protocol on one connection, with any number of commands under way. */
export class BeanstalkConnection {
  readonly #socket: Socket
  readonly #waiting: ((answer: string) => void)[] = []
  #rest = ''

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (bytes: Buffer) => this.#read(bytes))
  }

  static async open(port: number): Promise<BeanstalkConnection> {
    const socket = createConnection({ port, host: '127.0.0.1', noDelay: true })
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    return new BeanstalkConnection(socket)
  }

  put(data: string, delaySeconds: number): Promise<string> {
    return this.#ask(`put 0 ${delaySeconds} 60 ${Buffer.byteLength(data)}\r\n${data}\r\n`)
  }

  /** Waits for a job, and then has it removed. */
  async take(): Promise<string> {
    const [, id = '', data = ''] = /^RESERVED (\d+) \d+\r\n([^]*)\r\n$/.exec(await this.#ask('reserve\r\n')) ?? []
    await this.#ask(`delete ${id}\r\n`)
    return data
  }

  close(): void {
    this.#socket.destroy()
  }

  #ask(command: string): Promise<string> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      this.#socket.write(command)
    })
  }

  #read(bytes: Buffer): void {
    this.#rest += bytes.toString('latin1')
    let from = 0
    for (;;) {
      const end = this.#rest.indexOf('\r\n', from)
      if (end < 0) break
      const [, size] = /^RESERVED \d+ (\d+)$/.exec(this.#rest.slice(from, end)) ?? []
      const whole = end + 2 + (size === undefined ? 0 : Number(size) + 2)
      if (this.#rest.length < whole) break
      this.#waiting.shift()?.(this.#rest.slice(from, whole))
      from = whole
    }
    this.#rest = this.#rest.slice(from)
  }
}
