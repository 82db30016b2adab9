import type { AnyJob } from './job.js'
import { WorkerProcess } from './worker-process.js'

/** Processes that were used before and wait for the next bench: starting one costs more than most faults. */
export class WorkerPool<J extends AnyJob> {
  readonly #script: URL
  readonly #idle: WorkerProcess<J>[] = []

  constructor(script: URL) {
    this.#script = script
  }

  take(): WorkerProcess<J> {
    return this.#idle.pop() ?? new WorkerProcess<J>(this.#script)
  }

  /** The process has no job any more. */
  giveBack(worker: WorkerProcess<J>): void {
    this.#idle.push(worker)
  }

  /** Ends the processes that wait for work. */
  async end(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map((worker) => worker.end()))
  }
}
