// `npm run benchmark:service`: speed and lateness of the built service over HTTP, with the clients on the same machine, in some seven minutes. Each
// part has a Redis and a service of its own, and is written to benchmarks/results as soon as it has ended; at the end the table goes there too, and
// into docs/performance.md. `--only push,idle` measures these parts and keeps the others of the day; `--resume` those that are missing.
// `--quick`: a short look at everything, written to .cache. `--built`: without building the service before.
//
//   npm run benchmark:service -- [--seconds 5] [--runs 3] [--pending 1000000] [--polls 10000] [--rate 500] [--only push,idle] [--resume] [--quick] [--built]
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo } from 'node:net'
import { cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { findServerBin, startServer } from './redis.js'
import { BeanstalkConnection, startBeanstalkd } from './service-bench/beanstalkd.js'
import { HttpConnection, HttpPool, requestOf } from './service-bench/http-client.js'
import { findNsqd, NsqConsumer, startNsqd } from './service-bench/nsqd.js'
import {
  fillPage,
  isMet,
  lineOf,
  medianOf,
  readReport,
  tableOf,
  withPart,
  writeReport,
  type Goal,
  type Part,
  type Report,
  type Row,
} from './service-bench/report.js'
import { startServiceProcess, type ServiceProcess } from './service-process.js'

const { values: given } = parseArgs({
  options: {
    seconds: { type: 'string' },
    runs: { type: 'string' },
    pending: { type: 'string' },
    polls: { type: 'string' },
    rate: { type: 'string' },
    only: { type: 'string', default: '' },
    resume: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    built: { type: 'boolean', default: false },
  },
})
const numberOf = (name: 'seconds' | 'runs' | 'pending' | 'polls' | 'rate', full: number, quick: number): number =>
  Number(given[name] ?? (given.quick ? quick : full))
const options = {
  seconds: numberOf('seconds', 5, 1),
  runs: numberOf('runs', 3, 1),
  pending: numberOf('pending', 1_000_000, 5_000),
  polls: numberOf('polls', 10_000, 200),
  rate: numberOf('rate', 500, 100),
}
const { seconds, runs, pending, polls, rate } = options
const CONNECTIONS = 64
const BATCH = 1_000
const BODY = { order: 7, text: 'x'.repeat(80) }

ensureInstalled(root, { workspaces: true })
if (!given.built) spawnSync(process.execPath, ['scripts/run.mjs', 'build-server'], { cwd: root, stdio: 'inherit' })
const bin = findServerBin() ?? ''
if (bin === '') throw new Error('there is no redis-server or valkey-server on PATH')
const receiver = await startReceiver()
const parts: Readonly<Record<string, () => Promise<Row[]>>> = {
  push: pushes,
  lateness: latenesses,
  deliveries,
  hanging,
  idle,
  beside,
}
const order = Object.keys(parts)
const day = new Date().toISOString().slice(0, 10)
const file = given.quick ? join(root, '.cache/bench-service') : join(root, `benchmarks/results/${day}-service`)
const kept = (given.resume || given.only !== '' ? readReport(`${file}.json`)?.parts : undefined) ?? []
const chosen = given.only === '' ? order : given.only.split(',')
let report: Report = {
  command: `npm run benchmark:service ${process.argv.slice(2).join(' ')}`.trim(),
  date: new Date().toISOString(),
  machine: `${process.platform} ${process.arch}, ${cpus().length} × ${cpus()[0]?.model ?? '?'}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
  versions: {
    node: process.version,
    redis: versionOf(bin, '--version'),
    beanstalkd: versionOf('beanstalkd', '-v'),
    nsqd: versionOf(findNsqd() ?? 'nsqd', '--version'),
  },
  options,
  parts: kept,
}
for (const name of chosen) {
  const measure = parts[name]
  if (measure === undefined) throw new Error(`there is no part ${name}: ${order.join(', ')}`)
  if (given.resume && kept.some((part) => part.name === name && part.problem === undefined)) continue
  console.log(`\n${name} ...`)
  const loadBefore = loadavg()
    .map((load) => load.toFixed(2))
    .join(' ')
  const [at, begin] = [new Date().toISOString(), performance.now()]
  const measured = await measure().then(
    (rows) => ({ rows }),
    (thrown: unknown) => ({ rows: [], problem: String(thrown instanceof Error ? thrown.message : thrown) }),
  )
  const part: Part = { name, ...measured, loadBefore, at, seconds: Math.round((performance.now() - begin) / 1_000) }
  console.log([...part.rows.map(lineOf), part.problem ?? ''].join('\n'))
  report = { ...report, parts: withPart(report.parts, part, order) }
  writeReport(`${file}.json`, report)
}
const page = pageOf(report)
writeFileSync(`${file}.md`, `# The delay service: speed and lateness\n\n${page}\n`)
if (!given.quick) fillPage(join(root, 'docs/performance.md'), 'bench-service', page)
console.log(`\n${page}`)
const wrong = report.parts.filter(({ rows, problem }) => problem !== undefined || !rows.every(isMet))
process.exit(wrong.length > 0 && !given.quick ? 1 : 0)

function pageOf({ machine, versions, date, parts: measured, command }: Report): string {
  const used = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  const took = measured.reduce((sum, part) => sum + part.seconds, 0)
  const load = measured.map(({ name, loadBefore }) => `${name} ${loadBefore.split(' ')[0]}`)
  return [
    `${date.slice(0, 16).replace('T', ' ')} UTC, ${machine}; ${used.join(', ')}. \`${command}\`, ${took} s. Service, Redis (no persistence), receivers and clients share the`,
    `machine. Medians of ${runs} runs; load before each part: ${load.join(', ')}.`,
    '',
    tableOf(measured),
  ].join('\n')
}

function versionOf(command: string, flag: string): string {
  const { stdout } = spawnSync(command, [flag], { encoding: 'utf8' })
  return /\d+\.\d+(\.\d+)?/.exec(stdout ?? '')?.[0] ?? 'none'
}

async function pushes(): Promise<Row[]> {
  const [single, batched]: [number[][], number[][]] = [
    [[], []],
    [[], []],
  ]
  for (let run = 0; run < runs; run++) {
    for (const [at, flags] of [[], ['--journal', 'sqlite:./journal.db']].entries()) {
      await withService(flags, async (service) => {
        const message = { delay: 3_600_000, body: BODY }
        single[at]?.push(await perSecond(service, '/v1/topics/single/messages', JSON.stringify(message), CONNECTIONS))
        const batch = JSON.stringify(Array(BATCH).fill(message))
        batched[at]?.push(BATCH * (await perSecond(service, '/v1/topics/batched/messages/batch', batch, 8)))
      })
    }
  }
  const share = ([none = [], sync = []]: number[][]): number[] =>
    sync.map((each, run) => (100 * each) / (none[run] ?? NaN))
  return [
    rowOf(`single pushes, no journal, ${CONNECTIONS} connections`, 'a second', single[0], { atLeast: 8_000 }),
    rowOf(`pushes in batches of ${BATCH}, no journal`, 'a second', batched[0], { atLeast: 60_000 }),
    rowOf('single pushes, journal in SQLite, `sync`', 'a second', single[1]),
    rowOf(`pushes in batches of ${BATCH}, journal in SQLite, \`sync\``, 'a second', batched[1]),
    rowOf('single pushes, `sync` of those without a journal', '%', share(single), { atLeast: 40 }),
    rowOf('batches, `sync` of those without a journal', '%', share(batched), { atLeast: 40 }),
  ]
}

async function latenesses(): Promise<Row[]> {
  const [byPoll, byWebhook]: [number[], number[]] = [[], []]
  await withService([], async (service) => {
    await fill(service, 'late', pending)
    for (let run = 0; run < runs; run++) byPoll.push(await lateness(service, 'poll', 'late'))
    await endpointFor(service, 'late', receiver.url('/fast'), 64)
    for (let run = 0; run < runs; run++) byWebhook.push(await lateness(service, 'webhook', 'late'))
  })
  const how = `${rate} a second, ${pending.toLocaleString('en')} pending`
  return [
    rowOf(`lateness p99 by long poll, ${how}`, 'ms', byPoll, { below: 10.5 }),
    rowOf(`lateness p99 by webhook, ${how}`, 'ms', byWebhook, { below: 15.5 }),
  ]
}

async function deliveries(): Promise<Row[]> {
  const rates: number[] = []
  const count = given.quick ? 500 : 15_000
  for (let run = 0; run < runs; run++)
    await withService([], async (service) => {
      receiver.lateMs.length = 0
      await fill(service, 'hooks', count, 0)
      const begin = performance.now()
      await endpointFor(service, 'hooks', receiver.url('/fast'), 200)
      await until(() => receiver.lateMs.length >= count)
      rates.push(count / ((performance.now() - begin) / 1_000))
    })
  return [rowOf('webhook deliveries to one endpoint', 'a second', rates, { atLeast: 2_000 })]
}

/** Both in one service, the one right after the other. */
async function hanging(): Promise<Row[]> {
  const [alone, beside]: [number[], number[]] = [[], []]
  for (let run = 0; run < runs; run++)
    await withService([], async (service) => {
      await endpointFor(service, 'good', receiver.url('/fast'), 64)
      await lateness(service, 'webhook', 'good') // an instance learns of a new endpoint within a second or two
      alone.push(await lateness(service, 'webhook', 'good'))
      await endpointFor(service, 'hanging', receiver.url('/hang'), 64)
      await fill(service, 'hanging', 500, 0)
      beside.push(await lateness(service, 'webhook', 'good'))
    })
  const added = medianOf(beside) - medianOf(alone)
  return [
    rowOf('lateness p99 by webhook', 'ms', alone),
    rowOf('lateness p99 by webhook beside an endpoint that hangs', 'ms', beside),
    rowOf('what the endpoint that hangs adds', 'ms', [added], { below: 5 }),
  ]
}

async function idle(): Promise<Row[]> {
  const rows: Row[] = []
  await withService([], async (service, redis) => {
    const before = residentMb(service)
    const request = requestOf(service, '/v1/topics/idle/receive', '{"wait":60000}')
    const pool = new HttpPool(service)
    await pool.call('/v1/topics/idle', '{}', 'PUT')
    const all: HttpConnection[] = []
    while (all.length < polls) {
      const some = Array.from({ length: Math.min(200, polls - all.length) }, () => HttpConnection.open(service.url))
      for (const connection of await Promise.all(some)) {
        void connection.ask(request).catch(() => undefined)
        all.push(connection)
      }
    }
    const waiting = async (): Promise<number> =>
      Number(/^redelayed_waiting_receives (\d+)/m.exec(await pool.call('/metrics', '', 'GET'))?.[1] ?? 0)
    for (const end = Date.now() + 60_000; (await waiting()) < polls;) {
      if (Date.now() > end) throw new Error(`${await waiting()} of ${polls} polls wait`)
      await sleep(500)
    }
    // the connection that asks is not the service's
    const clients = ((await redis.client('LIST')) as string).trim().split('\n').length - 1
    const what = `${polls.toLocaleString('en')} idle long polls`
    rows.push(rowOf(`${what}: connections to Redis`, '', [clients], { below: 4.5 }))
    rows.push(rowOf(`${what}: memory of the service`, 'MB', [residentMb(service)], { below: 300 }))
    rows.push(rowOf('memory of the service before', 'MB', [before]))
    for (const connection of all) connection.close()
    pool.close()
  })
  return rows
}

/** Pushes and pulls of one message each, 64 under way, and jobs due after a second: in one run, one after the other. */
async function beside(): Promise<Row[]> {
  const rounds = Math.min(runs, 2)
  const figures = new Map<string, number[]>()
  const note = (what: string, value: number): void => void figures.set(what, [...(figures.get(what) ?? []), value])
  for (let round = 0; round < rounds; round++) {
    for (const [name, flags] of [
      ['redelayed-server, no journal: at least once, in the memory of Redis', []],
      [
        'redelayed-server, journal `sync`: at least once, on disk before the answer',
        ['--journal', 'sqlite:./journal.db'],
      ],
    ] as const)
      await withService(flags, async (service) => {
        const path = '/v1/topics/both'
        const body = JSON.stringify({ body: BODY })
        const half = seconds / 2
        const pushed = await perSecond(service, `${path}/messages`, body, CONNECTIONS, half)
        note(`pushes; ${name}`, pushed)
        note(`pulls; ${name}`, await pulls(service, Math.floor(pushed * half * 0.8)))
        await fill(service, 'alone', 0)
        note(`lateness p99; ${name}`, await lateness(service, 'poll', 'alone', 1_000))
      })
    for (const [name, isSynced] of [
      ['beanstalkd: at least once, in its memory', false],
      ['beanstalkd -b -f 0: at least once, on disk before the answer', true],
    ] as const) {
      const server = await startBeanstalkd(isSynced)
      if (server === undefined) throw new Error('beanstalkd is not installed: apt-get install beanstalkd')
      const connection = await BeanstalkConnection.open(server.port)
      const data = JSON.stringify(BODY)
      const count = given.quick ? 1_000 : isSynced ? 5_000 : 50_000
      note(`pushes; ${name}`, await rateOf(count, () => connection.put(data, 0)))
      note(`pulls; ${name}`, await rateOf(count, () => connection.take()))
      const [late, jobs]: [number[], number] = [[], rate * seconds]
      const taking = (async (): Promise<void> => {
        while (late.length < jobs) {
          const due = Number(await connection.take())
          late.push(Date.now() - due)
        }
      })()
      // a reserve that waits holds up what comes behind it on its connection
      const producer = await BeanstalkConnection.open(server.port)
      await atRate(jobs, () => producer.put(String(Date.now() + 1_000), 1))
      await taking
      note(`lateness p99; ${name}`, quantile(late, 0.99))
      for (const each of [connection, producer]) each.close()
      server.stop()
    }
    await besideNsqd(note)
  }
  return ['pushes', 'pulls', 'lateness p99'].flatMap((what) =>
    Array.from(figures)
      .filter(([name]) => name.startsWith(`${what};`))
      .map(([name, values]) => rowOf(name, what === 'lateness p99' ? 'ms' : 'a second', values)),
  )
}

/** Messages go in over HTTP, one a request, and come out by its own protocol. */
async function besideNsqd(note: (what: string, value: number) => void): Promise<void> {
  const name = 'nsqd, pushes over HTTP: at least once, in its memory'
  const program = findNsqd()
  if (program === undefined) return void console.log('without nsqd: it is not installed, and Go cannot build it')
  const server = await startNsqd(program)
  const target = { url: server.url, key: '' }
  try {
    const body = JSON.stringify(BODY)
    const all = await Promise.all(Array.from({ length: CONNECTIONS }, () => HttpConnection.open(server.url)))
    const request = requestOf(target, '/pub?topic=both', body)
    const count = given.quick ? 1_000 : 50_000
    let left = count
    const begin = performance.now()
    await Promise.all(
      all.map(async (connection) => {
        while (left-- > 0) await connection.ask(request)
      }),
    )
    note(`pushes; ${name}`, count / ((performance.now() - begin) / 1_000))
    let pulled = 0
    const pulling = performance.now()
    const consumer = await NsqConsumer.open(server.port, 'both', CONNECTIONS, () => pulled++)
    await until(() => pulled >= count)
    note(`pulls; ${name}`, count / ((performance.now() - pulling) / 1_000))
    consumer.close()
    const [late, jobs]: [number[], number] = [[], rate * seconds]
    const waiting = await NsqConsumer.open(server.port, 'late', CONNECTIONS, (due) =>
      late.push(Date.now() - Number(due)),
    )
    await sleep(6_000) // until it looks after the deferred messages of a new channel
    const pool = new HttpPool(target)
    await atRate(jobs, () => pool.call('/pub?topic=late&defer=1000', String(Date.now() + 1_000)))
    await until(() => late.length >= jobs)
    note(`lateness p99; ${name}`, quantile(late, 0.99))
    for (const each of [waiting, pool, ...all]) each.close()
  } finally {
    server.stop()
  }
}

/** One message a request, and its acknowledgement. */
async function pulls(service: ServiceProcess, count: number): Promise<number> {
  const pool = new HttpPool(service)
  const receive = requestOf(service, '/v1/topics/both/receive', '{}')
  const rate = await rateOf(count, async () => {
    const { messages } = JSON.parse(await pool.send(receive)) as { messages: { lease: string }[] }
    const leases = messages.map(({ lease }) => lease)
    if (leases.length === 0) throw new Error('a pull got nothing')
    await pool.call('/v1/leases/acknowledge', JSON.stringify({ leases }))
  })
  pool.close()
  return rate
}

async function rateOf(count: number, action: () => Promise<unknown>): Promise<number> {
  let left = count
  const begin = performance.now()
  const one = async (): Promise<void> => {
    while (left-- > 0) await action()
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, one))
  return count / ((performance.now() - begin) / 1_000)
}

function rowOf(what: string, unit: string, values: readonly number[] = [], goal?: Goal): Row {
  return { what, unit, values: values.map((value) => Number(value.toFixed(3))), ...(goal && { goal }) }
}

async function withService(
  flags: readonly string[],
  measure: (service: ServiceProcess, redis: Redis) => Promise<unknown>,
): Promise<void> {
  const server = await startServer({ bin })
  const redis = new Redis(server.url)
  const ports = ['--webhook-ports', String(receiver.port), '--webhook-networks', '127.0.0.0/8']
  const service = await startServiceProcess(server.url, [...ports, '--max-connections', '20000', ...flags])
  try {
    await measure(service, redis)
  } finally {
    redis.disconnect()
    await service.stop()
    await server.stop()
  }
}

/** Takes webhooks whose bodies have the time when they are due. `/hang` never answers. */
async function startReceiver() {
  const lateMs: number[] = []
  const server = createServer((asked, response) => {
    const at = Date.now()
    let body = ''
    asked.on('data', (bytes: Buffer) => (body += bytes.toString()))
    asked.on('end', () => {
      if (asked.url === '/hang') return
      const { due } = JSON.parse(body) as { due?: number }
      lateMs.push(due === undefined ? 0 : at - due)
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { lateMs, port, url: (path: string) => `http://127.0.0.1:${port}${path}` }
}

/** As many requests as `connections` bring, one after the other each. */
async function perSecond(
  service: ServiceProcess,
  path: string,
  body: string,
  connections: number,
  lasts = seconds,
): Promise<number> {
  const request = requestOf(service, path, body)
  const all = await Promise.all(Array.from({ length: connections }, () => HttpConnection.open(service.url)))
  await all[0]?.ask(request) // the topic is made
  let count = 0
  const send = async (end: number): Promise<void> => {
    await Promise.all(
      all.map(async (connection) => {
        for (; performance.now() < end; count++) await connection.ask(request)
      }),
    )
  }
  await send(performance.now() + lasts * 200) // the code is warm
  count = 0
  const begin = performance.now()
  await send(begin + lasts * 1_000)
  const rate = count / ((performance.now() - begin) / 1_000)
  for (const connection of all) connection.close()
  return rate
}

async function fill(service: ServiceProcess, topic: string, count: number, delay = 3_600_000): Promise<void> {
  const pool = new HttpPool(service)
  await pool.call(`/v1/topics/${topic}`, '{}', 'PUT')
  let left = count
  const one = async (): Promise<void> => {
    while (left > 0) {
      const some = Array(Math.min(BATCH, left)).fill({ delay, body: {} })
      left -= some.length
      await pool.call(`/v1/topics/${topic}/messages/batch`, JSON.stringify(some))
    }
  }
  await Promise.all(Array.from({ length: 4 }, one))
  pool.close()
}

/** Resolves when webhooks of the topic go there. */
async function endpointFor(service: ServiceProcess, topic: string, url: string, concurrency: number): Promise<void> {
  const pool = new HttpPool(service)
  const made = await pool.call('/v1/endpoints', JSON.stringify({ url, concurrency, timeout: 10_000 }))
  const { id } = JSON.parse(made) as { id: string }
  await pool.call(`/v1/topics/${topic}`, JSON.stringify({ endpoint: id }), 'PUT')
  pool.close()
}

/** p99 of how late messages are that are pushed at the rate, each due some time after its push, in milliseconds. */
async function lateness(service: ServiceProcess, way: 'poll' | 'webhook', topic: string, delay = 500): Promise<number> {
  const pool = new HttpPool(service)
  const lateMs: number[] = way === 'webhook' ? receiver.lateMs : []
  const [warm, count] = [rate, rate * (seconds + 1)]
  let isOver = false
  const consume = async (): Promise<void> => {
    while (!isOver) {
      const text = await pool.call(`/v1/topics/${topic}/receive`, '{"max":100,"wait":1000}')
      const at = Date.now()
      const { messages } = JSON.parse(text) as { messages: { lease: string; body: { due: number } }[] }
      for (const { body } of messages) lateMs.push(at - body.due)
      const leases = messages.map(({ lease }) => lease)
      if (leases.length > 0) await pool.call('/v1/leases/acknowledge', JSON.stringify({ leases }))
    }
  }
  // webhooks of a topic begin when the instance has read its settings again
  await sleep(1_500)
  lateMs.length = 0
  const consumers = way === 'poll' ? Array.from({ length: 8 }, consume) : []
  await atRate(count, () => {
    const due = Date.now() + delay
    return pool.call(`/v1/topics/${topic}/messages`, JSON.stringify({ dueAt: due, body: { due } }))
  })
  await until(() => lateMs.length >= count)
  isOver = true
  await Promise.all(consumers)
  pool.close()
  return quantile(lateMs.slice(warm), 0.99) // without the first second
}

/** So many at the rate, whether or not the earlier ones have ended. */
async function atRate(count: number, action: () => Promise<unknown>): Promise<void> {
  const all: Promise<unknown>[] = []
  const begin = performance.now()
  while (all.length < count) {
    const wanted = Math.min(count, Math.ceil(((performance.now() - begin) / 1_000) * rate))
    while (all.length < wanted) all.push(action())
    await sleep(1)
  }
  await Promise.all(all)
}

async function until(isDone: () => boolean): Promise<void> {
  for (const end = Date.now() + 120_000; !isDone();) {
    if (Date.now() > end) throw new Error('it did not end within two minutes')
    await sleep(5)
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN
}

function residentMb({ pid }: ServiceProcess): number {
  const [, kb = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kb) / 1_024
}
