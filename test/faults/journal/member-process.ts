import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Answers, Job, Order, Said } from './protocol.js'

interface Waiting {
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: Error) => void
}

/** The process ended before it answered: the outcome is unknown. */
export class GoneError extends Error {}

/** The bench's end of a process, which can be killed and started again as what it was. */
export class MemberProcess {
  readonly name: string
  readonly #script: string
  readonly #onSaid: (said: Said, from: MemberProcess) => void
  readonly #waiting = new Map<number, Waiting>()
  #child: ChildProcess | undefined
  #calls = 0
  /** Whether the process runs and can be asked. */
  isReady = false

  constructor(name: string, script: string, onSaid: (said: Said, from: MemberProcess) => void) {
    this.name = name
    this.#script = script
    this.#onSaid = onSaid
  }

  get isAlive(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  async start(job: Job, shiftMs = 0): Promise<void> {
    const child = fork(this.#script, { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#child = child
    child.on('message', (message: Said | { call: number; answer?: unknown; error?: string }) => {
      if ('said' in message) this.#onSaid(message, this)
      else this.#settle(message)
    })
    child.once('exit', (code, signal) => {
      if (child !== this.#child) return
      this.isReady = false
      const gone = new GoneError(`${this.name} ended with ${signal ?? code}`)
      for (const { reject } of this.#waiting.values()) reject(gone)
      this.#waiting.clear()
    })
    if (shiftMs !== 0) await this.order({ kind: 'date', shiftMs })
    await this.order({ kind: 'start', job })
    this.isReady = true
  }

  /** @throws GoneError the process ended first */
  order<K extends Order['kind']>(order: Extract<Order, { kind: K }>): Promise<Answers[K]> {
    const child = this.#child
    const call = ++this.#calls
    return new Promise((resolve, reject) => {
      if (child === undefined || !this.isAlive) return reject(new GoneError(`${this.name} is not there`))
      this.#waiting.set(call, { resolve: resolve as Waiting['resolve'], reject })
      child.send({ call, order }, (error) => error && reject(new GoneError(String(error))))
    })
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal)
  }

  async kill(): Promise<void> {
    this.isReady = false
    this.#child?.kill('SIGKILL')
    await this.ended()
  }

  async ended(): Promise<void> {
    if (this.#child !== undefined && this.isAlive) await once(this.#child, 'exit')
  }

  /** Ends the calls of the process, and the process. */
  async stop(withinMs: number): Promise<void> {
    if (!this.isAlive) return
    this.isReady = false
    const timer = setTimeout(() => this.#child?.kill('SIGKILL'), withinMs)
    await this.order({ kind: 'stop' }).catch(() => undefined)
    if (this.isAlive && this.#child?.connected === true) this.#child.disconnect()
    await this.ended()
    clearTimeout(timer)
  }

  #settle({ call, answer, error }: { call: number; answer?: unknown; error?: string }): void {
    const waiting = this.#waiting.get(call)
    this.#waiting.delete(call)
    if (error === undefined) waiting?.resolve(answer)
    else waiting?.reject(new Error(`${this.name}: ${error}`))
  }
}
