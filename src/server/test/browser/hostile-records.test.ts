import { expect } from 'chai'
import { Redis } from 'ioredis'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { LosableRedis } from '../support/losable-redis.js'
import { startTestService, type TestService } from '../support/service.js'
import { launch, overflow, visit, type Visit } from './support/browser.js'
import { ALL, HIDDEN, LONG_WORD, MARKUP, RLO } from './support/hostile.js'
import { PAGE_FOLDER } from './support/stage.js'

const PATIENCE = { timeout: 60_000 }
/** The most characters on a screen: it shows some thousands of each text of a million letters. */
const MOST_TEXT = 60_000
const HOUR = 3_600_000
/** As long as a text of a record may be. */
const TEXT = (ALL + 'W'.repeat(1_000)).slice(0, 1_000)
const [HUGE, TINY] = [1e300, -1e300]

/** What the screens of the service itself show was written by its instances, or by whoever else can write into their Redis. */
describe('the page with records that others have written', function () {
  this.timeout(180_000)
  let browser: Browser
  let redis: LosableRedis
  let admin: Redis
  let service: TestService
  let one: Visit
  let dir: string

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-hostile-'))
    ;[browser, redis] = await Promise.all([launch(), LosableRedis.start()])
    admin = new Redis(redis.url)
    await fillHostile(admin)
    service = await startTestService({ redis: redis.url, journal: `sqlite:${join(dir, 'journal.db')}` }, PAGE_FOLDER)
  })
  after(async () => {
    await browser?.close()
    await service?.stop()
    admin?.disconnect()
    await redis?.stop()
    rmSync(dir, { recursive: true, force: true })
  })
  beforeEach(async () => {
    one = await visit(browser, service.url)
    one.page.setDefaultTimeout(PATIENCE.timeout)
    await one.page.goto(`${service.url}/ui`)
    await one.page.getByLabel('API key').fill(service.key)
    await one.page.getByRole('button', { name: 'Sign in' }).click()
    await one.page.locator('.brand').waitFor()
  })
  afterEach(async () => {
    await one.context.close()
    expect(one.findings).to.deep.equal({ executed: [], violations: [], dialogs: [], elsewhere: [], errors: [] })
  })

  /** Nothing of it became a part of the page, and it has the width of the window. */
  const expectHarmless = async (page: Page): Promise<void> => {
    for (const width of [1280, 400]) {
      await page.setViewportSize({ width, height: 860 })
      expect(await overflow(page), `${width}`).to.be.at.most(0)
    }
    expect(await page.locator('main script, main img, main svg, main a[href^="javascript:"]').count()).to.equal(0)
    const text = await page.locator('main').innerText()
    expect(text.length).to.be.below(MOST_TEXT)
    // what turns the direction, has no width, or steers a terminal
    for (const hidden of [RLO, '\u200b', '\u001b', '\u2028']) expect(text).not.to.include(hidden)
    await page
      .locator('main .escape', { hasText: String.raw`\u202e` })
      .first()
      .waitFor()
  }

  it('shows instances with hostile hosts, versions, addresses and figures as text', async () => {
    const at = Date.now()
    const instance = (id: string, more: object): [string, string] => [
      id,
      JSON.stringify({
        ...{ id, host: 'host', pid: 1, version: '1', startedAt: at, seenAt: at + 24 * HOUR, memory: 1, url: null },
        ...{ connections: 0, waiting: 0, eventLoopMs: 0 },
        ...more,
      }),
    ]
    const figures = { pid: HUGE, memory: HUGE, connections: HUGE, waiting: TINY, eventLoopMs: HUGE }
    await admin.hset(
      'redelayed:service:instances',
      ...instance('short', { host: ALL, version: HIDDEN, url: `javascript:${MARKUP}` }),
      ...instance('long', { host: TEXT, version: TEXT, url: TEXT, ...figures, startedAt: HUGE }),
      ...instance('past', { host: 'past', ...figures, memory: TINY, startedAt: TINY }),
      ...instance('megabyte', { host: LONG_WORD }),
    )
    await one.page.goto(`${service.url}/ui/instances`)
    const rows = one.page.getByRole('table', { name: 'Instances' }).getByRole('row')
    await rows.filter({ hasText: 'pid 1e+300' }).first().waitFor()
    // the heading, this instance, and three others: what no instance can have written is none
    expect(await rows.count()).to.equal(5)
    await expectHarmless(one.page)
    await one.page.goto(`${service.url}/ui`)
    await one.page.getByRole('heading', { name: 'Instances' }).waitFor()
    expect(await overflow(one.page)).to.be.at.most(0)
    await admin.hdel('redelayed:service:instances', 'short', 'long', 'past', 'megabyte')
  })

  it('shows restores with hostile topics, ids, keys, errors and figures as text', async () => {
    const at = Date.now()
    const restore = (id: string, more: object): [string, string] => [
      id,
      JSON.stringify({
        ...{
          id,
          topic: null,
          messageId: null,
          expired: true,
          dryRun: false,
          key: 'key',
          state: 'failed',
          problem: null,
        },
        ...{ startedAt: at, updatedAt: at + 24 * HOUR, topics: 1, topicsDone: 0, total: null, checked: 0, restored: 0 },
        ...{ refused: 0, perSecond: 0, msLeft: null },
        ...more,
      }),
    ]
    const problem = (text: string): object => ({ type: text, title: text, status: 500, code: text, detail: text })
    const figures = { topics: HUGE, topicsDone: HUGE, total: HUGE, checked: HUGE, restored: HUGE, perSecond: HUGE }
    await admin.hset(
      'redelayed:service:restores',
      ...restore('short', { topic: ALL, messageId: MARKUP, key: HIDDEN, problem: problem(ALL) }),
      ...restore('long', {
        topic: TEXT.repeat(8),
        messageId: TEXT.repeat(8),
        key: TEXT,
        problem: problem(TEXT.repeat(4)),
      }),
      ...restore('running', { state: 'running', ...figures, msLeft: HUGE, startedAt: HUGE }),
      ...restore('past', { state: 'running', ...figures, total: 1, checked: TINY, msLeft: TINY, startedAt: TINY }),
      ...restore('megabyte', { problem: problem(LONG_WORD) }),
    )
    // by the API, too: an id can have any characters
    await service.ask('POST', '/v1/topics/orders/messages', { id: 'order:1', delay: HOUR, body: 1 })
    const started = await service.ask('POST', '/v1/restores', { topic: 'orders', id: MARKUP, dryRun: true })
    expect(started.status, JSON.stringify(started.body)).to.equal(202)
    await one.page.goto(`${service.url}/ui/journal`)
    const rows = one.page.getByRole('table', { name: 'Restores' }).getByRole('row')
    await rows.filter({ hasText: 'dry run' }).filter({ hasText: 'done' }).waitFor()
    expect(await rows.count()).to.equal(6)
    await expectHarmless(one.page)
    await admin.hdel('redelayed:service:restores', 'short', 'long', 'running', 'past', 'megabyte')
  })

  it('shows entries of the audit log with hostile keys, methods, paths and ids as text', async () => {
    const add = (entry: object) => admin.xadd('redelayed:service:audit', '*', 'd', JSON.stringify(entry))
    await add({ at: Date.now(), key: ALL, method: HIDDEN, path: ALL, status: HUGE, requestId: HIDDEN })
    await add({ at: HUGE, key: TEXT, method: TEXT, path: TEXT, status: TINY, requestId: MARKUP })
    await add({ at: TINY, key: HIDDEN, method: 'GET', path: LONG_WORD, status: 1, requestId: TEXT })
    await one.page.goto(`${service.url}/ui/audit`)
    const rows = one.page.getByRole('table', { name: 'Audit log' }).getByRole('row')
    await rows.filter({ hasText: 'no time' }).first().waitFor()
    await expectHarmless(one.page)
  })

  it('shows topics, due messages and found messages with hostile names and ids as text, a megabyte long too', async () => {
    const names = [ALL, HIDDEN, RLO + TEXT, LONG_WORD, `${HIDDEN}${LONG_WORD}`]
    const counts = { visible: HUGE, delayed: 1, inFlight: TINY, dead: 1, total: HUGE }
    const topics = names.map((name) => ({
      ...{ name, createdAt: HUGE, settings: { endpoint: ALL }, counts, oldestMs: HUGE, paused: ['push', ALL] },
    }))
    const messages = names.map((id, at) => ({
      ...{ topic: names.at(-at) ?? '', id, bizKey: id, state: at === 0 ? ALL : 'delayed', dueAt: Date.now() + HOUR },
      ...{ createdAt: HUGE, attempts: HUGE, priority: TINY, size: HUGE },
    }))
    const list = (rows: object) => ({ json: { ...rows, matched: null, complete: false, source: ALL } })
    await one.page.route('**/v1/topics?*', (route) => route.fulfill(list({ topics })))
    await one.page.route(/\/v1\/(agenda\/)?messages\?/, (route) => route.fulfill(list({ messages })))
    await one.page.route('**/v1/overview/stream', (route) => route.abort())
    await one.page.route('**/v1/overview', async (route) => {
      const response = await route.fetch()
      const problems = names.map((text) => ({ severity: ALL, code: text, text, topic: text }))
      const busiest = topics.map(({ name, ...rest }) => ({ topic: name, ...rest }))
      await route.fulfill({ response, json: { ...((await response.json()) as object), problems, busiest } })
    })
    const hostile = encodeURIComponent(ALL)
    for (const [path, label] of [
      ['/topics', 'Topics'],
      [`/topics?search=${hostile}&sort=${hostile}`, 'Topics'],
      [`/agenda?topic=${hostile}&show=overdue`, 'Overdue'],
      ['/agenda?show=bar&from=1&to=2', /^Due from/],
      [`/messages?id=${hostile}&topic=${hostile}&bizKey=${hostile}&state=${hostile}`, 'Messages'],
      ['/', 'Busiest topics'],
    ] as const) {
      await one.page.goto(`${service.url}/ui${path}`)
      const rows = one.page.getByRole('table', { name: label }).getByRole('row')
      await rows.nth(names.length).waitFor()
      await expectHarmless(one.page)
    }
  })

  it('shows steps of the journal with hostile changes, clients, errors and times as text', async () => {
    const body = { id: 'order:2', delay: HOUR, body: 1 }
    await service.ask('POST', '/v1/topics/orders/messages', body)
    const steps = [
      { change: ALL, at: Date.now(), attempt: HUGE, by: ALL, shard: HIDDEN, error: LONG_WORD },
      { change: HIDDEN, at: HUGE, attempt: TINY, by: LONG_WORD, shard: LONG_WORD, error: ALL },
      { change: LONG_WORD, at: TINY, attempt: null, by: null, shard: null, error: HIDDEN },
    ]
    await one.page.route('**/order%3A2/flow', (route) => route.fulfill({ json: { flow: steps, source: 'journal' } }))
    await one.page.goto(`${service.url}/ui/topics/orders/messages/order%3A2`)
    await one.page.locator('.timeline li').nth(2).waitFor()
    await expectHarmless(one.page)
  })

  it('shows what the doctor says of keys with hostile names, types, settings and repeats as text', async () => {
    await one.page.goto(`${service.url}/ui/doctor`)
    const kind = (code: string) =>
      one.page.locator('.findings > li').filter({ has: one.page.getByText(code, { exact: true }) })
    for (const code of ['no-subscriber', 'malformed', 'negative-due', 'setting-without-effect', 'repeat-unreadable'])
      await kind(code).waitFor()
    await kind('wrong-type').getByText('8 times').waitFor()
    await expectHarmless(one.page)
    // on the overview they are counted
    await one.page.goto(`${service.url}/ui`)
    await one.page.getByText(/The doctor has found/).waitFor()
    expect(await overflow(one.page)).to.be.at.most(0)
  })

  it('shows an error text of the doctor as text, and continues', async () => {
    let isRefused = true
    await one.page.route('**/v1/doctor*', (route) =>
      isRefused
        ? route.fulfill({ status: 503, json: { code: MARKUP, title: ALL, detail: LONG_WORD, requestId: TEXT } })
        : route.fulfill({ json: { at: HUGE, findings: [], leftOut: 0, notExamined: 7 } }),
    )
    await one.page.goto(`${service.url}/ui/doctor`)
    await one.page.locator('main [role=alert]').waitFor()
    await expectHarmless(one.page)
    isRefused = false
    await one.page.getByRole('button', { name: 'Try again' }).click()
    await one.page.getByText('7 queues were not examined').waitFor()
    await one.page.locator('main [role=alert]').waitFor({ state: 'detached' })
  })
})

/** Queues of a library with hostile names and contents, among them what the doctor quotes. */
async function fillHostile(admin: Redis): Promise<void> {
  for (const name of [`hostile ${ALL}`, `a \`${MARKUP}\` b`, HIDDEN, LONG_WORD]) {
    const keyOf = (prefix: string, of = name): string => `${prefix}:${of.includes('{') ? of : `{${of}}`}`
    await admin
      .multi()
      .zadd(keyOf('redisson_delay_queue_timeout'), Date.now() + HOUR, MARKUP, -1, ALL)
      .rpush(keyOf('redisson_delay_queue'), ALL)
      .hset(keyOf('redelayed:reliable:repeats'), ALL, MARKUP, 'w'.repeat(500), HIDDEN)
      .hset(keyOf('redelayed:reliable:config'), 'deliveryLimit', MARKUP.slice(0, 60), 'delay', ALL)
      .set(keyOf('redelayed:reliable:messages'), 'no hash')
      .set(`${keyOf('redelayed:reliable:messages')}:dead`, 'no hash')
      .exec()
  }
}
