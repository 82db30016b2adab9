// By hand: how long open messages take to be back in a Redis that lost its data, and whether all of them are as before,
// npm run build && NODE_ENV=production npx tsx src/server/test/journal-bench.ts --messages 1000000 --database sqlite --json restore.json
// With `--database postgres` or `mariadb` it starts that server. `--profile file` writes a CPU profile of the main thread's part in the
// restore. With `--lateness 8`: in so many rounds, how late the timers of a process are, without commits and while its journal in SQLite
// commits 5,000 rows a second.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { createClient, type ReliableQueue } from 'redelayed'
import { sqlBin, SqlServerProcess, type SqlKind } from '../../../test/support/sql-server.js'
import { parseJournalUrl } from '../config/journal-options.js'
import { JournalDatabase } from '../database/database.js'
import { createJournal } from '../index.js'
import { LosableRedis } from './support/losable-redis.js'
import { commitRows, lateness, p99 } from './support/timers.js'

const { values } = parseArgs({
  options: {
    messages: { type: 'string', default: '1000000' },
    database: { type: 'string', default: 'sqlite' },
    json: { type: 'string' },
    profile: { type: 'string' },
    lateness: { type: 'string' },
  },
})
const count = Number(values.messages)
const HOUR = 3_600_000
const PAGE = 2_000
const PRODUCERS = 4
/** One message of this many is handled once and fails, and one of four of those becomes a dead letter. */
const [FAILS, DIES] = [20, 80]
const loadAtStart = loadavg()[0]
const dir = mkdtempSync(join(tmpdir(), 'journal-bench-'))
const server = values.database === 'sqlite' ? undefined : await SqlServerProcess.start(values.database as SqlKind)
const url = server === undefined ? `sqlite:${join(dir, 'journal.db')}` : await server.create('restore')
const redis = await LosableRedis.start()
const client = createClient({ url: redis.url })
client.on('error', () => undefined)
const journal = await createJournal({ url })
const queue = client.getReliableQueue<string>('mails')
const mails = await journal.attach(queue)

interface Measured {
  readonly seconds: number
  readonly perSecond: number
  /** CPU seconds of all threads of this process, of its SQLite thread, of Redis, and of the SQL server. */
  readonly cpu: { readonly journal: number; readonly redis: number; readonly sql: number }
}

async function cpuOfRedis(): Promise<number> {
  const raw = new Redis(redis.url)
  const info = await raw.info('cpu')
  raw.disconnect()
  const [, system = '0', user = '0'] = /used_cpu_sys:([\d.]+)[\s\S]*used_cpu_user:([\d.]+)/.exec(info) ?? []
  return Number(system) + Number(user)
}

/** The CPU time of the SQL server and its processes, in hundredths of a second. */
function cpuOfSql(): number {
  const { pid } = server ?? {}
  if (pid === undefined) return 0
  let ticks = 0
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'utf8')
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
      if (Number(name) === pid || Number(fields[1]) === pid) ticks += Number(fields[11]) + Number(fields[12])
    } catch {
      // it has just ended
    }
  }
  return ticks / 100
}

async function measured(what: string, action: () => Promise<void>, isNewServer = false): Promise<Measured> {
  const before = { cpu: process.cpuUsage(), redis: isNewServer ? 0 : await cpuOfRedis(), sql: cpuOfSql() }
  const at = performance.now()
  await action()
  const seconds = (performance.now() - at) / 1000
  const { user, system } = process.cpuUsage(before.cpu)
  const own = (user + system) / 1e6
  const cpu = { journal: own, redis: (await cpuOfRedis()) - before.redis, sql: cpuOfSql() - before.sql }
  const perSecond = Math.round(count / seconds)
  console.log(
    `${what}: ${seconds.toFixed(1)} s, ${perSecond} a second; ` +
      `CPU: this process ${own.toFixed(1)} s, Redis ${cpu.redis.toFixed(1)} s, SQL ${cpu.sql.toFixed(1)} s`,
  )
  return { seconds, perSecond, cpu }
}

async function profiled(action: () => Promise<void>): Promise<void> {
  if (values.profile === undefined) return action()
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.start')
  await action()
  const { profile } = await session.post('Profiler.stop')
  writeFileSync(values.profile, JSON.stringify(profile))
}

const itemOf = (n: number) => ({
  payload: 'x'.repeat(100),
  id: idOf(n),
  delay: n % FAILS === 0 ? 0 : HOUR + n,
  priority: n % 10,
  headers: { tenant: 'acme', trace: String(n) },
})

/** By id, and how many of the messages have been delivered. */
interface Digests {
  readonly of: ReadonlyMap<string, bigint>
  readonly delivered: number
}

/** A digest of each message with all that a restore brings back; without the times of its failures, which can differ by a millisecond. */
async function digests(target: ReliableQueue<string>, ids: readonly string[]): Promise<Digests> {
  const found = new Map<string, bigint>()
  let delivered = 0
  for (let from = 0; from < ids.length; from += PAGE) {
    const some = ids.slice(from, from + PAGE)
    for (const message of await target.getAllRaw(some)) {
      if (message === null) continue
      if (message.attempts > 0) delivered++
      const payload = Buffer.from(message.payload).toString('base64')
      const failures = message.failures.map(({ at, ...failure }) => failure)
      const text = JSON.stringify({ ...message, payload, failures })
      found.set(message.id, createHash('sha1').update(text).digest().readBigUInt64LE())
    }
  }
  return { of: found, delivered }
}

interface State {
  readonly open: Digests
  readonly dead: Digests
  readonly size: number
  readonly deadSize: number
}

const idOf = (n: number): string => `message-${n}`
const everyId = (isDead: boolean): string[] =>
  Array.from({ length: count }, (_, n) => n).flatMap((n) => ((n % DIES === 0) === isDead ? [idOf(n)] : []))

async function stateNow(): Promise<State> {
  return {
    open: await digests(queue, everyId(false)),
    dead: await digests(queue.deadLetters, everyId(true)),
    size: await queue.size(),
    deadSize: await queue.deadLetters.size(),
  }
}

/** How many messages are missing or differ. */
function differing({ of: before }: Digests, { of: after }: Digests): number {
  let differ = 0
  for (const [id, digest] of before) if (after.get(id) !== digest) differ++
  return differ
}

/** Some have been delivered and have failed; some of them are dead letters. */
async function failSome(): Promise<number> {
  let failed = 0
  for (;;) {
    const messages = await queue.pollMany({ count: 1_000 })
    if (messages.length === 0) return failed
    failed += messages.length
    const isDead = messages.map(({ id }) => Number(id.slice('message-'.length)) % DIES === 0)
    const error = new Error('the address does not answer')
    const [dead, open] = [messages.filter((_, at) => isDead[at]), messages.filter((_, at) => !isDead[at])]
    if (dead.length > 0) await queue.negativeAcknowledge(dead, { reject: true, error })
    if (open.length > 0) await queue.negativeAcknowledge(open, { delay: HOUR + failed, error })
  }
}

/** Seconds of both, one after the other, in each round the other one first. */
async function latenessOf(rounds: number): Promise<void> {
  const [perSecond, roundMs] = [5_000, 2_000]
  const database = await JournalDatabase.open(parseJournalUrl(`sqlite:${join(dir, 'lateness.db')}`), { migrate: true })
  const played: { without: number; with: number; ratio: number; committed: number; load: number }[] = []
  try {
    await lateness(commitRows(database, roundMs, perSecond))
    for (let round = 0; round < rounds; round++) {
      let [without, during, committed] = [NaN, NaN, NaN]
      const parts = [
        async () => void (without = p99(await lateness(sleep(roundMs)))),
        async () => {
          const commits = commitRows(database, roundMs, perSecond)
          during = p99(await lateness(commits))
          committed = await commits
        },
      ]
      const load = loadavg()[0] ?? NaN
      for (const part of round % 2 === 0 ? parts : parts.reverse()) await part()
      played.push({ without, with: during, ratio: during / without, committed, load })
      console.log(JSON.stringify(played.at(-1)))
    }
  } finally {
    await database.close()
  }
  const spread = (name: 'without' | 'with' | 'ratio' | 'committed') => {
    const sorted = played.map((each) => each[name]).sort((a, b) => a - b)
    return { median: sorted[sorted.length >> 1], lowest: sorted[0], highest: sorted.at(-1) }
  }
  write({
    what: 'lateness p99 of timers of 2 ms in a process, in ms, while its journal in SQLite commits, and without',
    rowsASecondAsked: perSecond,
    rowsASecondCommitted: spread('committed'),
    without: spread('without'),
    with: spread('with'),
    ratio: spread('ratio'),
    rounds: played,
  })
}

/** Stores a result with what it was measured on. */
function write(result: object): void {
  const git = (...args: string[]): string => spawnSync('git', args, { encoding: 'utf8' }).stdout.trim()
  const { stdout: version } = spawnSync('redis-server', ['--version'], { encoding: 'utf8' })
  const all = {
    command: `npx tsx src/server/test/journal-bench.ts ${process.argv.slice(2).join(' ')}`,
    commit: git('describe', '--always', '--dirty', '--exclude', '*'),
    date: new Date().toISOString(),
    versions: {
      node: process.versions.node,
      redis: /v=(\S+)/.exec(version)?.[1],
      sql: server && spawnSync(sqlBin(server.kind) ?? '', ['--version'], { encoding: 'utf8' }).stdout.trim(),
    },
    machine: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`,
    loadAtStart,
    loadAtEnd: loadavg()[0],
    ...result,
  }
  console.log(JSON.stringify(all, null, 2))
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(all, null, 2)}\n`)
}

async function restore(): Promise<void> {
  console.log(
    `${count} messages with 100 bytes and 2 headers, of priorities 0 to 9; one of ${FAILS} has failed, one of ${DIES} is dead; ${values.database}`,
  )
  const added = await measured('accepted and added', async () => {
    let next = 0
    const producer = async (): Promise<void> => {
      for (let from = next; from < count; from = next) {
        next += PAGE
        await mails.addMany(Array.from({ length: Math.min(PAGE, count - from) }, (_, n) => itemOf(from + n)))
      }
    }
    await Promise.all(Array.from({ length: PRODUCERS }, producer))
  })
  await measured('the rest of the change stream', async () => {
    const failed = await failSome()
    console.log(`${failed} messages have failed`)
    await mails.drain()
  })
  const before = await stateNow()
  const names = new Set([queue.name, queue.deadLetters.name])
  const restored = new Promise<void>((resolve) =>
    journal.on('restored', (name) => {
      names.delete(name)
      if (names.size === 0) resolve()
    }),
  )
  let shownAt = performance.now()
  journal.on('restoring', ({ checked, total, perSecond, left }) => {
    if (performance.now() - shownAt < 5_000) return
    shownAt = performance.now()
    console.log(`  ${checked} of ${total ?? 'many'}, ${perSecond} a second, ${Math.round((left ?? 0) / 1000)} s left`)
  })
  const loadBefore = loadavg()[0]
  await redis.kill()
  await redis.startEmpty()
  const back = await measured('back in Redis', () => profiled(() => restored), true)
  const loadAfter = loadavg()[0]
  const after = await stateNow()
  const [differ, deadDiffer] = [differing(before.open, after.open), differing(before.dead, after.dead)]
  const isExact =
    differ + deadDiffer === 0 &&
    before.open.of.size + before.dead.of.size === count &&
    after.size === before.open.of.size &&
    after.deadSize === before.dead.of.size
  write({
    messages: count,
    database: values.database,
    load: { before: loadBefore, after: loadAfter },
    added,
    back,
    size: after.size,
    deadLetters: after.deadSize,
    compared: {
      open: before.open.of.size,
      dead: before.dead.of.size,
      delivered: before.open.delivered + before.dead.delivered,
    },
    differ: { open: differ, dead: deadDiffer },
    isExact,
  })
  if (!isExact) process.exitCode = 1
}

try {
  await (values.lateness === undefined ? restore() : latenessOf(Number(values.lateness)))
} finally {
  await journal.close()
  await client.shutdown()
  await redis.stop()
  await server?.stop()
  rmSync(dir, { recursive: true, force: true })
}
