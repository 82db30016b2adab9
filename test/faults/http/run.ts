import { randomFrom } from '../../support/random.js'
import type { Fault } from '../../simulation/plant.js'
import type { Kind } from '../journal/sql.js'
import { HttpBench, type Round, type Where } from './bench.js'
import type { Problem } from './books.js'
import { HTTP_FAULTS, type HttpFault } from './faults.js'
import type { HTTP_PLANTS } from './plants.js'
import { buildHttpProgram, type HttpProgram } from './program.js'

/** With a planted fault, a message that has not come by then does not come: twice the time after which accepted messages are added. */
const PLANT_DRAIN_MS = 60_000
/** Where others use the machine, a message may be this late; a stuck one comes later or not at all, and the round waits for it this long. */
const [TOLERATED_MS, PATIENT_DRAIN_MS] = [120_000, 240_000]
/** A planted fault that shows only sometimes gets so many rounds. */
const PLANT_ROUNDS = 4

export interface HttpOutcome {
  readonly kind: Kind
  readonly name: string
  readonly problems: readonly Problem[]
  /** `undefined` without a result, and at the end. */
  readonly round: Round | undefined
  /** The comparison of SQL and Redis after all faults. */
  readonly isEnd: boolean
}

/** The search for a planted fault: the round, and what was found instead. */
export interface HttpSearch {
  readonly plant: Fault
  readonly kind: Kind
  readonly rounds: number
  readonly found: Problem | undefined
  readonly others: readonly Problem[]
}

/** Each fault once, and so on until there are so many, in an order that the seed gives. */
export function plannedHttp(seed: number, count: number, faults: readonly HttpFault[]): HttpFault[] {
  const random = randomFrom(seed)
  const steps: HttpFault[] = []
  while (steps.length < count && faults.length > 0) {
    const order = [...faults]
    for (let at = order.length - 1; at > 0; at--) {
      const other = Math.floor(random() * (at + 1))
      ;[order[at], order[other]] = [order[other]!, order[at]!]
    }
    steps.push(...order.slice(0, count - steps.length))
  }
  // what Redis has lost takes the longest to be as it was, which the others can overlap
  return steps.sort((a, b) => Number(a.isRedisWell ?? false) - Number(b.isRedisWell ?? false))
}

interface How {
  readonly seed: number
  /** Whether others use the machine: then only what is very late is a problem. */
  readonly isShared: boolean
  readonly say: (line: string) => void
  readonly onOutcome: (outcome: HttpOutcome) => void
}

/** Plays the faults of all databases at the same time, and those of one database one after another. */
export async function runHttpFaults(faults: readonly HttpFault[], kinds: readonly Kind[], how: How): Promise<void> {
  const program = await buildHttpProgram()
  try {
    const all = dealt(faults, kinds)
    await Promise.all(
      kinds.map((kind, at) => runAll(kind, program, all.get(kind) ?? [], { ...how, seed: how.seed + at })),
    )
  } finally {
    program.remove()
  }
}

/** Gives each fault to the database that has the fewest of those that can have it; SQLite can have few, and is the first to get one. */
function dealt(faults: readonly HttpFault[], kinds: readonly Kind[]): Map<Kind, HttpFault[]> {
  const order = [...kinds].sort((a, b) => Number(b === 'sqlite') - Number(a === 'sqlite'))
  const all = new Map(order.map((kind): [Kind, HttpFault[]] => [kind, []]))
  for (const fault of faults) {
    const able = [...all].filter(([kind]) => isPossible(fault, kind)).map(([, own]) => own)
    const [fewest] = able.sort((a, b) => a.length - b.length)
    fewest?.push(fault)
  }
  return all
}

/** SQLite lives in the one instance that has its file. */
function isPossible({ needs, where }: HttpFault, kind: Kind): boolean {
  if (needs === 'a small disk') return process.getuid?.() === 0
  if (kind === 'sqlite') return where === undefined && (needs === undefined || needs === 'one instance')
  return needs !== 'one instance'
}

async function runAll(kind: Kind, program: HttpProgram, faults: readonly HttpFault[], how: How): Promise<void> {
  for (const where of ['single', 'sentinel'] as const) {
    const own = faults.filter((fault) => (fault.where ?? 'single') === where)
    if (own.length > 0) await runOn(kind, where, program, own, how)
  }
}

async function runOn(
  kind: Kind,
  where: Where,
  program: HttpProgram,
  faults: readonly HttpFault[],
  { seed, isShared, say, onOutcome }: How,
): Promise<void> {
  let bench: HttpBench | undefined
  try {
    for (const [at, { name, fault, isRedisWell = false, catchUpMs }] of faults.entries()) {
      let problems: readonly Problem[]
      let round: Round | undefined
      try {
        bench ??= await HttpBench.start(kind, program, seed + at, {
          where,
          ...(isShared && { toleratedMs: TOLERATED_MS, drainMs: PATIENT_DRAIN_MS }),
        })
        round = await bench.round(fault, { isRedisWell, catchUpMs })
        problems = round.problems
      } catch (error) {
        problems = [{ wrong: 'other', text: String(error instanceof Error ? error.stack : error) }]
      }
      const line = round === undefined ? 'no result' : lineOf(round, isRedisWell)
      say(`${problems.length === 0 ? 'ok' : 'FAILED'} ${kind}: ${name}: ${line}`)
      for (const { wrong, text } of problems.slice(0, 10)) say(`    ${wrong}: ${text}`)
      onOutcome({ kind, name, problems, round, isEnd: false })
      if (problems.length === 0) continue
      // what went wrong must not disturb the next ones
      say(bench?.output ?? '')
      await bench?.stop()
      bench = undefined
    }
    const problems = (await bench?.verify()) ?? []
    const name = where === 'single' ? 'SQL and Redis agree at the end' : 'SQL and the last master agree at the end'
    say(`${problems.length === 0 ? 'ok' : 'FAILED'} ${kind}: ${name}`)
    for (const { wrong, text } of problems) say(`    ${wrong}: ${text}`)
    onOutcome({ kind, name, problems, round: undefined, isEnd: true })
  } finally {
    await bench?.stop()
  }
}

/** Whether the bench finds a fault that was put into the journal. */
export async function findHttpPlant(
  { plant, shownBy, foundAs }: (typeof HTTP_PLANTS)[number],
  kind: Kind,
  seed: number,
): Promise<HttpSearch> {
  const shows = HTTP_FAULTS.find(({ name }) => name === shownBy)
  if (shows === undefined) throw new Error(`there is no fault "${shownBy}"`)
  const program = await buildHttpProgram(plant)
  const bench = await HttpBench.start(kind, program, seed, { drainMs: PLANT_DRAIN_MS, toleratedMs: Infinity })
  try {
    let problems: readonly Problem[] = []
    for (let rounds = 1; ; rounds++) {
      problems = (await bench.round(shows.fault)).problems
      const found = problems.find(({ wrong }) => wrong === foundAs)
      if (found !== undefined || problems.length > 0 || rounds === PLANT_ROUNDS)
        return { plant, kind, rounds, found, others: problems }
    }
  } finally {
    await bench.stop()
    program.remove()
  }
}

function lineOf(round: Round, isRedisWell: boolean): string {
  const { accepted, journalled, removed, delivered, twice, failures, worstLateMs, seconds } = round
  const parts = [
    `${accepted} accepted`,
    `${journalled} journalled`,
    `${removed} removed`,
    `${delivered} deliveries`,
    `${twice} handled twice`,
    `${failures} failed requests`,
    ...(isRedisWell ? [`at most ${worstLateMs} ms late`] : []),
  ]
  return `${parts.join(', ')}, in ${seconds} s`
}
