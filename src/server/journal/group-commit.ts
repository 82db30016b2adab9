import { JournalError } from '../errors.js'

interface Waiting<J> {
  readonly job: J
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * Commits the jobs of many callers together: jobs that come while a commit is under way, or within a few milliseconds of the first one,
 * share the next commit. If the commit of several jobs fails for another reason than an absent server, each job is committed alone, so that
 * one does not fail the others.
 */
export class GroupCommit<J> {
  readonly #commit: (jobs: readonly J[]) => Promise<void>
  readonly #lingerMs: number
  readonly #most: number
  #waiting: Waiting<J>[] = []
  /** When the first waiting job came. */
  #since = 0
  #running: Promise<void> | undefined

  constructor(
    commit: (jobs: readonly J[]) => Promise<void>,
    how: { readonly lingerMs: number; readonly most: number },
  ) {
    this.#commit = commit
    this.#lingerMs = how.lingerMs
    this.#most = how.most
  }

  submit(job: J): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) this.#since = performance.now()
      this.#waiting.push({ job, resolve, reject })
      this.#running ??= this.#run()
    })
  }

  /** Resolves when no job waits. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running
  }

  async #run(): Promise<void> {
    for (let isFirst = true; this.#waiting.length > 0; isFirst = false) {
      const left = Math.max(0, this.#lingerMs - (performance.now() - this.#since))
      // the first job waits also for the others of its turn of the event loop
      if ((left > 0 || isFirst) && this.#waiting.length < this.#most) await pause(left)
      await this.#flush(this.#waiting.splice(0, this.#most)) // the jobs left over are as old and are committed at once
    }
    this.#running = undefined
  }

  async #flush(group: readonly Waiting<J>[]): Promise<void> {
    try {
      await this.#commit(group.map(({ job }) => job))
      for (const { resolve } of group) resolve()
    } catch (error) {
      if (group.length === 1 || (error instanceof JournalError && error.isTemporary)) {
        for (const { reject } of group) reject(error)
        return
      }
      for (const one of group) await this.#flush([one])
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => (ms > 0 ? setTimeout(resolve, ms) : setImmediate(resolve)))
}
