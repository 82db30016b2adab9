import { Recent } from './recent.js'
import type { LibraryCommand } from './library-command.js'

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

/** So long a report is shown again. */
const FRESH_MS = 10_000
/** So old the report behind a summary can be. */
const SUMMARY_MS = 600_000
const MOST_FINDINGS = 1_000

/** Examines the Redis of the service with the doctor of the library, one examination at a time. */
export class Doctor {
  readonly #command: Pick<LibraryCommand, 'run'>
  readonly #now: () => number
  readonly #recent = new Recent<Report>({ freshMs: FRESH_MS, most: 1 })
  #shown: Report | undefined
  #lookedAt = -Infinity

  constructor(command: Pick<LibraryCommand, 'run'>, now: () => number) {
    this.#command = command
    this.#now = now
  }

  /** The report of the last ten seconds, or a new one. @throws CommandFailed */
  examine(): Promise<Report> {
    return this.#recent.get('', async () => {
      const { findings = [] } = (await this.#command.run('doctor')) as { findings?: readonly Printed[] }
      this.#shown = { at: this.#now(), findings: findings.slice(0, MOST_FINDINGS).map(shown) }
      return this.#shown
    })
  }

  /** The last report, which can be old or not there; where it is old, the doctor examines again meanwhile. */
  lastReport(): Report | undefined {
    if (performance.now() - this.#lookedAt > SUMMARY_MS) {
      this.#lookedAt = performance.now()
      void this.examine().catch(() => undefined) // who asks for the report itself learns why
    }
    return this.#shown
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
