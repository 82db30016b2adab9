// Loses a Redis in front of your eyes. See scripts/demo-journal.ts.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createClient, type RedelayedClient, type ReliableQueue } from 'redelayed'
import { findServerBin, startServer, type RedisServer } from '../../../scripts/redis.js'
import { createJournal, type Journal, type JournalQueue } from '../index.js'

const USAGE = `npm run demo:journal -- [options]
  --messages <n>    how many (default 10000)
  --lead <ms>       after how long the first one is due, counted from when all are added (default 8000)
  --spread <ms>     over how long they are due (default 6000)`
const PAGE = 1_000
/** The longest that the demo waits for the next message. */
const PATIENCE_MS = 60_000
/** On time is at most so late at the 99th percentile, also on a busy machine; what was due during the restore counts from its end. */
const ON_TIME_MS = 5_000

interface Options {
  readonly messages: number
  readonly leadMs: number
  readonly spreadMs: number
}

interface Mail {
  readonly n: number
}

/** The deliveries to the worker. */
interface Seen {
  readonly times: Map<number, number>
  readonly lateness: number[]
  early: number
  twice: number
}

export async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  if (typeof options === 'string') {
    console.error(options)
    return 2
  }
  const bin = findServerBin()
  if (bin === undefined) {
    console.error('There is no redis-server or valkey-server on PATH, and the demo kills one. Install Redis.')
    return 1
  }
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-journal-'))
  const server = await startServer({ bin, args: ['--save', '', '--appendonly', 'no'] })
  const client = createClient({ url: server.url })
  client.on('error', () => undefined) // the demo loses its Redis on purpose
  const journal = await createJournal({ url: `sqlite:${join(dir, 'journal.db')}`, sweepMs: 1_000, adoptAfterMs: 2_000 })
  try {
    return await run({ server, client, journal, options })
  } finally {
    await journal.close()
    await client.shutdown()
    await server.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

interface Parts {
  readonly server: RedisServer
  readonly client: RedelayedClient
  readonly journal: Journal
  readonly options: Options
}

async function run({ server, client, journal, options }: Parts): Promise<number> {
  const { messages, leadMs, spreadMs } = options
  const queue = client.getReliableQueue<Mail>('mails')
  const mails = await journal.attach(queue)
  say(`A Redis that keeps nothing on disk at ${server.url}, a journal in SQLite.`)

  await add(mails, messages, Date.now() + 600_000)
  say(`${messages} messages are added: each is in SQL and in Redis.`)
  const dueFrom = Date.now() + leadMs
  await reschedule(queue, messages, dueFrom, spreadMs)
  await mails.drain()
  const seen: Seen = { times: new Map(), lateness: [], early: 0, twice: 0 }
  say(`They are due over ${spreadMs / 1000} s, the first one in ${((dueFrom - Date.now()) / 1000).toFixed(1)} s.`)

  const isBack = restored(journal, queue.name)
  await server.kill('SIGKILL')
  for (const name of readdirSync(server.dir)) rmSync(join(server.dir, name), { recursive: true })
  say('Redis was killed, and its data deleted.')
  const late = await mails.add({ n: messages }, { id: idOf(messages), date: new Date(dueFrom) })
  say(`One more message is accepted meanwhile: its outcome is '${late.outcome}'.`)
  await server.restart()
  say(`Redis is there again, with ${await queue.size()} messages.`)
  await isBack
  const backAt = Date.now()
  say(`Redis has ${await queue.size()} messages.`)

  const worker = client.createWorker(
    queue,
    ({ n }) => {
      const [now, due] = [Date.now(), dueFrom + (n < messages ? Math.floor((n / messages) * spreadMs) : 0)]
      if (now < due) seen.early++
      if (seen.times.has(n)) seen.twice++
      seen.times.set(n, now)
      seen.lateness.push(now - Math.max(due, backAt))
    },
    { concurrency: 200 },
  )
  await deliver(seen, messages + 1)
  await worker.close()
  await mails.drain()
  return judge(mails, seen, messages + 1)
}

async function add(mails: JournalQueue<Mail>, messages: number, dueAt: number): Promise<void> {
  for (let from = 0; from < messages; from += PAGE) {
    const items = Array.from({ length: Math.min(PAGE, messages - from) }, (_, n) => ({
      payload: { n: from + n },
      id: idOf(from + n),
      date: new Date(dueAt),
    }))
    await mails.addMany(items)
    live(`${from + items.length} of ${messages} added`)
  }
}

/** Moves all due times, so that they do not depend on how long adding took. */
async function reschedule(
  queue: ReliableQueue<Mail>,
  messages: number,
  dueFrom: number,
  spreadMs: number,
): Promise<void> {
  const one = async (n: number): Promise<unknown> =>
    queue.reschedule(idOf(n), Math.max(0, dueFrom + Math.floor((n / messages) * spreadMs) - Date.now()))
  for (let from = 0; from < messages; from += PAGE)
    await Promise.all(Array.from({ length: Math.min(PAGE, messages - from) }, (_, n) => one(from + n)))
}

function restored(journal: Journal, name: string): Promise<void> {
  journal.on('forgotten', (queue) => queue === name && say('The journal notices that Redis has forgotten.'))
  journal.on('restoring', ({ queue, stage, checked, total, perSecond, left }) => {
    if (queue === name && stage === 'open')
      live(`${checked} of ${total ?? 'many'} back, ${perSecond} a second, ${((left ?? 0) / 1000).toFixed(1)} s left`)
  })
  return new Promise((resolve) => journal.on('restored', (queue) => queue === name && resolve()))
}

async function deliver(seen: Seen, messages: number): Promise<void> {
  let [known, since] = [0, Date.now()]
  while (seen.times.size < messages && Date.now() - since < PATIENCE_MS) {
    await new Promise((resolve) => setTimeout(resolve, 200))
    if (seen.times.size > known) [known, since] = [seen.times.size, Date.now()]
    live(`${seen.times.size} of ${messages} delivered`)
  }
}

async function judge(mails: JournalQueue<Mail>, seen: Seen, messages: number): Promise<number> {
  const sorted = seen.lateness.sort((a, b) => a - b)
  const percentile = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? 0
  let differences = 0
  for await (const _ of mails.verify()) differences++
  say(
    `${seen.times.size} of ${messages} delivered, ${messages - seen.times.size} lost, ${seen.twice} twice, ${seen.early} early; ` +
      `${percentile(0.5)} ms late in the middle, ${percentile(0.99)} ms at the 99th percentile.`,
  )
  say(`SQL and Redis: ${differences} differences.`)
  const isOnTime = percentile(0.99) <= ON_TIME_MS
  const isRight = seen.times.size === messages && seen.twice + seen.early + differences === 0 && isOnTime
  say(isRight ? 'Nothing is lost.' : 'That is not what the journal promises.')
  return isRight ? 0 : 1
}

const idOf = (n: number): string => `mail-${n}`
const startedAt = performance.now()
let liveAt = 0

function say(text: string): void {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1).padStart(5)
  process.stdout.write(`${process.stdout.isTTY ? '\r\x1b[K' : ''}${seconds} s  ${text}\n`)
}

/** Shows progress: on a terminal in one line that is overwritten, elsewhere with a line per second. */
function live(text: string): void {
  if (process.stdout.isTTY) {
    process.stdout.write(`\r\x1b[K         ${text}`)
  } else if (performance.now() - liveAt >= 1_000) {
    liveAt = performance.now()
    say(text)
  }
}

function readOptions(args: readonly string[]): Options | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        messages: { type: 'string', default: '10000' },
        lead: { type: 'string', default: '8000' },
        spread: { type: 'string', default: '6000' },
      },
    })
    const [messages = 0, leadMs = 0, spreadMs = 0] = [values.messages, values.lead, values.spread].map(Number)
    if ([messages, leadMs, spreadMs].every((value) => Number.isInteger(value) && value > 0))
      return { messages, leadMs, spreadMs }
    return USAGE
  } catch (error) {
    return `${(error as Error).message}\n${USAGE}`
  }
}
