// `npm run benchmark:service`: speed and lateness of the built service over HTTP, with the client on the same machine. Prints a page of results, and
// writes it to benchmarks/results with --save. Each measurement has a Redis and a service of its own. `--quick`: a short look at everything.
//
//   npm run benchmark:service -- [--seconds 10] [--runs 3] [--pending 1000000] [--polls 10000] [--rate 500] [--only push,poll] [--quick] [--save]
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import { createConnection, type AddressInfo } from 'node:net'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { findServerBin, startServer } from './redis.js'
import { startServiceProcess, type ServiceProcess } from './service-process.js'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string' },
    runs: { type: 'string' },
    pending: { type: 'string' },
    polls: { type: 'string' },
    rate: { type: 'string' },
    only: { type: 'string', default: '' },
    quick: { type: 'boolean', default: false },
    save: { type: 'boolean', default: false },
  },
})
const numberOf = (name: 'seconds' | 'runs' | 'pending' | 'polls' | 'rate', full: number, quick: number): number =>
  Number(values[name] ?? (values.quick ? quick : full))
const seconds = numberOf('seconds', 10, 2)
const runs = numberOf('runs', 3, 1)
const pending = numberOf('pending', 1_000_000, 5_000)
const polls = numberOf('polls', 10_000, 200)
const rate = numberOf('rate', 500, 100)
const chosen = values.only === '' ? undefined : values.only.split(',')
const CONNECTIONS = 64
const BATCH = 1_000

ensureInstalled(root, { workspaces: true })
spawnSync(process.execPath, ['scripts/run.mjs', 'build-server'], { cwd: root, stdio: 'inherit' })
const bin = findServerBin()
if (bin === undefined) throw new Error('there is no redis-server or valkey-server on PATH')
const receiver = await startReceiver()
const lines: string[] = []
const row = (what: string, unit: string, values: readonly number[]): void => {
  const sorted = [...values].sort((a, b) => a - b)
  const text = (value = NaN): string => (value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(1))
  const line = `| ${what} | ${text(sorted[sorted.length >> 1])} ${unit} | ${text(sorted[0])} to ${text(sorted.at(-1))} |`
  lines.push(line)
  console.log(line)
}
const skip = (what: string, why: string): void => {
  lines.push(`| ${what} | not measured | ${why} |`)
  console.log(lines.at(-1))
}
const isChosen = (name: string): boolean => chosen === undefined || chosen.includes(name)

if (isChosen('push')) {
  for (const hasJournal of [false, true]) {
    const [single, batched]: [number[], number[]] = [[], []]
    for (let run = 0; run < runs; run++)
      await withService(hasJournal ? ['journal'] : [], async (service) => {
        const body = JSON.stringify({ delay: 3_600_000, body: { order: 7, text: 'x'.repeat(80) } })
        single.push(await perSecond(service, '/v1/topics/single/messages', body, CONNECTIONS))
        const batch = JSON.stringify(Array.from({ length: BATCH }, () => JSON.parse(body) as unknown))
        batched.push(BATCH * (await perSecond(service, '/v1/topics/batched/messages/batch', batch, 8)))
      })
    const how = hasJournal ? 'journal in SQLite, sync' : 'no journal'
    row(`single pushes, ${how}, ${CONNECTIONS} connections`, 'a second', single)
    row(`pushes in batches of ${BATCH}, ${how}`, 'a second', batched)
  }
}
for (const way of ['poll', 'webhook'] as const) {
  if (!isChosen(way)) continue
  const p99s: number[] = []
  for (let run = 0; run < runs; run++)
    await withService([], async (service) => {
      await fill(service, 'late', pending)
      p99s.push(quantile(await lateness(service, way, 'late'), 0.99))
    })
  row(`lateness p99 by ${way}, ${rate} a second, ${pending.toLocaleString('en')} pending`, 'ms', p99s)
}
if (isChosen('deliveries')) {
  const rates: number[] = []
  for (let run = 0; run < runs; run++)
    await withService([], async (service) => {
      const count = values.quick ? 1_000 : 20_000
      receiver.arrived.length = 0
      await fill(service, 'hooks', count, 0)
      const begin = performance.now()
      await endpointFor(service, 'hooks', receiver.url('/fast'), 200)
      await until(() => receiver.arrived.length >= count)
      rates.push(count / ((performance.now() - begin) / 1_000))
    })
  row('webhook deliveries', 'a second', rates)
}
if (isChosen('hanging')) {
  for (const hasHanging of [false, true]) {
    const p99s: number[] = []
    for (let run = 0; run < runs; run++)
      await withService([], async (service) =>
        p99s.push(quantile(await lateness(service, 'webhook', 'good', hasHanging), 0.99)),
      )
    row(`lateness p99 by webhook ${hasHanging ? 'beside an endpoint that hangs' : 'alone'}`, 'ms', p99s)
  }
}
if (isChosen('idle')) {
  await withService([], async (service, redis) => {
    const agent = new Agent({ keepAlive: true, maxSockets: Infinity })
    const before = residentMb(service)
    for (let at = 0; at < polls; at++) {
      const poll = call(service, agent, '/v1/topics/idle/receive', '{"wait":60000}').catch(() => undefined)
      void poll
      if (at % 200 === 199) await new Promise((resolve) => setTimeout(resolve, 50))
    }
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    const clients = (await redis.client('LIST')) as string
    row(`${polls.toLocaleString('en')} idle long polls: connections to Redis`, '', [
      clients.trim().split('\n').length - 1,
    ])
    row(`${polls.toLocaleString('en')} idle long polls: memory of the service`, 'MB', [residentMb(service)])
    row('memory of the service before', 'MB', [before])
    agent.destroy()
  })
}
if (isChosen('beanstalkd')) await beanstalkd()

const versions = `Node ${process.version}, ${spawnSync(bin, ['--version'], { encoding: 'utf8' }).stdout.trim()}, ${cpus()[0]?.model ?? '?'} × ${cpus().length}`
const page = [
  '# The delay service: speed and lateness',
  '',
  `${versions}. Medians of ${runs} runs of ${seconds} s, and the lowest and highest; service, Redis (no persistence) and clients on one machine. \`npm run benchmark:service\`.`,
  '',
  '| what | median | spread |',
  '|---|---|---|',
  ...lines,
  '',
].join('\n')
if (values.save) {
  const folder = join(root, 'benchmarks/results')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${new Date().toISOString().slice(0, 10)}-service.md`), page)
}
console.log(`\n${page}`)
process.exit(0)

async function withService(
  what: readonly 'journal'[],
  measure: (service: ServiceProcess, redis: Redis) => Promise<unknown>,
) {
  const server = await startServer({ bin: bin as string })
  const redis = new Redis(server.url)
  const ports = ['--webhook-ports', String(receiver.port), '--webhook-networks', '127.0.0.0/8']
  const flags = [...ports, '--max-connections', '20000']
  if (what.includes('journal')) flags.push('--journal', 'sqlite:./journal.db')
  const service = await startServiceProcess(server.url, flags)
  try {
    await measure(service, redis)
  } finally {
    redis.disconnect()
    await service.stop()
    await server.stop()
  }
}

interface Arrived {
  readonly due: number
  readonly at: number
}

/** Takes webhooks whose bodies have the time when they are due. `/hang` never answers. */
async function startReceiver() {
  const arrived: Arrived[] = []
  const server = createServer((asked, response) => {
    const at = Date.now()
    let body = ''
    asked.on('data', (bytes: Buffer) => (body += bytes.toString()))
    asked.on('end', () => {
      if (asked.url === '/hang') return
      arrived.push({ due: (JSON.parse(body) as { due?: number }).due ?? at, at })
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { arrived, port, url: (path: string) => `http://127.0.0.1:${port}${path}` }
}

/** The body of an answer; rejects where it is no 2xx. */
function call(service: ServiceProcess, agent: Agent, path: string, body: string, method = 'POST'): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${service.key}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    }
    const asked = request(service.url + path, { method, agent, headers }, (response) => {
      let text = ''
      response.on('data', (bytes: Buffer) => (text += bytes.toString()))
      response.on('end', () => {
        if (response.statusCode !== undefined && response.statusCode < 300) resolve(text)
        else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`))
      })
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

/** As many requests as `connections` bring, one after the other each. */
async function perSecond(service: ServiceProcess, path: string, body: string, connections: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  await call(service, agent, path, body) // the topic is made, and the code is warm
  let count = 0
  const begin = performance.now()
  const end = begin + seconds * 1_000
  const one = async (): Promise<void> => {
    for (; performance.now() < end; count++) await call(service, agent, path, body)
  }
  await Promise.all(Array.from({ length: connections }, one))
  const rate = count / ((performance.now() - begin) / 1_000)
  agent.destroy()
  return rate
}

async function fill(service: ServiceProcess, topic: string, count: number, delay = 3_600_000): Promise<void> {
  const agent = new Agent({ keepAlive: true })
  for (let from = 0; from < count; from += BATCH) {
    const some = Array.from({ length: Math.min(BATCH, count - from) }, () => ({ delay, body: {} }))
    await call(service, agent, `/v1/topics/${topic}/messages/batch`, JSON.stringify(some))
  }
  agent.destroy()
}

async function endpointFor(service: ServiceProcess, topic: string, url: string, concurrency: number): Promise<void> {
  const agent = new Agent()
  const made = JSON.parse(
    await call(service, agent, '/v1/endpoints', JSON.stringify({ url, concurrency, timeout: 10_000 })),
  ) as { id: string }
  await call(service, agent, `/v1/topics/${topic}`, JSON.stringify({ endpoint: made.id }), 'PUT')
}

/** How late messages are that are pushed at the rate, each due 500 ms after its push, in milliseconds. */
async function lateness(
  service: ServiceProcess,
  way: 'poll' | 'webhook',
  topic: string,
  hasHanging = false,
): Promise<number[]> {
  const agent = new Agent({ keepAlive: true })
  const arrived: Arrived[] = way === 'webhook' ? receiver.arrived : []
  arrived.length = 0
  const count = rate * seconds
  let isOver = false
  const consume = async (): Promise<void> => {
    while (!isOver) {
      const text = await call(service, agent, `/v1/topics/${topic}/receive`, '{"max":100,"wait":1000}')
      const at = Date.now()
      const { messages } = JSON.parse(text) as { messages: { lease: string; body: { due: number } }[] }
      for (const { body } of messages) arrived.push({ due: body.due, at })
      const leases = messages.map(({ lease }) => lease)
      if (leases.length > 0) await call(service, agent, '/v1/leases/acknowledge', JSON.stringify({ leases }))
    }
  }
  const consumers: Promise<void>[] = []
  if (way === 'webhook') await endpointFor(service, topic, receiver.url('/fast'), 64)
  if (hasHanging) {
    await endpointFor(service, 'hanging', receiver.url('/hang'), 64)
    await fill(service, 'hanging', 500, 0)
  }
  // webhooks of a topic begin when the instance has read its settings again
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  if (way === 'poll') for (let at = 0; at < 8; at++) consumers.push(consume())
  const pushes: Promise<string>[] = []
  const begin = performance.now()
  while (pushes.length < count) {
    const wanted = Math.min(count, Math.ceil(((performance.now() - begin) / 1_000) * rate))
    while (pushes.length < wanted) {
      const due = Date.now() + 500
      pushes.push(call(service, agent, `/v1/topics/${topic}/messages`, JSON.stringify({ dueAt: due, body: { due } })))
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await Promise.all(pushes)
  await until(() => arrived.length >= count)
  isOver = true
  await Promise.all(consumers)
  agent.destroy()
  return arrived.map(({ due, at }) => at - due)
}

async function until(isDone: () => boolean): Promise<void> {
  for (const end = Date.now() + 300_000; !isDone();) {
    if (Date.now() > end) throw new Error('it did not end within five minutes')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN
}

function residentMb({ pid }: ServiceProcess): number {
  const [, kb = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kb) / 1_024
}

/** Its own protocol, one connection, 64 commands under way; its delays are whole seconds. */
async function beanstalkd(): Promise<void> {
  const PORT = 11_399
  const child = spawn('beanstalkd', ['-l', '127.0.0.1', '-p', String(PORT)], { stdio: 'ignore' })
  const isThere = await new Promise<boolean>((resolve) => {
    child.once('error', () => resolve(false))
    setTimeout(() => resolve(child.exitCode === null), 500)
  })
  if (!isThere) return void skip('beanstalkd', 'it is not installed: apt-get install beanstalkd')
  const [puts, pulls, late]: [number[], number[], number[]] = [[], [], []]
  const data = JSON.stringify({ order: 7, text: 'x'.repeat(80) })
  for (let run = 0; run < runs; run++) {
    const count = values.quick ? 5_000 : 100_000
    const send = await beanstalk(PORT)
    puts.push(await send.many(count, () => [`put 0 0 60 ${data.length}`, data]))
    pulls.push(
      await send.many(count, async (ask) => {
        const [, id = ''] = /^RESERVED (\d+)/.exec(await ask(['reserve'])) ?? []
        return [`delete ${id}`]
      }),
    )
    const lateMs: number[] = []
    for (let at = 0; at < Math.min(300, rate); at++) {
      const text = String(Date.now() + 1_000)
      await send.ask([`put 0 1 60 ${text.length}`, text])
    }
    for (let at = 0; at < Math.min(300, rate); at++) {
      const answer = await send.ask(['reserve'])
      const [, id = '', due = '0'] = /^RESERVED (\d+) \d+\r\n(\d+)/.exec(answer) ?? []
      lateMs.push(Date.now() - Number(due))
      await send.ask([`delete ${id}`])
    }
    late.push(quantile(lateMs, 0.99))
    send.end()
  }
  row('beanstalkd: puts', 'a second', puts)
  row('beanstalkd: reserves with deletes', 'a second', pulls)
  row('beanstalkd: lateness p99 of jobs with a delay of 1 s', 'ms', late)
  child.kill()
}

type Ask = (lines: readonly string[]) => Promise<string>

async function beanstalk(port: number) {
  const socket = createConnection({ port, host: '127.0.0.1', noDelay: true })
  await new Promise((resolve) => socket.once('connect', resolve))
  const waiting: ((answer: string) => void)[] = []
  let rest = ''
  socket.on('data', (bytes) => {
    rest += bytes.toString('latin1')
    for (;;) {
      const end = rest.indexOf('\r\n')
      if (end < 0) return
      const [, size] = /^RESERVED \d+ (\d+)$/.exec(rest.slice(0, end)) ?? []
      const whole = end + 2 + (size === undefined ? 0 : Number(size) + 2)
      if (rest.length < whole) return
      waiting.shift()?.(rest.slice(0, whole))
      rest = rest.slice(whole)
    }
  })
  const ask: Ask = (commands) =>
    new Promise((resolve) => {
      waiting.push(resolve)
      socket.write(`${commands.join('\r\n')}\r\n`)
    })
  return {
    ask,
    end(): void {
      socket.end()
    },
    async many(count: number, make: (ask: Ask) => string[] | Promise<string[]>): Promise<number> {
      let left = count
      const begin = performance.now()
      const one = async (): Promise<void> => {
        while (left-- > 0) await ask(await make(ask))
      }
      await Promise.all(Array.from({ length: CONNECTIONS }, one))
      return count / ((performance.now() - begin) / 1_000)
    },
  }
}
