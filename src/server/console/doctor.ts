import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

export interface Finding {
  readonly severity: string
  readonly code: string
  readonly message: string
  readonly advice: string | null
  readonly queue: string | null
}

export interface Report {
  readonly at: number
  readonly findings: readonly Finding[]
}

/** What `redelayed doctor --json` prints of a finding. */
interface Printed {
  readonly level?: unknown
  readonly code?: unknown
  readonly queue?: unknown
  readonly found?: unknown
  readonly means?: unknown
  readonly repair?: unknown
}

/** So long a report is shown again, and so long one may take. */
const FRESH_MS = 10_000
const MOST_MS = 60_000
/** So old the report behind a summary can be. */
const SUMMARY_MS = 600_000
const MOST_BYTES = 16 * 1_048_576
const MOST_FINDINGS = 1_000

/** The doctor did not come to an end. */
export class DoctorFailed extends Error {
  override name = 'DoctorFailed'
}

/**
 * Examines the Redis of the service with the doctor of the library. It runs in a process of its own, so that its scans delay no request; one at a
 * time.
 */
export class Doctor {
  readonly #redis: { readonly url: string; readonly isCluster: boolean }
  readonly #now: () => number
  #last: { readonly begunAt: number; readonly report: Promise<Report>; isOver: boolean } | undefined
  #shown: Report | undefined
  #lookedAt = -Infinity
  readonly #stop = new AbortController()

  constructor(redis: { readonly url: string; readonly isCluster: boolean }, now: () => number) {
    this.#redis = redis
    this.#now = now
  }

  /** The report of the last ten seconds, or a new one. @throws DoctorFailed */
  examine(): Promise<Report> {
    const before = this.#last
    if (before !== undefined && (!before.isOver || performance.now() - before.begunAt < FRESH_MS)) return before.report
    const report = this.#run()
    const last = { begunAt: performance.now(), report, isOver: false }
    this.#last = last
    report.then(
      (done) => {
        last.isOver = true
        this.#shown = done
      },
      () => {
        if (this.#last === last) this.#last = undefined
      },
    )
    return report
  }

  /** The last report, which can be old or not there; where it is old, the doctor examines again meanwhile. */
  lastReport(): Report | undefined {
    if (performance.now() - this.#lookedAt > SUMMARY_MS && !this.#stop.signal.aborted) {
      this.#lookedAt = performance.now()
      void this.examine().catch(() => undefined) // who asks for the report itself learns why
    }
    return this.#shown
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#last?.report.catch(() => undefined)
  }

  async #run(): Promise<Report> {
    const main = join(dirname(createRequire(import.meta.url).resolve('redelayed/package.json')), 'dist/cli/main.js')
    const args = [main, 'doctor', '--json', ...(this.#redis.isCluster ? ['--cluster'] : [])]
    const text = await new Promise<string>((resolve, reject) => {
      // the URL is in the environment: arguments are for all users of the machine to see
      const env = { ...process.env, REDIS_URL: this.#redis.url }
      const limits = { timeout: MOST_MS, maxBuffer: MOST_BYTES, signal: this.#stop.signal }
      execFile(process.execPath, args, { env, ...limits }, (error, stdout) => {
        // findings make the exit code 1
        if (stdout.startsWith('{')) resolve(stdout)
        else reject(new DoctorFailed(error?.killed === true ? 'it took too long' : 'it could not examine this Redis'))
      })
    })
    const { findings = [] } = JSON.parse(text) as { findings?: readonly Printed[] }
    return { at: this.#now(), findings: findings.slice(0, MOST_FINDINGS).map(shown) }
  }
}

function shown({ level, code, queue, found, means, repair }: Printed): Finding {
  const text = (value: unknown): string => (typeof value === 'string' ? value : '')
  return {
    severity: text(level),
    code: text(code),
    message: [text(found), text(means)].filter((each) => each !== '').join(text(found).endsWith('.') ? ' ' : ': '),
    advice: text(repair) || null,
    queue: text(queue) || null,
  }
}
