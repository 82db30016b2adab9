// How long open messages take to be back in a Redis that lost its data: by hand,
//   npm run build && NODE_ENV=production npx tsx src/server/test/restore-bench.ts --messages 1000000 --database sqlite --json restore.json
// With `--database postgres` or `mariadb` it starts that server. `--profile file` writes a CPU profile of the main thread's part in the restore.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { createClient } from 'redelayed'
import { sqlBin, SqlServerProcess, type SqlKind } from '../../../test/support/sql-server.js'
import { createJournal } from '../index.js'
import { LosableRedis } from './support/losable-redis.js'

const { values } = parseArgs({
  options: {
    messages: { type: 'string', default: '1000000' },
    database: { type: 'string', default: 'sqlite' },
    json: { type: 'string' },
    profile: { type: 'string' },
  },
})
const count = Number(values.messages)
const HOUR = 3_600_000
const PAGE = 2_000
/** Every so many messages are compared with what was added. */
const EVERY = Math.max(1, Math.floor(count / 5_000))
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
  /** CPU seconds: of all threads of this process, of the SQLite thread among them, of Redis, and of the SQL server. */
  readonly cpu: { readonly journal: number; readonly redis: number; readonly sql: number }
}

async function cpuOfRedis(): Promise<number> {
  const raw = new Redis(redis.url)
  const info = await raw.info('cpu')
  raw.disconnect()
  const [, system = '0', user = '0'] = /used_cpu_sys:([\d.]+)[\s\S]*used_cpu_user:([\d.]+)/.exec(info) ?? []
  return Number(system) + Number(user)
}

/** Of the SQL server and its processes, in hundredths of a second. */
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
  id: `message-${n}`,
  delay: HOUR + n,
  priority: n % 10,
  headers: { tenant: 'acme', trace: String(n) },
})

/** How many of a sample are in Redis other than they were before. */
async function differing(before: ReadonlyMap<string, string>): Promise<number> {
  let differ = 0
  for (const [id, text] of await sample()) if (before.get(id) !== text) differ++
  return differ
}

async function sample(): Promise<Map<string, string>> {
  const ids = Array.from({ length: Math.ceil(count / EVERY) }, (_, n) => `message-${n * EVERY}`)
  const found = new Map<string, string>()
  for (let from = 0; from < ids.length; from += 500) {
    const some = ids.slice(from, from + 500)
    const messages = await queue.getAllRaw(some)
    some.forEach((id, at) => found.set(id, JSON.stringify(messages[at])))
  }
  return found
}

try {
  console.log(
    `${count} messages with 100 bytes and 2 headers, due in an hour, of priorities 0 to 9; ${values.database}`,
  )
  const added = await measured('accepted and added', async () => {
    for (let from = 0; from < count; from += PAGE)
      await mails.addMany(Array.from({ length: Math.min(PAGE, count - from) }, (_, n) => itemOf(from + n)))
  })
  await measured('the rest of the change stream', async () => void (await mails.drain()))
  const before = await sample()
  const restored = new Promise<void>((resolve) => journal.on('restored', (name) => name === queue.name && resolve()))
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
  const [size, differ] = [await queue.size(), await differing(before)]
  console.log(`Redis has ${size} messages; of ${before.size} that were compared, ${differ} differ`)
  await measured('the rest of the change stream', async () => void (await mails.drain()))
  const { stdout: version } = spawnSync('redis-server', ['--version'], { encoding: 'utf8' })
  const result = {
    messages: count,
    database: values.database,
    versions: {
      node: process.versions.node,
      redis: /v=(\S+)/.exec(version)?.[1],
      sql: server && spawnSync(sqlBin(server.kind) ?? '', ['--version'], { encoding: 'utf8' }).stdout.trim(),
    },
    machine: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`,
    load: { before: loadBefore, after: loadavg()[0] },
    added,
    back,
    size,
    compared: before.size,
    differ,
  }
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(result, null, 2)}\n`)
  if (size !== count || differ > 0) process.exitCode = 1
} finally {
  await journal.close()
  await client.shutdown()
  await redis.stop()
  await server?.stop()
  rmSync(dir, { recursive: true, force: true })
}
