import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Answer, AnyJob, Job, Order, WorkerReport } from './job.js'

/** The distance of the numbers after a kill from the earlier ones, the last of which is unknown. */
const NUMBERS_PER_LIFE = 100_000

/** The bench's end of a worker. After a kill it can be started again as what it was. */
export class WorkerProcess<J extends AnyJob = Job> {
  readonly #script: string
  readonly #waiting = new Map<number, { resolve: (answer: Answer) => void; reject: (error: Error) => void }>()
  #child: ChildProcess
  #ids = 0
  #mayEnd = false
  #job: J | undefined
  #lives = 0
  /** The memory that the process holds without a job. */
  idle: Pick<WorkerReport, 'resources' | 'heapBytes'> = { resources: Infinity, heapBytes: Infinity }
  prepare: Order<J> | undefined
  /** Called when the process ends by itself. */
  onUnexpectedEnd: (why: string) => void = () => {}

  /** Starts the program `script`, which serves orders. */
  constructor(script: URL) {
    this.#script = fileURLToPath(script)
    this.#child = this.#spawn()
  }

  get name(): string {
    return this.#job?.name ?? 'idle'
  }

  async start(job: J): Promise<void> {
    this.#job = job
    this.#lives = 0
    await this.#begin(job)
  }

  async stop(): Promise<void> {
    await this.order({ kind: 'stop' })
    this.#job = undefined
  }

  /** Resolves when the order is carried out. */
  async order(order: Order<J>): Promise<WorkerReport | undefined> {
    const id = ++this.#ids
    const answer = await new Promise<Answer>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#child.send({ id, order }, (error) => error && reject(error))
    })
    if (answer.error !== undefined) throw new Error(`${this.name}: ${answer.error}`)
    return answer.report
  }

  async report(): Promise<WorkerReport> {
    return (await this.order({ kind: 'report' })) as WorkerReport
  }

  /** The process writes into this file from now on, also after a kill. */
  async turnTo(ledger: string): Promise<void> {
    if (this.#job === undefined) return
    this.#job = { ...this.#job, ledger }
    await this.order({ kind: 'ledger', path: ledger })
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal)
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    this.#mayEnd = true
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }

  /** After a kill: the same in a new process, but for `change`. */
  async revive(producing: boolean, change: Partial<J> = {}): Promise<void> {
    if (this.#job === undefined) throw new Error('it has no job')
    this.#job = { ...this.#job, ...change }
    this.#child = this.#spawn()
    const { load, role } = this.#job
    await this.#begin({ ...this.#job, load: { ...load, from: load.from + ++this.#lives * NUMBERS_PER_LIFE } })
    if (producing && role === 'producer') await this.order({ kind: 'produce', on: true })
  }

  /** Ends the process, which has no job. */
  async end(): Promise<void> {
    this.#mayEnd = true
    const ended = once(this.#child, 'exit')
    this.#child.disconnect()
    await ended
  }

  async #begin(job: J): Promise<void> {
    if (this.prepare !== undefined) await this.order(this.prepare)
    this.idle = await this.report()
    await this.order({ kind: 'start', job })
  }

  #spawn(): ChildProcess {
    const execArgv = ['--import', 'tsx', '--expose-gc']
    const child = fork(this.#script, { execArgv, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#mayEnd = false
    // those that wait for work must not keep the bench alive
    child.unref()
    child.channel?.unref()
    child.on('message', (answer: Answer) => {
      this.#waiting.get(answer.id)?.resolve(answer)
      this.#waiting.delete(answer.id)
    })
    child.once('exit', (code, signal) => {
      if (child !== this.#child) return
      const why = `${this.name} ended with ${signal ?? code}`
      for (const { reject } of this.#waiting.values()) reject(new Error(why))
      this.#waiting.clear()
      if (!this.#mayEnd) this.onUnexpectedEnd(why)
    })
    return child
  }
}
