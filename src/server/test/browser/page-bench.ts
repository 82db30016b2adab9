// What the page costs with many topics and messages: by hand,
//   npm run build && npm run build:server && npm run build:ui && npx tsx src/server/test/browser/page-bench.ts --topics 10000 --messages 1000000
// For each screen: how long until its numbers are there, and the longest call at Redis meanwhile. Then the CPU of the page while messages are pushed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import type { Page } from 'playwright-core'
import { freePort } from '../../../../test/support/redis-server.js'
import { makeKey } from '../../api/api-keys.js'
import { pause } from '../../pause.js'
import { launch, visit } from './support/browser.js'
import { eventually } from '../support/eventually.js'
import { LosableRedis } from '../support/losable-redis.js'

const { values } = parseArgs({
  options: {
    topics: { type: 'string', default: '10000' },
    messages: { type: 'string', default: '1000000' },
    rate: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '20' },
  },
})
const [topics, messages, rate, seconds] = [values.topics, values.messages, values.rate, values.seconds].map(Number) as [
  number,
  number,
  number,
  number,
]
const BATCH = 1_000
const AT_ONCE = 8
const DAY_MS = 86_400_000

const dir = mkdtempSync(join(tmpdir(), 'page-bench-'))
const apiKeys = join(dir, 'api-keys')
const { line, key } = makeKey()
writeFileSync(apiKeys, `${line}\n`)
const redis = await LosableRedis.start([
  '--save',
  '',
  '--slowlog-log-slower-than',
  '1000',
  '--slowlog-max-len',
  '10000',
])
const port = await freePort()
const url = `http://127.0.0.1:${port}`
const service = spawn(
  process.execPath,
  [
    fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url)),
    ...['--redis', redis.url, '--port', String(port), '--api-keys', apiKeys, '--data-dir', dir, '--log-level', 'error'],
  ],
  { stdio: ['ignore', 'ignore', 'inherit'] },
)
const raw = new Redis(redis.url)

async function ask(method: string, path: string, body?: unknown): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(url + path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 300)}`)
}

/** Runs tasks, some of them at once. */
async function all(count: number, task: (at: number) => Promise<void>): Promise<void> {
  let next = 0
  const run = async (): Promise<void> => {
    while (next < count) await task(next++)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, run))
}

const topicAt = (at: number): string => `topic-${String(at % topics).padStart(5, '0')}`

async function fill(): Promise<void> {
  await all(topics, (at) => ask('PUT', `/v1/topics/${topicAt(at)}`, {}))
  const fixed = Math.ceil(messages / BATCH)
  await all(fixed, (at) =>
    ask('POST', `/v1/topics/${topicAt(at * 7)}/messages/batch`, {
      messages: Array.from({ length: BATCH }, (_, n) => ({
        delay: 60_000 + (((at * BATCH + n) * 977) % DAY_MS),
        body: n,
      })),
    }),
  )
}

async function slowest(): Promise<string> {
  const entries = (await raw.call('SLOWLOG', 'GET', '10000')) as [number, number, number, string[]][]
  const [worst] = entries.sort((a, b) => b[2] - a[2])
  return worst === undefined
    ? 'under 1 ms'
    : `${(worst[2] / 1_000).toFixed(1)} ms (${worst[3].slice(0, 2).join(' ').slice(0, 40)})`
}

async function screen(page: Page, name: string, path: string, shows: RegExp): Promise<void> {
  await raw.call('SLOWLOG', 'RESET')
  const from = performance.now()
  await page.goto(`${url}/ui${path}`)
  await page.locator('main').getByText(shows).first().waitFor({ timeout: 60_000 })
  const ms = Math.round(performance.now() - from)
  console.log(`${name.padEnd(24)} ${String(ms).padStart(6)} ms   longest call at Redis: ${await slowest()}`)
}

/** Seconds of CPU that the main thread of the page has used. */
async function cpuOf(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  return async () => {
    const { metrics } = await session.send('Performance.getMetrics')
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN
  }
}

async function cpuWhilePushing(page: Page): Promise<void> {
  const cpu = await cpuOf(page)
  for (const each of [0, rate]) {
    const [before, from] = [await cpu(), performance.now()]
    let pushed = 0
    for (; performance.now() - from < seconds * 1_000;) {
      const due = Math.floor(((performance.now() - from) / 1_000) * each) - pushed
      if (due > 0)
        await all(due, (n) =>
          ask('POST', `/v1/topics/${topicAt((pushed + n) * 13)}/messages`, { delay: DAY_MS, body: 1 }),
        )
      pushed += Math.max(0, due)
      await pause(20)
    }
    const share = ((await cpu()) - before) / ((performance.now() - from) / 1_000)
    console.log(`the overview with ${each} pushes a second: ${(share * 100).toFixed(1)} % of a core`)
  }
}

const browser = await launch()
try {
  await eventually(() => ask('GET', '/v1/topics?limit=1'), 30_000)
  const from = performance.now()
  await fill()
  console.log(`${topics} topics, ${messages} messages: made in ${Math.round((performance.now() - from) / 1_000)} s`)
  const { page, context } = await visit(browser, url)
  await page.goto(`${url}/ui`)
  await page.getByLabel('API key').fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('.brand').waitFor()
  await screen(page, 'overview', '/', /^topic-\d+$/)
  await screen(page, 'topics', '/topics', /^topic-00000$/)
  await screen(page, 'topics, most messages', '/topics?sort=total', /^topic-\d+$/)
  await screen(page, 'topics, part of a name', '/topics?search=0001', /^topic-0001\d$/)
  await screen(page, 'agenda, hour', '/agenda', /[1-9][\d,]* due in the next hour/)
  await screen(page, 'agenda, day', '/agenda?range=day', /[1-9][\d,]* due in the next/)
  await screen(page, 'messages', '/messages', /^topic-\d+$/)
  await screen(page, 'messages of a topic', `/messages?topic=${topicAt(7)}`, /^topic-\d+$/)
  await screen(page, 'a topic', `/topics/${topicAt(7)}`, /Visibility timeout/)
  await page.goto(`${url}/ui/`)
  await page.locator('.tile-value').first().waitFor()
  await cpuWhilePushing(page)
  await context.close()
} finally {
  await browser.close()
  raw.disconnect()
  service.kill()
  await once(service, 'exit')
  await redis.kill()
  rmSync(dir, { recursive: true, force: true })
}
process.exit()
