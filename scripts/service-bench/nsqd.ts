import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '../ensure-installed.mjs'
import { freePort } from '../redis.js'

/** The last version that builds with what its dependencies are now. */
const MODULE = 'github.com/nsqio/nsq'
const VERSION = 'v1.2.0'
const START_MS = 20_000

export interface Nsqd {
  /** Of its HTTP API, which takes messages. */
  readonly url: string
  /** Of its own protocol, which hands them out. */
  readonly port: number
  stop(): void
}

/** The program on PATH, or built once by Go; `undefined` where there is neither. */
export function findNsqd(): string | undefined {
  if (spawnSync('nsqd', ['--version']).status === 0) return 'nsqd'
  const bin = join(root, '.cache/nsqd')
  const built = join(bin, 'nsqd')
  if (existsSync(built)) return built
  mkdirSync(bin, { recursive: true })
  const env = { ...process.env, GOFLAGS: '-mod=mod', CGO_ENABLED: '0' }
  writeFileSync(join(bin, 'go.mod'), `module bench\n\ngo 1.24\n\nrequire ${MODULE} ${VERSION}\n`)
  const args = ['build', '-o', built, `${MODULE}/apps/nsqd`]
  const { status } = spawnSync('go', args, { cwd: bin, env, stdio: ['ignore', 'ignore', 'inherit'] })
  return status === 0 ? built : undefined
}

/** Holds all messages in its memory. */
export async function startNsqd(program: string): Promise<Nsqd> {
  const [port, httpPort] = [await freePort(), await freePort()]
  const dir = mkdtempSync(join(tmpdir(), 'nsqd-'))
  const url = `http://127.0.0.1:${httpPort}`
  const flags = ['-tcp-address', `127.0.0.1:${port}`, '-http-address', `127.0.0.1:${httpPort}`, '-data-path', dir]
  const tuning = ['-mem-queue-size', '10000000', '-log-level', 'error']
  const child = spawn(program, [...flags, ...tuning], { stdio: 'ignore' })
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  for (const end = Date.now() + START_MS; !(await isThere(url));) {
    if (Date.now() > end || child.exitCode !== null) throw new Error('nsqd did not start')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return {
    url,
    port,
    stop() {
      process.off('exit', kill)
      kill()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function isThere(url: string): Promise<boolean> {
  return fetch(`${url}/ping`).then(
    ({ ok }) => ok,
    () => false,
  )
}

/** Takes the messages of a topic, so many at a time, and answers each as handled. */
export class NsqConsumer {
  readonly #socket: Socket
  readonly #onMessage: (body: string) => void
  #rest: Buffer = Buffer.alloc(0)

  private constructor(socket: Socket, onMessage: (body: string) => void) {
    this.#socket = socket
    this.#onMessage = onMessage
    socket.on('data', (bytes: Buffer) => this.#read(bytes))
    socket.on('error', () => undefined)
  }

  static async open(port: number, topic: string, atOnce: number, onMessage: (body: string) => void) {
    const socket = createConnection({ port, host: '127.0.0.1', noDelay: true })
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    const consumer = new NsqConsumer(socket, onMessage)
    socket.write(`  V2SUB ${topic} bench\nRDY ${atOnce}\n`)
    return consumer
  }

  close(): void {
    this.#socket.destroy()
  }

  /** Frames of a size, a kind and data: 0 is a response, 2 a message of a time, attempts, an id of 16 bytes and a body. */
  #read(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const finished: Buffer[] = []
    let at = 0
    while (this.#rest.length - at >= 8) {
      const end = at + 4 + this.#rest.readUInt32BE(at)
      if (this.#rest.length < end) break
      const kind = this.#rest.readUInt32BE(at + 4)
      const data = this.#rest.subarray(at + 8, end)
      if (kind === 2) {
        this.#onMessage(data.toString('utf8', 26))
        finished.push(Buffer.from('FIN '), data.subarray(10, 26), Buffer.from('\n'))
      } else if (data.toString() === '_heartbeat_') finished.push(Buffer.from('NOP\n'))
      else if (kind === 1) throw new Error(`nsqd: ${data.toString()}`)
      at = end
    }
    this.#rest = this.#rest.subarray(at)
    if (finished.length > 0) this.#socket.write(Buffer.concat(finished))
  }
}
