/**
 * A run as a file of lines: the first says what is run; the others say where it is run, what was measured, and which scenario has ended,
 * each written when it happens. So a run can be stopped at any moment and gone on with in another call, and what was measured stays, also
 * what failed or was slow. Another machine measures an unfinished scenario again from its beginning: subjects are compared on one machine only.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { thisPlace, watchMachine, type Conditions, type Place } from './machine.js'
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
  /** Of the run's places, from 1. */
  readonly place: number
  readonly at: string
  readonly seconds: number
  readonly figures?: Figures
  readonly curves?: Readonly<Record<string, readonly Point[]>>
  /** Why there are no figures. */
  readonly error?: string
}

/** What the file has after its first line. */
type Line = Measurement | { readonly place: Place } | { readonly ended: string }

/** The time of this call is over, and the next measurement is for the next one. */
export class OutOfTime extends Error {
  override readonly name = 'OutOfTime'
}

/** The run of the file is of other code, or of other versions. */
export class OtherCode extends Error {
  override readonly name = 'OtherCode'
}

export class RunState {
  readonly head: Head
  readonly #file: string
  readonly #places: Place[] = []
  readonly #measurements: Measurement[] = []
  readonly #ended = new Set<string>()
  readonly #endAt: number
  #curves: Record<string, readonly Point[]> = {}

  private constructor(file: string, head: Head, lines: readonly Line[], budgetSeconds: number) {
    this.#file = file
    this.head = head
    for (const line of lines) this.#keep(line)
    this.#endAt = performance.now() + budgetSeconds * 1_000
  }

  /** Begins a run; one that was not ended is kept beside it. */
  static begin(file: string, head: Head, budgetSeconds: number, place: Place = thisPlace()): RunState {
    mkdirSync(dirname(file), { recursive: true })
    if (existsSync(file)) renameSync(file, `${file}.${read(file).head.env.date.replaceAll(':', '-')}`)
    const state = new RunState(file, head, [{ place }], budgetSeconds)
    state.#write()
    return state
  }

  /** Goes on with the run of a file, if there is one. Leaves the file alone if that run is of other code: opening drops what another machine has to measure again. */
  static resume(
    file: string,
    now: Pick<Environment, 'commit' | 'code' | 'versions'>,
    budgetSeconds: number,
    place: Place = thisPlace(),
  ): RunState | undefined {
    if (!existsSync(file)) return undefined
    const { head, lines } = read(file)
    if (head.env.code !== now.code || stringify(head.env.versions) !== stringify(now.versions)) {
      const [earlier, current] = [head.env, now].map(
        (one) => `commit ${one.commit} (code ${one.code}, ${stringify(one.versions)})`,
      )
      throw new OtherCode(
        `That run is of ${earlier}, and this is ${current}: one run is of one code and one set of versions. Without --resume another one begins.`,
      )
    }
    const state = new RunState(file, head, lines, budgetSeconds)
    if (state.#places.at(-1)?.boot !== place.boot) state.#move(place)
    state.#write() // without half a line at its end
    return state
  }

  /** In the order in which the run was on them. */
  get places(): readonly Place[] {
    return this.#places
  }

  get measurements(): readonly Measurement[] {
    return this.#measurements
  }

  of(scenario: string): readonly Measurement[] {
    return this.#measurements.filter((one) => one.scenario === scenario)
  }

  /** All of the scenario is measured, so that it stays when the run goes on on another machine. */
  end(scenario: string): void {
    if (!this.#ended.has(scenario)) this.#append({ ended: scenario })
  }

  async measured(
    scenario: string,
    subject: string,
    round: number,
    measure: () => Promise<Figures>,
  ): Promise<Measurement> {
    const isDone = (one: Measurement): boolean => one.figures !== undefined || this.#ended.has(scenario)
    const before = this.#measurements.findLast(
      (one) => one.scenario === scenario && one.subject === subject && one.round === round && isDone(one),
    )
    if (before !== undefined) return before
    if (performance.now() >= this.#endAt) throw new OutOfTime('the time of this call is over')
    const [at, started, ended] = [new Date().toISOString(), performance.now(), watchMachine()]
    this.#curves = {}
    const outcome = await measure().then(
      (figures) => ({ figures, ...(Object.keys(this.#curves).length > 0 && { curves: this.#curves }) }),
      (error: unknown) => ({ error: String(error) }),
    )
    const seconds = (performance.now() - started) / 1_000
    const place = this.#places.length
    const measurement = { scenario, subject, round, place, at, seconds, ...ended(), ...outcome }
    this.#append(measurement)
    return measurement
  }

  curve(subject: string, points: readonly Point[]): void {
    this.#curves[subject] = points
  }

  #move(place: Place): void {
    const ended = this.#measurements.filter(({ scenario }) => this.#ended.has(scenario))
    this.#measurements.splice(0, Infinity, ...ended)
    this.#keep({ place })
  }

  #keep(line: Line): void {
    if ('ended' in line) this.#ended.add(line.ended)
    else if ('scenario' in line) this.#measurements.push(line)
    else this.#places.push(line.place)
  }

  #append(line: Line): void {
    this.#keep(line)
    appendFileSync(this.#file, `${stringify(line)}\n`)
  }

  #write(): void {
    const places = this.#places.map((place) => ({ place }))
    const ended = Array.from(this.#ended, (scenario) => ({ ended: scenario }))
    const lines = [this.head, ...places, ...this.#measurements, ...ended]
    writeFileSync(this.#file, lines.map((line) => `${stringify(line)}\n`).join(''))
  }
}

function read(file: string): { head: Head; lines: Line[] } {
  const texts = readFileSync(file, 'utf8').split('\n').slice(0, -1) // the last line is empty, or was not written whole
  const [head, ...lines] = texts.map((text) => JSON.parse(text, revive) as unknown)
  return { head: head as Head, lines: lines as Line[] }
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
