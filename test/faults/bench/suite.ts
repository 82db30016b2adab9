import { appendFileSync } from 'node:fs'
import type { AnyScenario } from '../scenarios/scenario.js'
import type { Stage } from './stage.js'

/** Whatever plays a fault, from the start of its fleet until nothing is left of it. */
export interface Runner<R> {
  start(): Promise<void>
  round(fault: () => Promise<void>): Promise<R>
  stop(): Promise<string[]>
}

export interface AnyGroup<B, R, A> {
  readonly title: string
  readonly start: () => Promise<Stage>
  readonly scenarios: readonly AnyScenario<Stage, B, R, A>[]
}

/** The evaluation of a result. */
export interface Judge<R, A> {
  /** One line for people. */
  lineOf(result: R): string
  /** Everything in it that should not be. */
  problemsOf(result: R, allowed: A): string[]
}

interface Prepared<B> {
  readonly bench: B
  /** Further lines of the report. */
  readonly record?: object
}

export const seed = Number(process.env['REDELAYED_FAULTS_SEED'])
export const isLong = process.env['REDELAYED_FAULTS_LONG'] === '1'
const rounds = Number(process.env['REDELAYED_FAULTS_ROUNDS'])
const report = process.env['REDELAYED_FAULTS_REPORT']
const TIMEOUT_MS = 240_000
/** So that the rounds of one scenario differ. */
export const SEED_STEP = 7_919

/** Mocha's tests: each place is started once, and each of its faults done there as often as there are rounds. */
export function describeFaults<
  B extends Runner<R>,
  R extends object,
  A extends object,
  G extends AnyGroup<B, R, A>,
>(params: {
  readonly title: string
  readonly groups: readonly G[]
  readonly judge: Judge<R, A>
  readonly prepare: (stage: Stage, group: G, scenario: G['scenarios'][number], ownSeed: number) => Prepared<B>
  /** More tests of a group. */
  readonly also?: (group: G, stage: () => Stage) => void
  /** Ends what the benches share. */
  readonly end: () => Promise<void>
}): void {
  const { title, groups, judge, prepare, also, end } = params
  describe(`${title}, seed ${seed}`, function () {
    this.timeout(TIMEOUT_MS)
    after(end)

    for (const group of groups) {
      describe(group.title, () => {
        let stage: Stage
        before(async () => {
          stage = await group.start()
          await stage.healthy()
          // the bench's own connections, which must not look like something left behind
          await Promise.all(stage.servers.map(({ port }) => stage.to(port)))
        })
        after(() => stage?.stop())
        for (const scenario of group.scenarios) {
          if (scenario.isLong === true && !isLong) continue
          for (let round = 0; round < rounds; round++) {
            const name = rounds === 1 ? scenario.name : `${scenario.name}, round ${round + 1}`
            it(name, async () => {
              const ownSeed = seed + round * SEED_STEP
              const { bench, record } = prepare(stage, group, scenario, ownSeed)
              const more = { stage: group.title, seed: ownSeed, ...record }
              const problems = await play(bench, stage, scenario, judge, more)
              if (problems.length === 0) return
              const again = `npm run test:faults -- --seed ${ownSeed} --only ${JSON.stringify(scenario.name)}`
              throw new Error(`${problems.join('\n')}\nagain: ${again}`)
            })
          }
        }
        also?.(group, () => stage)
      })
    }
  })
}

async function play<B extends Runner<R>, R extends object, A extends object>(
  bench: B,
  stage: Stage,
  scenario: AnyScenario<Stage, B, R, A>,
  judge: Judge<R, A>,
  more: object,
): Promise<string[]> {
  const problems: string[] = []
  let found: R | undefined
  let takeovers = 0
  const before = stage.takeovers?.() ?? 0
  try {
    await bench.start()
    const result = (found = await bench.round(() => scenario.fault(bench, stage)))
    takeovers = (stage.takeovers?.() ?? 0) - before
    const line = takeovers > 1 ? `${judge.lineOf(result)}; ${takeovers} takeovers` : judge.lineOf(result)
    console.log(`        ${line}`)
    const wrong = judge.problemsOf(result, allowedIn(takeovers, scenario.allowed))
    if (wrong.length > 0) problems.push(line, ...wrong)
    await scenario.also?.(result, bench, stage)
  } catch (error) {
    problems.push(String(error instanceof Error ? error.stack : error))
  }
  problems.push(...(await bench.stop()))
  note({ name: scenario.name, ...more, ...found, takeovers, problems })
  return problems
}

/** On a busy machine sentinels can replace the new master as well, several times in one fault: each takeover forgets as much as the first. */
export function allowedIn<A extends object>(takeovers: number, allowed?: A): A {
  const times = Math.max(1, takeovers)
  const limits = Object.entries<number>({ ...allowed }).map(([kind, most]) => [kind, most * times])
  return Object.fromEntries(limits) as A
}

/** A line of the report. */
export function note(record: object): void {
  if (report !== undefined) appendFileSync(report, `${JSON.stringify(record)}\n`)
}
