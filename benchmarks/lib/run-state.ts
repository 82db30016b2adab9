/**
 * A run as a file of lines: the first says what is run, each other one is a measurement, written when it has ended. So a run can
 * be stopped at any moment and gone on with in another call, and what was measured stays, also what failed or was slow.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { watchMachine, type Conditions } from './machine.js'
import type { Environment } from './report.js'
import type { Figures, Point } from './scenario.js'

export interface RunOptions {
  readonly quick: boolean
  readonly only: readonly string[] | undefined
  readonly runs: number
}

interface Head {
  readonly stem: string
  readonly env: Environment
  readonly options: RunOptions
}

export interface Measurement extends Conditions {
  readonly scenario: string
  readonly subject: string
  readonly round: number
  readonly at: string
  readonly seconds: number
  readonly figures?: Figures
  readonly curves?: Readonly<Record<string, readonly Point[]>>
  /** Why there are no figures. */
  readonly error?: string
}

/** The time of this call is over, and the next measurement is for the next one. */
export class OutOfTime extends Error {
  override readonly name = 'OutOfTime'
}

export class RunState {
  readonly head: Head
  readonly #file: string
  readonly #measurements: Measurement[]
  readonly #endAt: number
  #curves: Record<string, readonly Point[]> = {}

  private constructor(file: string, head: Head, measurements: Measurement[], budgetSeconds: number) {
    this.#file = file
    this.head = head
    this.#measurements = measurements
    this.#endAt = performance.now() + budgetSeconds * 1_000
  }

  /** Begins a run; one that was not ended is kept beside it. */
  static begin(file: string, head: Head, budgetSeconds: number): RunState {
    mkdirSync(dirname(file), { recursive: true })
    if (existsSync(file)) renameSync(file, `${file}.${read(file).head.env.date.replaceAll(':', '-')}`)
    writeFileSync(file, `${stringify(head)}\n`)
    return new RunState(file, head, [], budgetSeconds)
  }

  static resume(file: string, budgetSeconds: number): RunState | undefined {
    if (!existsSync(file)) return undefined
    const { head, measurements } = read(file)
    writeFileSync(file, [head, ...measurements].map((line) => `${stringify(line)}\n`).join('')) // without half a line at its end
    return new RunState(file, head, measurements, budgetSeconds)
  }

  get measurements(): readonly Measurement[] {
    return this.#measurements
  }

  of(scenario: string): readonly Measurement[] {
    return this.#measurements.filter((one) => one.scenario === scenario)
  }

  async measured(
    scenario: string,
    subject: string,
    round: number,
    measure: () => Promise<Figures>,
  ): Promise<Measurement> {
    const isIt = (one: Measurement): boolean =>
      one.scenario === scenario && one.subject === subject && one.round === round && one.figures !== undefined
    const before = this.#measurements.find(isIt)
    if (before !== undefined) return before
    if (performance.now() >= this.#endAt) throw new OutOfTime('the time of this call is over')
    const [at, started, ended] = [new Date().toISOString(), performance.now(), watchMachine()]
    this.#curves = {}
    const outcome = await measure().then(
      (figures) => ({ figures, ...(Object.keys(this.#curves).length > 0 && { curves: this.#curves }) }),
      (error: unknown) => ({ error: String(error) }),
    )
    const seconds = (performance.now() - started) / 1_000
    const measurement = { scenario, subject, round, at, seconds, ...ended(), ...outcome }
    this.#measurements.push(measurement)
    appendFileSync(this.#file, `${stringify(measurement)}\n`)
    return measurement
  }

  curve(subject: string, points: readonly Point[]): void {
    this.#curves[subject] = points
  }
}

function read(file: string): { head: Head; measurements: Measurement[] } {
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1) // the last line is empty, or was not written whole
  const [head, ...measurements] = lines.map((line) => JSON.parse(line, revive) as unknown)
  return { head: head as Head, measurements: measurements as Measurement[] }
}

/** JSON has no word for what is not a finite number. */
export function stringify(value: unknown, indent?: number): string {
  return JSON.stringify(
    value,
    (_key, one: unknown) => (typeof one === 'number' && !Number.isFinite(one) ? String(one) : one),
    indent,
  )
}

function revive(_key: string, value: unknown): unknown {
  return value === 'Infinity' || value === '-Infinity' || value === 'NaN' ? Number(value) : value
}
