// How long open messages take to be back in a Redis that lost its data: by hand,
//   npm run build && NODE_ENV=production npx tsx src/server/test/restore-bench.ts [messages] [journal URL]
// The journal is SQLite in a temporary folder, unless a URL of an empty PostgreSQL or MySQL database is given.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { createClient } from 'redelayed'
import { createJournal } from '../index.js'
import { LosableRedis } from './support/losable-redis.js'

const count = Number(process.argv[2] ?? 1_000_000)
const url = process.argv[3]
const HOUR = 3_600_000
const PAGE = 2_000
const dir = mkdtempSync(join(tmpdir(), 'journal-bench-'))
const redis = await LosableRedis.start()
const client = createClient({ url: redis.url })
client.on('error', () => undefined)
const journal = await createJournal({ url: url ?? `sqlite:${join(dir, 'journal.db')}` })
const queue = client.getReliableQueue<string>('mails')
const mails = await journal.attach(queue)

async function cpuOfRedis(): Promise<number> {
  const raw = new Redis(redis.url)
  const info = await raw.info('cpu')
  raw.disconnect()
  const [, system = '0', user = '0'] = /used_cpu_sys:([\d.]+)[\s\S]*used_cpu_user:([\d.]+)/.exec(info) ?? []
  return Number(system) + Number(user)
}

async function measured(what: string, action: () => Promise<void>, isNewServer = false): Promise<void> {
  const [cpu, server, at] = [process.cpuUsage(), isNewServer ? 0 : await cpuOfRedis(), performance.now()]
  await action()
  const seconds = (performance.now() - at) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const own = (user + system) / 1e6
  const others = (await cpuOfRedis()) - server
  console.log(
    `${what}: ${seconds.toFixed(1)} s, ${Math.round(count / seconds)} a second; ` +
      `CPU: this process ${own.toFixed(1)} s, Redis ${others.toFixed(1)} s`,
  )
}

try {
  console.log(`${count} messages with 100 bytes and 2 headers, due in an hour, of priorities 0 to 9`)
  await measured('accepted and added', async () => {
    for (let from = 0; from < count; from += PAGE) {
      await mails.addMany(
        Array.from({ length: Math.min(PAGE, count - from) }, (_, n) => ({
          payload: 'x'.repeat(100),
          id: `message-${from + n}`,
          delay: HOUR + from + n,
          priority: n % 10,
          headers: { tenant: 'acme', trace: String(n) },
        })),
      )
    }
  })
  await measured('the rest of the change stream', async () => void (await mails.drain()))
  const restored = new Promise<void>((resolve) => journal.on('restored', (name) => name === queue.name && resolve()))
  let shownAt = performance.now()
  journal.on('restoring', ({ checked, total, perSecond, left }) => {
    if (performance.now() - shownAt < 5_000) return
    shownAt = performance.now()
    console.log(`  ${checked} of ${total ?? 'many'}, ${perSecond} a second, ${Math.round((left ?? 0) / 1000)} s left`)
  })
  await redis.kill()
  await redis.startEmpty()
  await measured('back in Redis', () => restored, true)
  console.log(`Redis has ${await queue.size()} messages`)
  await measured('the rest of the change stream', async () => void (await mails.drain()))
} finally {
  await journal.close()
  await client.shutdown()
  await redis.stop()
  rmSync(dir, { recursive: true, force: true })
}
