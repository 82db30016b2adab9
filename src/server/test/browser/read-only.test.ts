import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { createClient } from 'redelayed'
import { freePort } from '../../../../test/support/redis-server.js'
import { startLibraryRedis, type LibraryRedis } from '../support/library-redis.js'
import { LosableRedis } from '../support/losable-redis.js'
import { startTestService, type TestService } from '../support/service.js'
import { launch, overflow, visit, type Visit } from './support/browser.js'
import { ALL, HIDDEN, LONG_WORD, MARKUP } from './support/hostile.js'
import { PAGE_FOLDER } from './support/stage.js'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const SCREENSHOTS = process.env['REDELAYED_SCREENSHOTS']

/** Arguments of a process cannot contain NUL. */
const HOSTILE = `hostile ${HIDDEN.replace('\0', '')}${MARKUP}`

/** The page gets 4,096 characters of a payload of a million letters. */
const MOST_TEXT = 20_000

interface AxeResults {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[]
}

describe('the page of a service with --read-only', function () {
  this.timeout(120_000)
  let browser: Browser
  let redis: LibraryRedis
  let service: TestService
  let one: Visit
  before(async () => {
    ;[browser, redis] = await Promise.all([launch(), startLibraryRedis()])
    await redis.admin.zadd(`redisson_delay_queue_timeout:{${MARKUP}}`, redis.javaDue, MARKUP)
    await fillHostile(redis.url)
    service = await startTestService({ redis: redis.readerUrl, readOnly: true }, PAGE_FOLDER)
  })
  after(async () => {
    await browser?.close()
    await service?.stop()
    await redis?.stop()
  })

  beforeEach(async () => {
    one = await visit(browser, service.url)
  })
  afterEach(() => one.context.close())

  it('runs no code in hostile names, ids, payloads, headers and reasons, and keeps its layout', async () => {
    const { page } = one
    page.setDefaultTimeout(60_000)
    await page.goto(`${service.url}/ui`)
    await page.getByLabel('API key').fill(service.key)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('link', { name: 'mails', exact: true }).waitFor()
    expect(await page.locator('nav a[aria-current=page]').allInnerTexts()).to.deep.equal(['Queues'])
    await page.setViewportSize({ width: 400, height: 860 })
    expect(await overflow(page)).to.be.at.most(0)
    await page.goto(`${service.url}/ui/queues/${encodeURIComponent(HOSTILE)}`)
    await page.getByRole('region', { name: 'Dead letters' }).getByText('dies').waitFor()
    await page
      .locator('main .escape', { hasText: String.raw`\u202e` })
      .first()
      .waitFor()
    expect(await overflow(page)).to.be.at.most(0)
    expect(await page.locator('main script, main img, main svg, main a[href^="javascript:"]').count()).to.equal(0)
    expect((await page.locator('main').innerText()).length).to.be.below(MOST_TEXT)
    expect(one.findings).to.deep.equal({ executed: [], violations: [], dialogs: [], elsewhere: [], errors: [] })
  })

  it('shows the queues, and for each its due times, its next messages, its quarantine and its dead letters', async () => {
    const { page } = one
    page.setDefaultTimeout(60_000) // each view starts processes
    const problems: string[] = []
    const check = async (name: string): Promise<void> => {
      await page.evaluate(AXE)
      const { violations } = await page.evaluate(() =>
        (globalThis as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run(),
      )
      for (const { id, nodes } of violations) problems.push(`${name}: ${id}: ${nodes[0]?.html ?? ''}`)
      if (SCREENSHOTS !== undefined) await page.screenshot({ path: `${SCREENSHOTS}/${name}.png`, fullPage: true })
      await page.setViewportSize({ width: 400, height: 860 })
      const by = await overflow(page)
      if (by > 0) problems.push(`${name}: ${by} wider than a window of 400`)
      await page.setViewportSize({ width: 1280, height: 860 })
    }
    await page.goto(`${service.url}/ui`)
    await page.getByLabel('API key').fill(service.key)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('link', { name: 'mails', exact: true }).waitFor()
    expect(await page.getByRole('navigation').getByRole('link').allInnerTexts()).to.deep.equal(['Queues', 'Doctor'])
    expect(await page.locator('main').innerText()).to.contain('no client delivers it')
    await check('queues')

    await page.getByRole('link', { name: 'java', exact: true }).click()
    const pending = page.getByRole('region', { name: 'Pending' })
    await pending.getByText('66726f6d').waitFor()
    await page.getByLabel('Codec of the payloads').fill('string')
    await pending.getByText('"from Java"').waitFor()
    await page.getByRole('region', { name: 'Quarantine' }).getByText('ff00').waitFor()
    await page.getByText('1 due in the next day').or(page.getByText('1 due in the next hour')).waitFor()
    await check('queue-java')

    await page.getByRole('link', { name: 'Queues' }).first().click()
    await page.getByRole('link', { name: 'mails', exact: true }).click()
    await page.getByRole('region', { name: 'Dead letters' }).getByText('no such address').waitFor()
    await check('queue-mails')

    await page.getByRole('link', { name: 'Doctor' }).click()
    await page.getByText('no-subscriber').first().waitFor()
    expect(problems).to.deep.equal([])
    expect(one.findings).to.deep.equal({ executed: [], violations: [], dialogs: [], elsewhere: [], errors: [] })
  })
})

describe('the page of a service with --read-only when something goes wrong', function () {
  this.timeout(180_000)
  const PATIENCE = { timeout: 90_000 } // each look starts a process, which may wait for Redis
  let browser: Browser
  let redis: LosableRedis
  let service: TestService
  let one: Visit
  let port: number
  const start = async (): Promise<void> => {
    service = await startTestService({ redis: redis.url, readOnly: true, port }, PAGE_FOLDER)
  }
  before(async () => {
    ;[browser, redis, port] = await Promise.all([
      launch(),
      LosableRedis.start(['--appendonly', 'yes', '--appendfsync', 'always']),
      freePort(),
    ])
    await fillHostile(redis.url)
    await start()
  })
  after(async () => {
    await browser?.close()
    await service?.stop()
    await redis?.stop()
  })
  beforeEach(async () => {
    one = await visit(browser, service.url)
    one.page.setDefaultTimeout(PATIENCE.timeout)
    await one.page.goto(`${service.url}/ui/queues/${encodeURIComponent(HOSTILE)}`)
    await signIn(one.page)
  })
  afterEach(async () => {
    await one.context.close()
    expect(one.findings).to.deep.equal({ executed: [], violations: [], dialogs: [], elsewhere: [], errors: [] })
  })

  const signIn = async (page: Page): Promise<void> => {
    await page.getByLabel('API key').fill(service.key)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await deadLetters(page).waitFor()
  }
  const deadLetters = (page: Page) => page.getByRole('region', { name: 'Dead letters' }).getByText('dies')

  it('keeps what it shows while the service is away, and asks the one that comes for its key', async () => {
    const { page } = one
    const queues = await page.context().newPage()
    await queues.goto(`${service.url}/ui/queues`)
    await queues.getByRole('table').getByRole('link').first().waitFor()
    await service.stop()
    for (const shown of [page, queues]) await shown.getByText('Disconnected since').first().waitFor(PATIENCE)
    expect(await deadLetters(page).isVisible()).to.equal(true)
    expect(await queues.getByRole('table').getByRole('link').first().isVisible()).to.equal(true)
    // a screen that is opened meanwhile cannot be loaded
    await queues.getByRole('link', { name: 'Doctor' }).click()
    await queues.getByText('The service does not answer.').first().waitFor(PATIENCE)
    // sessions and keys of a page that only reads end with its process
    await start()
    for (const asked of [page, queues]) await asked.getByLabel('API key').waitFor(PATIENCE)
    expect(await deadLetters(page).count()).to.equal(0)
    await signIn(page)
  })

  it('says that Redis does not answer, keeps what it shows, and continues when Redis is back', async () => {
    const { page } = one
    await redis.kill()
    await page.locator('main [role=alert]').first().waitFor(PATIENCE)
    expect(await deadLetters(page).isVisible()).to.equal(true)
    await redis.startAgain()
    await page
      .locator('main [role=alert]')
      .first()
      .waitFor({ state: 'detached', ...PATIENCE })
    await deadLetters(page).waitFor()
  })
})

/** A reliable queue with hostile texts wherever a client of Redis can write. */
async function fillHostile(url: string): Promise<void> {
  const client = createClient({ url })
  try {
    const queue = client.getReliableQueue(HOSTILE)
    await queue.add(ALL, { id: 'dies' })
    await (await queue.poll())?.negativeAcknowledge({ reject: true, error: ALL.slice(0, 500) })
    await queue.add({ [MARKUP]: ALL, word: LONG_WORD }, { id: MARKUP, delay: '1h', headers: { evil: ALL } })
    await queue.add(LONG_WORD, { id: HIDDEN.replace('\0', '') })
  } finally {
    await client.shutdown()
  }
}
