import { randomFrom } from '../../support/random.js'
import { Bench, type Result } from './bench.js'
import type { Wrong } from './books.js'
import { FAULTS, type JournalFault } from './faults.js'
import { SentinelPlace, SinglePlace, type Place } from './place.js'
import type { Plant } from './plants.js'
import { buildProgram, type Program } from './program.js'
import { startSql, type Kind, type SqlServer } from './sql.js'

/** The distance between the dates of Redis and of the machine: a process without an answer of Redis takes its own date for that of Redis. */
const APART_MS = 2_000
/** A planted fault that shows only sometimes gets so many rounds. */
const PLANT_ROUNDS = 12
/** With a planted fault, a message that has not come by then does not come: twice the time after which accepted messages are added. */
const PLANT_DRAIN_MS = 30_000

/** A fault, and the database with which it is played. */
export interface Step {
  readonly kind: Kind
  readonly fault: JournalFault
}

export interface Outcome {
  readonly kind: Kind
  readonly name: string
  readonly problems: Result['problems']
  /** `undefined` where the fault could not be done. */
  readonly result: Result | undefined
}

/** Each fault once, and so on until there are so many; each with one of the databases, in turn, in an order that the seed gives. */
export function planned(seed: number, count: number, kinds: readonly Kind[], faults = FAULTS): Step[] {
  const random = randomFrom(seed)
  const steps: Step[] = []
  const offset = Math.floor(random() * kinds.length)
  for (let round = 0; steps.length < count; round++) {
    const order = shuffled(faults, random)
    order.forEach((fault, at) => {
      const able = fault.needsServer === true ? kinds.filter((kind) => kind !== 'sqlite') : kinds
      const kind = able[(offset + round + at) % able.length]
      if (steps.length < count && kind !== undefined) steps.push({ kind, fault })
    })
    if (steps.length === 0) break
  }
  return steps
}

/** Steps that must follow each other, those of one database and one place; `say` gets a line for each. The longest first. */
export function lanesOf(
  program: Program,
  steps: readonly Step[],
  { seed, say, onOutcome }: { seed: number; say: (line: string) => void; onOutcome: (outcome: Outcome) => void },
): (() => Promise<void>)[] {
  const lanes = new Map<string, Step[]>()
  for (const step of steps) {
    const name = `${step.kind} ${step.fault.place}`
    lanes.set(name, [...(lanes.get(name) ?? []), step])
  }
  const ordered = [...lanes.values()].sort((a, b) => b.length - a.length)
  return ordered.map((lane, at) => () => runLane(program, lane, seed + at * 104_729, say, onOutcome))
}

/** The faults of one database and one place, one after another. */
async function runLane(
  program: Program,
  steps: readonly Step[],
  seed: number,
  say: (line: string) => void,
  onOutcome: (outcome: Outcome) => void,
): Promise<void> {
  const stage = new Stage(program, seed)
  try {
    for (const { kind, fault } of steps) {
      let problems: Result['problems'] = []
      let result: Result | undefined
      try {
        const bench = await stage.benchFor(kind, fault.place)
        if (fault.needsQuota === true && bench.sql.quota === undefined) {
          say(`- ${kind}: ${fault.name}: left out, only root can make a disk that is full`)
          continue
        }
        result = await bench.round(() => fault.fault(bench))
        problems = result.problems
      } catch (error) {
        problems = [{ wrong: 'other', text: String(error instanceof Error ? error.stack : error) }]
      }
      say(`${problems.length === 0 ? 'ok' : 'FAILED'} ${kind}: ${fault.name}: ${result ? lineOf(result) : 'no result'}`)
      for (const { wrong, text } of problems.slice(0, 10)) say(`    ${wrong}: ${text}`)
      onOutcome({ kind, name: fault.name, problems, result })
      // what went wrong must not disturb the next ones
      if (problems.length > 0) await stage.clear()
    }
  } finally {
    await stage.end()
  }
}

/** Runs this many at a time. */
export async function inParallel(tasks: readonly (() => Promise<void>)[], jobs: number): Promise<void> {
  const left = [...tasks]
  const worker = async (): Promise<void> => {
    for (let task = left.shift(); task !== undefined; task = left.shift()) await task()
  }
  await Promise.all(Array.from({ length: jobs }, worker))
}

/** Whether a planted fault was found, and how. */
export interface Search {
  readonly found: readonly Wrong[]
  /** 0: no fault that shows the planted one can be played here. */
  readonly rounds: number
  readonly example: string
}

/** Looks for a fault that was put into the journal. */
export async function findPlant(plant: Plant, seed: number): Promise<Search> {
  const program = await buildProgram(plant)
  const stage = new Stage(program, seed, PLANT_DRAIN_MS)
  const shows = plant.shownBy.map((start) => {
    const fault = FAULTS.find(({ name }) => name.startsWith(start))
    if (fault === undefined) throw new Error(`there is no fault "${start}"`)
    return fault
  })
  try {
    let rounds = 0
    let other = ''
    for (let turn = 0; turn < PLANT_ROUNDS; turn++) {
      const fault = shows[turn % shows.length] as JournalFault
      const bench = await stage.benchFor(plant.on, fault.place)
      if (fault.needsQuota === true && bench.sql.quota === undefined) continue
      rounds++
      const { problems } = await bench.round(() => fault.fault(bench))
      const shown = problems.find(({ wrong }) => plant.foundAs.some((kind) => kind === wrong))
      if (shown !== undefined) {
        const found = [...new Set(problems.map(({ wrong }) => wrong))]
        return { found, rounds, example: shown.text }
      }
      const [first] = problems
      if (first === undefined) continue
      other = `only ${first.wrong}: ${first.text}`
      // what went wrong must not disturb the next ones
      await stage.clear()
    }
    return { found: [], rounds, example: other }
  } finally {
    await stage.end()
    program.remove()
  }
}

/** The servers and the fleet of the present step; what the next one can use stays. */
class Stage {
  readonly #program: Program
  readonly #seed: number
  readonly #drainMs: number | undefined
  #sql: SqlServer | undefined
  #place: Place | undefined
  #bench: Bench | undefined
  #count = 0

  constructor(program: Program, seed: number, drainMs?: number) {
    this.#program = program
    this.#seed = seed
    this.#drainMs = drainMs
  }

  async benchFor(kind: Kind, where: JournalFault['place']): Promise<Bench> {
    const isThere = this.#bench !== undefined && this.#sql?.kind === kind && isAt(this.#place, where)
    if (this.#bench !== undefined && isThere) return this.#bench
    await this.clear()
    if (this.#sql?.kind !== kind) {
      await this.#sql?.stop()
      this.#sql = undefined
      this.#sql = await startSql(kind)
    }
    const seed = this.#seed + this.#count++ * 7_919
    const shiftMs = (randomFrom(seed)() * 2 - 1) * APART_MS
    this.#place = where === 'single' ? await SinglePlace.start(shiftMs) : await SentinelPlace.start()
    this.#bench = new Bench({
      place: this.#place,
      sql: this.#sql,
      program: this.#program,
      seed,
      ...(this.#drainMs !== undefined && { drainMs: this.#drainMs }),
    })
    await this.#bench.start()
    return this.#bench
  }

  /** The fleet and its Redis go. */
  async clear(): Promise<void> {
    this.#sql?.quota?.relieve()
    this.#sql?.pause?.(false)
    await this.#sql?.revive?.().catch(() => undefined) // the next step says that it is not there
    await this.#bench?.stop()
    this.#bench = undefined
    await this.#place?.stop()
    this.#place = undefined
  }

  async end(): Promise<void> {
    await this.clear()
    await this.#sql?.stop()
    this.#sql = undefined
  }
}

function isAt(place: Place | undefined, where: JournalFault['place']): boolean {
  return where === 'single' ? place instanceof SinglePlace : place instanceof SentinelPlace
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)
}

function lineOf({ problems, errors, ...counts }: Result): string {
  const numbers = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
  const met = Object.entries(errors).map(([code, count]) => `${code} ${count}`)
  return `${numbers.join(', ')}${met.length === 0 ? '' : ` (${met.join(', ')})`}`
}
