import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { eventually } from '../../support/events.js'
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.js'

/** A busy machine takes long to start a process. */
const START_MS = 120_000
const MOST_OUTPUT = 20_000

/** One instance of the service, as a process of its own on a port that stays, with a line to Redis of its own. */
export class Instance {
  readonly name: string
  readonly port: number
  /** Its line to Redis. */
  readonly line: TcpProxy
  readonly #program: string
  readonly #args: readonly string[]
  #child: ChildProcess | undefined
  #output = ''
  readonly #kill = (): void => void this.#child?.kill('SIGKILL')

  private constructor(name: string, port: number, line: TcpProxy, program: string, args: readonly string[]) {
    this.name = name
    this.port = port
    this.line = line
    this.#program = program
    this.#args = args
    process.once('exit', this.#kill)
  }

  static async make(
    name: string,
    { port, redisPort, program, args }: { port: number; redisPort: number; program: string; args: readonly string[] },
  ): Promise<Instance> {
    const line = await startProxy({ targetPort: redisPort })
    return new Instance(name, port, line, program, [
      ...['--port', String(port), '--redis', `redis://127.0.0.1:${line.port}`],
      ...args,
    ])
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** The last output of the instance. */
  get output(): string {
    return this.#output
  }

  forgetOutput(): void {
    this.#output = ''
  }

  get isAlive(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Resolves when the instance takes requests. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, [this.#program, ...this.#args], {
      env: { ...process.env, NODE_ENV: 'production' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const keep = (bytes: Buffer): void => void (this.#output = (this.#output + bytes.toString()).slice(-MOST_OUTPUT))
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    this.#child = child
    await eventually(
      async () => {
        if (child.exitCode !== null) throw new Error(`${this.name} ended: ${this.#output}`)
        const { status } = await fetch(`${this.url}/readyz`, {
          headers: { connection: 'close' },
          signal: AbortSignal.timeout(10_000),
        })
        if (status !== 200) throw new Error(`${this.name} is not ready: ${status}`)
      },
      START_MS,
      50,
    )
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal)
  }

  /** Resolves with the exit code when the instance has ended. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    const child = this.#child
    if (child === undefined || !this.isAlive) return child?.exitCode ?? null
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
    return child.exitCode
  }

  async stop(): Promise<void> {
    process.off('exit', this.#kill)
    this.signal('SIGCONT')
    await this.end('SIGKILL')
    await this.line.stop()
  }
}
