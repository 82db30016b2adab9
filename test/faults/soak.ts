/** Fleets that live for long, and one random fault after the other. `npm run soak` runs it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { LAYOUTS } from '../../src/queues/delayed-options.js'
import { randomFrom } from '../support/random.js'
import { Bench, endIdleWorkers, lineOf, problemsOf, type Result } from './bench/bench.js'
import type { Stage } from './bench/stage.js'
import { groups, type Group } from './catalogue.js'
import { soakReport, type Heap, type Round, type SoakSettings } from './soak-report.js'

/** The memory that a process may hold at the end beyond that after its first rounds; garbage is collected before each reading. */
const HEAP_GROWTH_MIB = 24
const WARM_UP_ROUNDS = 5
/** The messages that must be left at the end are not due before it, however long the soak lasts. */
const FAR_MS = 30 * 24 * 3_600_000

interface Place {
  readonly group: Group
  readonly stage: Stage
  bench: Bench
}

// the servers end with the process, and a signal alone would end it without a word to them
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

// the workers do not keep this process alive, which waits for them in the end
const alive = setInterval(() => undefined, 60_000)

const settings = JSON.parse(process.argv[2] ?? '') as SoakSettings
const random = randomFrom(settings.seed)
const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T

const rounds: Round[] = []
const heaps: Heap[] = []
const began = performance.now()
const minutesSince = (): number => (performance.now() - began) / 60_000

const places: Place[] = []
for (const group of groups.filter(({ soak }) => soak > 0)) {
  const stage = await group.start()
  await stage.healthy()
  places.push({ group, stage, bench: await newBench(group, stage) })
}
let weighted = places.flatMap((place) => Array.from({ length: place.group.soak }, () => place))

while (minutesSince() < settings.minutes && weighted.length > 0) await play(pick(weighted))

for (const { bench, stage, group } of places) {
  const left = await bench.stop()
  if (left.length > 0) rounds.push({ at: minutesSince(), place: group.title, fault: 'the end', problems: left })
  await stage.stop()
}
await endIdleWorkers()
clearInterval(alive)
for (const { group } of places) {
  const own = heaps.filter(({ place }) => place === group.title).map(({ mebibytes }) => mebibytes)
  const growth = (own.at(-1) ?? 0) - (own[Math.min(WARM_UP_ROUNDS, own.length - 1)] ?? 0)
  if (growth <= HEAP_GROWTH_MIB) continue
  const problem = `the largest heap grew by ${growth.toFixed(1)} MiB, at most ${HEAP_GROWTH_MIB} it may`
  rounds.push({ at: minutesSince(), place: group.title, fault: 'memory', problems: [problem] })
}

const { text, data, failed } = soakReport(settings, minutesSince(), rounds, heaps)
mkdirSync(dirname(settings.out), { recursive: true })
writeFileSync(`${settings.out}.md`, text)
writeFileSync(`${settings.out}.json`, `${JSON.stringify(data, null, 1)}\n`)
console.log(text)
console.log(`Written to ${settings.out}.md and .json`)
console.log(`${rounds.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

async function newBench(group: Group, stage: Stage): Promise<Bench> {
  const layout = pick(LAYOUTS)
  const load = { ...group.bench?.load, farMs: FAR_MS }
  const bench = new Bench({ stage, seed: Math.floor(random() * 2 ** 31), layout, ...group.bench, load })
  await bench.start()
  return bench
}

async function play(place: Place): Promise<void> {
  const { group, stage, bench } = place
  const scenario = pick(group.scenarios.filter(({ alone }) => alone !== true))
  const at = minutesSince()
  let result: Result | undefined
  const problems: string[] = []
  try {
    result = await bench.round(() => scenario.fault(bench, stage))
    problems.push(...problemsOf(result, scenario.allowed ?? {}))
    await scenario.also?.(result, bench, stage)
    if (problems.length === 0) await bench.turnPage()
    const reports = await Promise.all(bench.all.map((worker) => worker.report()))
    const largest = Math.max(...reports.map(({ heapBytes }) => heapBytes)) / 1024 / 1024
    heaps.push({ at, place: group.title, mebibytes: Math.round(largest * 10) / 10 })
  } catch (error) {
    problems.push(String(error))
  }
  rounds.push({ at, place: group.title, fault: scenario.name, problems, ...(result && { result }) })
  const outcome = result === undefined ? 'no result' : lineOf(result)
  console.log(`[${at.toFixed(1)} min] ${problems.length === 0 ? 'ok' : 'FAILED'}  ${scenario.name}: ${outcome}`)
  if (problems.length === 0) return
  console.log(`  ${problems.join('\n  ')}`)
  // what went wrong must not be held against the next faults
  problems.push(...(await bench.stop()))
  try {
    await stage.healthy()
    place.bench = await newBench(group, stage)
  } catch (error) {
    problems.push(`nothing more was tried there: ${String(error)}`)
    weighted = weighted.filter((other) => other !== place)
  }
}
