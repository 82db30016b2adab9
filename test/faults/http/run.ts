import { randomFrom } from '../../support/random.js'
import { PLANTS, type Plant } from '../journal/plants.js'
import { HttpBench, type Kind, type Round } from './bench.js'
import type { Problem } from './books.js'
import { HTTP_FAULTS, type HttpFault } from './faults.js'
import { buildHttpProgram, type HttpProgram } from './program.js'

/** With a planted fault, what has not come by then does not come. */
const PLANT_DRAIN_MS = 15_000
/** A planted fault that shows only sometimes gets so many rounds. */
const PLANT_ROUNDS = 4

export interface HttpOutcome {
  readonly kind: Kind
  readonly name: string
  readonly problems: readonly Problem[]
}

/** Planted in the journal, each has to be found by the fault whose name begins so. */
export const HTTP_PLANTS: readonly { readonly plant: Plant; readonly shownBy: string; readonly foundAs: string }[] = [
  {
    plant: plantOf('what SQL knows as open is not put back'),
    shownBy: 'Redis is killed and comes back without data',
    foundAs: 'lost',
  },
  {
    plant: plantOf('what SQL knows as final stays in Redis'),
    shownBy: 'Redis is killed and comes back with an old snapshot',
    foundAs: 'cancelled',
  },
]

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
  readonly say: (line: string) => void
  readonly onOutcome: (outcome: HttpOutcome) => void
}

/** Does the faults on each database beside the others, those of one after the other. */
export async function runHttpFaults(faults: readonly HttpFault[], kinds: readonly Kind[], how: How): Promise<void> {
  const program = await buildHttpProgram()
  try {
    await Promise.all(
      kinds.map((kind, at) =>
        runOn(
          kind,
          program,
          faults.filter((_, n) => n % kinds.length === at),
          { ...how, seed: how.seed + at },
        ),
      ),
    )
  } finally {
    program.remove()
  }
}

async function runOn(
  kind: Kind,
  program: HttpProgram,
  faults: readonly HttpFault[],
  { seed, say, onOutcome }: How,
): Promise<void> {
  let bench: HttpBench | undefined
  try {
    for (const [at, { name, fault, isRedisWell = false }] of faults.entries()) {
      let problems: readonly Problem[]
      let line = 'no result'
      try {
        bench ??= await HttpBench.start(kind, program, seed + at)
        const round = await bench.round(fault, isRedisWell)
        problems = round.problems
        line = lineOf(round, isRedisWell)
      } catch (error) {
        problems = [{ wrong: 'other', text: String(error instanceof Error ? error.stack : error) }]
      }
      say(`${problems.length === 0 ? 'ok' : 'FAILED'} ${kind}: ${name}: ${line}`)
      for (const { wrong, text } of problems.slice(0, 10)) say(`    ${wrong}: ${text}`)
      onOutcome({ kind, name, problems })
      if (problems.length === 0) continue
      // what went wrong must not disturb the next ones
      say(bench?.output ?? '')
      await bench?.stop()
      bench = undefined
    }
    const problems = (await bench?.verify()) ?? []
    const name = 'SQL and Redis agree at the end'
    say(`${problems.length === 0 ? 'ok' : 'FAILED'} ${kind}: ${name}`)
    for (const { wrong, text } of problems) say(`    ${wrong}: ${text}`)
    onOutcome({ kind, name, problems })
  } finally {
    await bench?.stop()
  }
}

/** Whether the bench finds a fault that was put into the journal: in which round, or how it did not. */
export async function findHttpPlant(
  { plant, shownBy, foundAs }: (typeof HTTP_PLANTS)[number],
  kind: Kind,
  seed: number,
): Promise<{ readonly rounds: number; readonly found: Problem | undefined; readonly others: readonly Problem[] }> {
  const shows = HTTP_FAULTS.find(({ name }) => name === shownBy)
  if (shows === undefined) throw new Error(`there is no fault "${shownBy}"`)
  const program = await buildHttpProgram(plant)
  const bench = await HttpBench.start(kind, program, seed, PLANT_DRAIN_MS)
  try {
    let problems: readonly Problem[] = []
    for (let rounds = 1; ; rounds++) {
      problems = (await bench.round(shows.fault, false)).problems
      const found = problems.find(({ wrong }) => wrong === foundAs)
      if (found !== undefined || problems.length > 0 || rounds === PLANT_ROUNDS)
        return { rounds, found, others: problems }
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

function plantOf(what: string): Plant {
  const found = PLANTS.find((plant) => plant.what === what)
  if (found === undefined) throw new Error(`there is no planted fault "${what}"`)
  return found
}
