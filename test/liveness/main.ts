/** Plays all cells of the liveness matrix, many side by side. `npm run test:liveness` starts it. */
import { parseArgs } from 'node:util'
import { eventually } from '../support/events.js'
import { randomFrom } from '../support/random.js'
import { allCells, type Cell } from './cells.js'
import { startPlace, type Place, type PlaceName } from './places.js'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    parallel: { type: 'string', default: '12' },
  },
})
const seed = Number(values.seed)
const cells = allCells().filter(({ name }) => name.includes(values.only))
const random = randomFrom(seed)
/** Each cell has its own, so that it is the same whatever else is played. */
const seeds = new Map(allCells().map(({ name }) => [name, Math.floor(random() * 2 ** 31)]))
const places = new Map<PlaceName, Promise<Place>>()
/** This process does both ends of each handshake, so few at once. */
const AT_ONCE: { readonly [P in PlaceName]?: number } = { TLS: 2 }
const underWay = new Map<PlaceName, number>()
const rejections: string[] = []
let failed = 0

process.on('unhandledRejection', (reason) => {
  rejections.push(`unhandled rejection: ${(reason instanceof Error && reason.stack) || String(reason)}`)
})

const started = performance.now()
const waiting = [...cells].sort((a, b) => Number(b.isAlone ?? false) - Number(a.isAlone ?? false))
await Promise.all(Array.from({ length: Number(values.parallel) }, work))
for (const place of places.values()) await (await place).stop()

for (const rejection of new Set(rejections)) console.log(`FAILED  ${rejection}`)
const open = (): string[] => process.getActiveResourcesInfo().filter((kind) => /TCP|Timeout/.test(kind))
await eventually(() => open().length === 0 || Promise.reject(new Error('still open')), 3_000).catch(() => undefined)
const left = open()
if (left.length > 0) console.log(`FAILED  left open in the end: ${left.join(', ')}`)
failed += rejections.length + Number(left.length > 0)
console.log(`${cells.length} cells in ${Math.round((performance.now() - started) / 1_000)} s`)
console.log(`${Math.max(0, cells.length - failed)} passed, ${failed} failed`)
process.exit(failed > 0 || cells.length === 0 ? 1 : 0)

async function work(): Promise<void> {
  for (let cell = next(); cell !== undefined; cell = next()) {
    count(cell.place, 1)
    await play(cell)
    count(cell.place, -1)
  }
}

/** The next cell whose place has room; a cell whose place is full is left to the workers of that place. */
function next(): Cell | undefined {
  const at = waiting.findIndex(({ place }) => (underWay.get(place) ?? 0) < (AT_ONCE[place] ?? Infinity))
  return at === -1 ? undefined : waiting.splice(at, 1)[0]
}

function count(place: PlaceName, by: number): void {
  underWay.set(place, (underWay.get(place) ?? 0) + by)
}

async function play(cell: Cell): Promise<void> {
  const began = performance.now()
  let problems: string[]
  try {
    const place = cell.isAlone === true ? await startPlace(cell.place) : await shared(cell.place)
    problems = await cell.run(place, randomFrom(seeds.get(cell.name) ?? 0))
    if (cell.isAlone === true) await place.stop()
  } catch (error) {
    problems = [String(error instanceof Error ? error.stack : error)]
  }
  const seconds = ((performance.now() - began) / 1_000).toFixed(1)
  if (problems.length === 0) return console.log(`ok      ${cell.name} (${seconds} s)`)
  failed++
  const shown = problems.slice(0, 6).map((problem) => `\n          ${problem}`)
  const more = problems.length > 6 ? `\n          and ${problems.length - 6} more` : ''
  const again = `npm run test:liveness -- --seed ${seed} --only ${JSON.stringify(cell.name)}`
  console.log(`FAILED  ${cell.name} (${seconds} s)${shown.join('')}${more}\n          again: ${again}`)
}

function shared(name: PlaceName): Promise<Place> {
  let place = places.get(name)
  if (place === undefined) places.set(name, (place = startPlace(name)))
  return place
}
