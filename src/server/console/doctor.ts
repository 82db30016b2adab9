import { Recent } from './recent.js'
import type { LibraryCommand } from './library-command.js'

export interface Finding {
  readonly severity: string
  readonly code: string
  /** What was found and what it means, in one. */
  readonly message: string
  readonly found: string
  readonly means: string
  readonly advice: string | null
  readonly queue: string | null
}

export interface Report {
  readonly at: number
  /** The worst first. */
  readonly findings: readonly Finding[]
  /** How many findings are left out. */
  readonly leftOut: number
  /** How many queues were left when the time was over, or are more than the doctor looks at. */
  readonly notExamined: number
}

/** A finding as `redelayed doctor --json` prints it. */
interface Printed {
  readonly level?: unknown
  readonly code?: unknown
  readonly queue?: unknown
  readonly found?: unknown
  readonly means?: unknown
  readonly repair?: unknown
}

interface Document {
  readonly findings?: readonly Printed[]
  readonly notExamined?: unknown
}

/** How long a report is reused. */
const FRESH_MS = 10_000
/** The oldest report that a summary uses. */
const SUMMARY_MS = 600_000
/** After that it begins with no other queue. The process is ended after twice as long. */
const WITHIN = '30s'
const MOST_FINDINGS = 1_000
/** The most characters of a name and of a text: a client of Redis can make a key with a name of megabytes. */
const [MOST_NAME, MOST_TEXT] = [1_000, 2_000]
const SEVERITIES = ['error', 'warning', 'info']

/** Examines the Redis of the service with the doctor of the library, one examination at a time. */
export class Doctor {
  readonly #command: Pick<LibraryCommand, 'run'>
  readonly #now: () => number
  readonly #recent: Recent<Report>
  readonly #monotonic: () => number
  #shown: Report | undefined
  /** By the clock of this process, which is never set back. */
  #shownAt = -Infinity
  #lookedAt = -Infinity

  /** @param now the time of a report, by the clock of Redis; `monotonic` measures its age */
  constructor(
    command: Pick<LibraryCommand, 'run'>,
    now: () => number,
    { monotonic = () => performance.now(), freshMs = FRESH_MS } = {},
  ) {
    this.#command = command
    this.#now = now
    this.#monotonic = monotonic
    this.#recent = new Recent({ freshMs, most: 1 })
  }

  /**
   * The report of the last ten seconds, or a new one.
   *
   * @param maxAgeMs the greatest age of a report that is returned instead of a new one
   * @throws CommandFailed
   */
  async examine(maxAgeMs = 0): Promise<Report> {
    if (this.#shown !== undefined && this.#monotonic() - this.#shownAt <= maxAgeMs) return this.#shown
    return this.#recent.get('', async () => {
      const { findings = [], notExamined } = (await this.#command.run('doctor', ['--within', WITHIN])) as Document
      const sorted = findings.map(shown).sort((a, b) => rankOf(a) - rankOf(b))
      this.#shown = {
        at: this.#now(),
        findings: sorted.slice(0, MOST_FINDINGS),
        leftOut: Math.max(0, sorted.length - MOST_FINDINGS),
        notExamined: typeof notExamined === 'number' ? notExamined : 0,
      }
      this.#shownAt = this.#monotonic()
      return this.#shown
    })
  }

  /** The last report, if there is one. If it is old, the doctor starts a new examination in the background. */
  lastReport(): Report | undefined {
    if (this.#monotonic() - this.#lookedAt > SUMMARY_MS) {
      this.#lookedAt = this.#monotonic()
      void this.examine().catch(() => undefined) // a request for the report itself gets the error
    }
    return this.#shown
  }
}

/** An unknown severity is the last. */
function rankOf({ severity }: Finding): number {
  const rank = SEVERITIES.indexOf(severity)
  return rank < 0 ? SEVERITIES.length : rank
}

function shown(printed: Printed): Finding {
  const text = (value: unknown, most = MOST_TEXT): string => {
    const whole = typeof value === 'string' ? value : ''
    return whole.length <= most ? whole : `${whole.slice(0, most - 1)}…`
  }
  const [found, means] = [text(printed.found), text(printed.means)]
  return {
    severity: text(printed.level),
    code: text(printed.code),
    message: [found, means].filter((each) => each !== '').join(found.endsWith('.') ? ' ' : ': '),
    ...{ found, means },
    advice: text(printed.repair) || null,
    queue: text(printed.queue, MOST_NAME) || null,
  }
}
