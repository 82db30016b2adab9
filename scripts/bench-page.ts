// `npm run benchmark:page`: the page of the built service in a Chromium, with many topics and messages: how long each screen takes, the longest
// call at Redis meanwhile, memory, and what it costs to watch the overview while messages are pushed. Written to benchmarks/results, and into
// docs/performance.md. `--quick`: a short look, written to .cache. `--built`: without building before. CHROMIUM names another browser.
// `--journal`: with a journal in SQLite, into which the messages go through the API; that result has a file of its own. `--begin 02:29`: the
// data is made at once, and the measurement waits for that time of the day (UTC), such as one at which the machine is idle.
// `--realtime`, where `chrt` is there and may: Redis goes before all other processes, so that no time for which it waited for a processor is in
// its SLOWLOG, however busy the machine is.
//
//   npm run benchmark:page -- [--topics 10000] [--messages 1000000,10000000] [--visits 5] [--rate 100] [--seconds 20] [--quick] [--built] [--realtime] [--journal] [--begin HH:MM]
import { Redis } from 'ioredis'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium, type Browser, type Page } from 'playwright-core'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { beginNoting, cpuSeconds, longestCall, memoryMb, NOTED_MS, type LongestCall } from './page-bench/costs.js'
import {
  addDeadLetters,
  addFinished,
  addMessages,
  makeTopics,
  poolOf,
  pushMessages,
  startReceiver,
  topicAt,
} from './page-bench/data.js'
import { startFastStream } from './page-bench/fast-stream.js'
import { screensOf, screensOfJournal, type ScreenOf } from './page-bench/screens.js'
import { findServerBin, startServer } from './redis.js'
import { fillPage, lineOf, medianOf, type Goal, type Row } from './service-bench/report.js'
import type { Overview } from '../src/server/ui/api/types.js'
import { startServiceProcess } from './service-process.js'

const { values: given } = parseArgs({
  options: {
    topics: { type: 'string' },
    messages: { type: 'string' },
    visits: { type: 'string' },
    rate: { type: 'string', default: '100' },
    seconds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    built: { type: 'boolean', default: false },
    realtime: { type: 'boolean', default: false },
    journal: { type: 'boolean', default: false },
    begin: { type: 'string' },
  },
})
const topics = Number(given.topics ?? (given.quick ? 200 : 10_000))
const sizes = (given.messages ?? (given.quick ? '20000' : '1000000,10000000')).split(',').map(Number)
const visits = Number(given.visits ?? (given.quick ? 2 : 5))
const rate = Number(given.rate)
const seconds = Number(given.seconds ?? (given.quick ? 3 : 20))
const PATIENCE_MS = 90_000
const FIRST_PICTURE: Goal = { below: 500 }
const LONGEST_MS = 5
const WRITTEN_MS = 600_000
/** Overviews a second that a page has to stand. */
const UPDATES = 100

/** One visit of a screen. */
interface Visit {
  readonly ms: number
  readonly longest: LongestCall
}

interface Measured {
  readonly name: string
  readonly visits: readonly Visit[]
  readonly problem?: string
}

interface OfSize {
  readonly messages: number
  readonly screens: readonly Measured[]
  readonly rows: readonly Row[]
}

ensureInstalled(root, { workspaces: true })
if (!given.built) {
  for (const step of ['build-server', 'build-ui'])
    spawnSync(process.execPath, ['scripts/run.mjs', step], { cwd: root, stdio: 'inherit' })
}
const bin = findServerBin() ?? ''
if (bin === '') throw new Error('there is no redis-server or valkey-server on PATH')
const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
if (!existsSync(executablePath))
  throw new Error(`there is no ${executablePath}: install Chromium, or name it in CHROMIUM`)

const begun = performance.now()
let loadBefore = loadavg()[0] ?? 0
const journalDir = given.journal ? mkdtempSync(join(tmpdir(), 'redelayed-page-bench-')) : undefined
const server = await startServer({ bin })
if (given.realtime) {
  const { status, stderr } = spawnSync('chrt', ['--fifo', '--pid', '10', String(server.pid)], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`no real-time priority for Redis: ${stderr ?? 'there is no chrt'}`)
}
const redis = new Redis(server.url)
const receiver = await startReceiver()
const hooks = ['--webhook-ports', String(receiver.port), '--webhook-networks', '127.0.0.0/8']
// beside the topics with messages there are some with dead letters
const journal = journalDir === undefined ? [] : ['--journal', `sqlite:${join(journalDir, 'journal.db')}`]
const service = await startServiceProcess(server.url, [...hooks, ...journal, '--max-topics', String(topics + 100)])
const fast = await startFastStream(service.url, UPDATES)
const pool = poolOf(service)
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
const measured: OfSize[] = []
try {
  await makeTopics(pool, topics)
  const endpoint = await addDeadLetters(pool, receiver, given.quick)
  if (given.journal) await addFinished(pool, given.quick)
  await beginNoting(redis)
  for (const [at, messages] of sizes.entries()) {
    const from = performance.now()
    if (given.journal) await pushMessages(pool, topics, sizes[at - 1] ?? 0, messages)
    else await addMessages(server.url, topics, sizes[at - 1] ?? 0, messages)
    const took = Math.round((performance.now() - from) / 1_000)
    console.log(`\n${count(messages)} messages in ${count(topics)} topics, made in ${took} s`)
    if (given.journal) await untilWritten()
    if (at === 0) await untilBegin()
    const [topic, busiest] = [topicAt(7, topics), topicAt(0, topics)]
    const screens = screensOf(topic, endpoint)
    measured.push(await ofSize(messages, given.journal ? screensOfJournal(screens, busiest) : screens))
  }
} finally {
  await browser.close()
  pool.close()
  fast.close()
  await service.stop()
  receiver.close()
  redis.disconnect()
  await server.stop()
  if (journalDir !== undefined) rmSync(journalDir, { recursive: true, force: true })
}
const text = pageOf(measured)
const stem = given.quick
  ? join(root, '.cache/bench-page')
  : join(root, `benchmarks/results/${new Date().toISOString().slice(0, 10)}-page${given.journal ? '-journal' : ''}`)
mkdirSync(dirname(stem), { recursive: true })
writeFileSync(`${stem}.json`, `${JSON.stringify({ topics, visits, rate, seconds, measured }, undefined, 2)}\n`)
writeFileSync(
  `${stem}.md`,
  `# The page for operators, with ${given.journal ? 'a journal in SQLite' : 'many topics and messages'}\n\n${text}\n`,
)
if (!given.quick && !given.journal) fillPage(join(root, 'docs/performance.md'), 'bench-page', text)
console.log(`\n${text}`)
process.exit(measured.some(({ screens }) => screens.some(({ problem }) => problem !== undefined)) ? 1 : 0)

async function ofSize(messages: number, screens: readonly ScreenOf[]): Promise<OfSize> {
  const before = memoryMb(service.pid).now
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, locale: 'en-GB' })
  const page = await context.newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  await page.goto(`${service.url}/ui`)
  await page.getByLabel('API key').fill(service.key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('.tile-value').first().waitFor()
  const counted = performance.now()
  await page.locator('main >> text=still being counted').waitFor({ state: 'detached' })
  const countedMs = performance.now() - counted
  const all: Measured[] = []
  for (const screen of screens) {
    const one = await measure(page, screen)
    console.log([one.name.padEnd(44), one.problem ?? one.visits.map(visitText).join(', ')].join(' '))
    all.push(one)
  }
  const [first, quiet, busy] = [await firstPictures(page), await watching(page, 0), await watching(page, rate)]
  const updated = await watching(page, 0, fast.url)
  const memory = memoryMb(service.pid)
  await context.close()
  const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1] ?? NaN) / 2 ** 20
  const rows = [
    rowOf('first useful picture of the overview, by the clock of the page', 'ms', first, FIRST_PICTURE),
    rowOf('the overview, after the first picture: until all topics were counted', 'ms', [countedMs]),
    ...costRows('no push', quiet),
    ...costRows(`${rate} pushes a second`, busy, { below: 20 }),
    rowOf('the same page behind a proxy that sends more overviews: so many a second', '', [updated.updates]),
    ...costRows(`${UPDATES} overviews a second`, updated, { below: 20 }),
    ...(journalDir === undefined ? [] : [rowOf('the file of the journal', 'MB', [fileMb(journalDir)])]),
    rowOf('memory of the service before the page was opened', 'MB', [before]),
    rowOf('memory of the service after all that', 'MB', [memory.now]),
    rowOf('memory of the service at most', 'MB', [memory.most]),
    rowOf('memory of Redis', 'MB', [used]),
  ]
  for (const row of rows) console.log(lineOf(row))
  return { messages, screens: all, rows }
}

/** By an address of its own each time, as after a click on a bookmark. */
async function measure(page: Page, { name, path, shows, visits: most = visits }: ScreenOf): Promise<Measured> {
  const all: Visit[] = []
  try {
    for (let visit = 0; visit < Math.min(most, visits); visit++) {
      await page.goto('about:blank')
      await longestCall(redis)
      const from = performance.now()
      await page.goto(`${service.url}/ui${path}`)
      await page.locator(shows).first().waitFor()
      const ms = performance.now() - from
      all.push({ ms, longest: await longestCall(redis) })
    }
    return { name, visits: all }
  } catch (thrown) {
    const [line = ''] = String(thrown instanceof Error ? thrown.message : thrown).split('\n')
    return { name, visits: all, problem: line }
  }
}

/** Milliseconds from the begin of the navigation to the frame with the first figures. */
async function firstPictures(page: Page): Promise<number[]> {
  const all: number[] = []
  for (let visit = 0; visit < visits; visit++) {
    await page.goto('about:blank')
    await page.goto(`${service.url}/ui`)
    await page.locator('.tile-value:text-matches("[0-9]")').first().waitFor()
    all.push(Number(await page.evaluate('performance.now()')))
  }
  return all
}

/** Until SQL has all changes. */
async function untilWritten(): Promise<void> {
  const pending = async (): Promise<number | null | undefined> => {
    const { journal: its } = JSON.parse(await pool.call('/v1/overview', '', 'GET')) as Pick<Overview, 'journal'>
    return its?.pending
  }
  for (const from = performance.now(); (await pending()) !== 0;) {
    if (performance.now() - from > WRITTEN_MS) throw new Error('SQL still lacks changes')
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

/** Until the time of the day that is given. */
async function untilBegin(): Promise<void> {
  if (given.begin === undefined) return
  const [hour = 0, minute = 0] = given.begin.split(':').map(Number)
  const left = new Date().setUTCHours(hour, minute, 0, 0) - Date.now()
  console.log(`made; ${Math.max(0, Math.round(left / 1_000))} s until ${given.begin}`)
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, left)))
  loadBefore = loadavg()[0] ?? 0
}

function fileMb(dir: string): number {
  return readdirSync(dir).reduce((sum, name) => sum + statSync(join(dir, name)).size, 0) / 2 ** 20
}

interface Shares {
  /** Overviews a second that the proxy has sent. */
  readonly updates: number
  readonly page: number
  readonly renderer: number
  readonly service: number
  readonly redis: number
}

/** What of a core the processes use while the overview is open and messages are pushed, in percent. */
async function watching(page: Page, perSecond: number, url = service.url): Promise<Shares> {
  await page.goto(`${url}/ui`)
  await page.locator('.tile-value').first().waitFor()
  const thread = await mainThreadOf(page)
  const renderers = await renderersOf(browser)
  const read = async () => ({
    ...{ at: performance.now(), page: await thread(), renderer: await renderers() },
    ...{ service: cpuSeconds(service.pid), redis: cpuSeconds(server.pid), sent: fast.sent() },
  })
  const before = await read()
  const sending: Promise<unknown>[] = []
  for (let pushed = 0; performance.now() - before.at < seconds * 1_000;) {
    const wanted = Math.floor(((performance.now() - before.at) / 1_000) * perSecond)
    for (; pushed < wanted; pushed++) {
      const path = `/v1/topics/${topicAt(pushed * 13, topics)}/messages`
      sending.push(pool.call(path, JSON.stringify({ delay: 86_400_000, body: { pushed } })))
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await Promise.all(sending)
  const after = await read()
  const lasted = (after.at - before.at) / 1_000
  const share = (of: Exclude<keyof Shares, 'updates'>): number => (100 * (after[of] - before[of])) / lasted
  const updates = (after.sent - before.sent) / lasted
  return { updates, page: share('page'), renderer: share('renderer'), service: share('service'), redis: share('redis') }
}

/** Reads how many seconds the main thread of a page has worked. */
async function mainThreadOf(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  return async () => {
    const { metrics } = await session.send('Performance.getMetrics')
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN
  }
}

/** The same of all processes that show pages. */
async function renderersOf(of: Browser): Promise<() => Promise<number>> {
  const session = await of.newBrowserCDPSession()
  return async () => {
    const { processInfo } = await session.send('SystemInfo.getProcessInfo')
    return processInfo.filter(({ type }) => type === 'renderer').reduce((sum, { cpuTime }) => sum + cpuTime, 0)
  }
}

function costRows(how: string, shares: Shares, goal?: Goal): Row[] {
  return [
    rowOf(`the overview open, ${how}: the page (all of its process)`, '% of a core', [shares.renderer], goal),
    rowOf(`the same: the main thread of the page`, '% of a core', [shares.page]),
    rowOf(`the same: the service`, '% of a core', [shares.service]),
    rowOf(`the same: Redis`, '% of a core', [shares.redis]),
  ]
}

function pageOf(all: readonly OfSize[]): string {
  const machine = `${process.platform} ${process.arch}, ${cpus().length} × ${cpus()[0]?.model ?? '?'}, ${Math.round(totalmem() / 2 ** 30)} GiB`
  const options = process.argv.slice(2).join(' ')
  const command = `npm run benchmark:page${options === '' ? '' : ` -- ${options}`}`
  return [
    `${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, ${machine}; node ${process.version}, redis ${versionOf(bin)}, Chromium ${versionOf(executablePath)}. \`${command}\`,`,
    `${Math.round((performance.now() - begun) / 1_000)} s, load before: ${loadBefore.toFixed(2)}. ${count(topics)} topics, ${given.journal ? 'each message pushed through the API into a journal in SQLite' : 'no journal'}; service, Redis (no persistence), the browser and the clients share the machine. Each screen was opened`,
    `${visits} times, the doctor once; the time is from the request for the page until it shows what it is for. The longest call at Redis is by its SLOWLOG: the`,
    `shortest, the median and the longest of the visits. Calls under ${NOTED_MS} ms are not in it${given.realtime ? '; Redis had a real-time priority, so that no time for which it waited for a processor is, either' : ', and the time for which one waited for a processor is'}. The aim is less than ${LONGEST_MS} ms.`,
    ...all.flatMap((one) => [
      '',
      `With ${count(one.messages)} messages:`,
      '',
      ...screenTable(one),
      '',
      ...rowTable(one),
    ]),
  ].join('\n')
}

function screenTable({ screens }: OfSize): string[] {
  return [
    '| screen | first visit | median | longest call at Redis |',
    '|---|---|---|---|',
    ...screens.map(({ name, visits: all, problem }) => {
      if (problem !== undefined) return `| ${name} | not shown: ${problem.replaceAll('|', '/')} | | |`
      const longest = [...all].sort((a, b) => b.longest.ms - a.longest.ms)[0]?.longest
      const calls = all.map(({ longest: one }) => one.ms)
      const [least, median] = [Math.min(...calls), medianOf(calls)]
      const texts = [least, median, longest?.ms ?? 0].map(callText).join(', ')
      return `| ${name} | ${ms(all[0]?.ms)} | ${ms(medianOf(all.map((one) => one.ms)))} | ${texts}${longest?.what ? ` (${longest.what})` : ''} |`
    }),
  ]
}

function rowTable({ rows }: OfSize): string[] {
  const size = `| the page compressed with brotli, all files | ${(pageBytes() / 1_024).toFixed(1)} KB | | < 80 | ${pageBytes() < 80 * 1_024 ? 'yes' : '**no**'} |`
  return ['| what | median | lowest to highest | goal | met |', '|---|---|---|---|---|', size, ...rows.map(lineOf)]
}

function pageBytes(): number {
  const folder = join(root, 'src/server/dist/ui')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.br'))
  return files.reduce((sum, name) => sum + readFileSync(join(folder, name)).length, 0)
}

function rowOf(what: string, unit: string, values: readonly number[], goal?: Goal): Row {
  return { what, unit, values: values.map((value) => Number(value.toFixed(1))), ...(goal && { goal }) }
}

function visitText({ ms: took, longest }: Visit): string {
  return `${Math.round(took)} ms (${longest.ms === 0 ? '-' : `${longest.ms.toFixed(1)} ${longest.what}`})`
}

function callText(value: number): string {
  const text = value === 0 ? `< ${NOTED_MS} ms` : `${value.toFixed(1)} ms`
  return value >= LONGEST_MS ? `**${text}**` : text
}

function ms(value: number | undefined): string {
  return value === undefined ? '–' : `${Math.round(value)} ms`
}

function count(value: number): string {
  return value.toLocaleString('en')
}

function versionOf(command: string): string {
  const { stdout } = spawnSync(command, ['--version'], { encoding: 'utf8' })
  return /\d+\.\d+(\.\d+)?/.exec(stdout ?? '')?.[0] ?? '?'
}
