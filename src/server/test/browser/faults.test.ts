import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { launch, visit } from './support/browser.js'
import { setStage, type Stage } from './support/stage.js'

/** More than the page reads of a body, and the words around it. */
const MOST_READ = 200_000
/** Of the main thread of the page, in seconds: some 0.2 for the screens, and parsing 16 MiB of JSON and showing it would be several. */
const MOST_WORK_S = 2
const PATIENCE = { timeout: 60_000 }

describe('the page with what goes wrong', function () {
  this.timeout(180_000)
  let browser: Browser
  let stage: Stage
  let page: Page
  let close: () => Promise<void>

  before(async () => {
    ;[browser, stage] = await Promise.all([launch(), setStage()])
  })
  after(async () => {
    await browser?.close()
    await stage?.stop()
  })
  beforeEach(async () => {
    const visited = await visit(browser, stage.url)
    page = visited.page
    close = async () => {
      await visited.context.close()
      expect(visited.findings.errors).to.deep.equal([])
    }
  })
  afterEach(() => close())

  const signIn = async (path: string, key = stage.key): Promise<void> => {
    await page.goto(`${stage.url}/ui`)
    await page.getByLabel('API key').fill(key)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('.brand').waitFor()
    await page.goto(`${stage.url}/ui${path}`)
    await page.locator('h1').waitFor()
  }
  const heard = (text: RegExp) => page.locator('.announcement').filter({ hasText: text }).waitFor(PATIENCE)
  const dead = async (topic: string): Promise<number> => (await stage.ask('GET', `/v1/topics/${topic}`)).counts.dead

  it('deletes the dead letters that match a filter, and no others, after a question', async () => {
    await signIn('/dead-letters?reason=no%20such%20customer')
    await page.getByRole('button', { name: /^Delete .*that match…/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await heard(/2 dead letters were deleted/)
    await page.getByText('No dead letter matches.').waitFor(PATIENCE)
    expect([await dead('failing'), await dead('hooks')]).to.deep.equal([0, 4])
  })

  it('hides bodies and headers from keys that may not see them', async () => {
    const seen: string[] = []
    page.on('response', (response) => {
      if (response.url().includes('/v1/'))
        void response.text().then(
          (text) => seen.push(text),
          () => undefined,
        )
    })
    await signIn('/topics/orders/messages/order%3A7310', stage.addKey(['read'], ['*'], true))
    await page.getByText('This key may not see bodies and headers.').first().waitFor()
    expect(await page.locator('main').innerText()).not.to.contain('Ada Lovelace')
    expect(seen.join()).to.contain('order:7310').and.not.contain('Ada Lovelace')
  })

  it('reads the beginning of a body of 16 MiB, and goes on', async () => {
    const session = await page.context().newCDPSession(page)
    await session.send('Performance.enable', { timeDomain: 'threadTicks' })
    const worked = async (): Promise<number> => {
      const { metrics } = await session.send('Performance.getMetrics')
      return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN
    }
    await stage.ask('POST', '/v1/topics/large/messages', { id: 'huge', delay: 3_600_000, body: 'w'.repeat(16_000_000) })
    const answer = page.waitForResponse((response) => response.url().includes('/messages/huge?'), PATIENCE)
    await signIn('/topics/large/messages/huge')
    expect((await (await answer).body()).length).to.be.below(MOST_READ)
    await page.locator('pre.body').first().waitFor()
    expect(
      await page
        .locator('pre.body')
        .first()
        .evaluate((body) => body.textContent.length),
    ).to.be.below(MOST_READ)
    await page.locator('nav').getByRole('link', { name: 'Topics' }).click()
    await page.getByRole('heading', { level: 1, name: 'Topics' }).waitFor()
    // by the clock of its main thread, which stands still while others have the processor
    expect(await worked()).to.be.within(0.01, MOST_WORK_S)
  })

  it('says how far it came with dead letters when the service goes away in between', async () => {
    let asked = 0
    await page.route('**/v1/dead-letters/redrive', (route) =>
      asked++ === 0 ? route.fulfill({ json: { matched: 3, done: 2, cursor: 'next' } }) : route.abort('connectionreset'),
    )
    await signIn('/dead-letters?topic=hooks')
    await page.getByRole('button', { name: /^Redrive .*that match/ }).click()
    await heard(/does not answer.*2 dead letters were redriven before/)
    await page.getByRole('button', { name: /^Redrive .*that match/ }).waitFor()
    expect(await dead('hooks')).to.equal(4)
  })

  it('refuses what other pages have the browser send with its session', async () => {
    await signIn('/topics/orders')
    const context = page.context()
    await context.route(/^http:\/\/(127\.0\.0\.1:65000|elsewhere\.test)\//, (route) =>
      route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>another page</title>' }),
    )
    // the first one is of another origin and the same site, so it sends the cookie
    for (const [origin, status] of [
      ['http://127.0.0.1:65000', 403],
      ['http://elsewhere.test', 401],
    ] as const) {
      const other = await context.newPage()
      for (const [path, method] of [
        ['/v1/topics/orders/pause', 'post'],
        ['/v1/topics/orders/purge', 'post'],
        ['/v1/topics', 'get'],
        ['/v1/overview', 'get'],
      ] as const) {
        await other.goto(`${origin}/`)
        const answer = other.waitForResponse((response) => response.request().isNavigationRequest())
        await other.evaluate(
          async ([action, method]) => {
            const body = method === 'post' ? { body: '{}' } : {}
            await fetch(action, { method, ...body, mode: 'no-cors', credentials: 'include' }).catch(() => undefined)
            const form = document.createElement('form')
            Object.assign(form, { method, enctype: 'text/plain', action })
            document.body.append(form)
            form.submit()
          },
          [stage.url + path, method] as const,
        )
        expect((await answer).status(), `${origin} ${path}`).to.equal(status)
        await other.waitForURL(`${stage.url}${path}*`)
      }
      await other.close()
    }
    const { counts } = await stage.ask('GET', '/v1/topics/orders')
    expect(counts.total).to.equal(40)
    await page.reload()
    await page.getByRole('button', { name: /^Pause pushes/ }).waitFor()
    expect(await page.getByRole('button', { name: /^Pause receiving/ }).count()).to.equal(1)
  })

  it('says on every screen that the service is away, and goes on by itself when it is back', async () => {
    await signIn('/topics')
    const paths = [
      ...[
        '/',
        '/topics',
        '/topics/orders',
        '/agenda',
        '/messages?topic=orders',
        '/topics/orders/messages/order%3A7310',
      ],
      ...['/dead-letters', '/endpoints', `/endpoints/${stage.endpoint}`, '/journal', '/instances', '/audit'],
    ]
    const pages = await Promise.all(
      paths.map(async (path) => {
        const one = await page.context().newPage()
        await one.goto(`${stage.url}/ui${path}`)
        await one.locator('main .panel').first().waitFor()
        return { path, one }
      }),
    )
    await stage.stopService()
    for (const { path, one } of pages) {
      await one.getByText('Disconnected since').first().waitFor(PATIENCE)
      expect(await one.locator('main .panel').first().isVisible(), path).to.equal(true)
    }
    // what is opened meanwhile cannot be loaded
    const [, topics] = pages
    await topics?.one.locator('nav').getByRole('link', { name: 'Messages' }).click()
    await topics?.one.getByText('The service does not answer.').first().waitFor(PATIENCE)
    await stage.startService()
    for (const { one } of pages) {
      await one
        .getByText('Disconnected since')
        .first()
        .waitFor({ state: 'detached', ...PATIENCE })
      await one
        .locator('main [role=alert]')
        .first()
        .waitFor({ state: 'detached', ...PATIENCE })
    }
    await topics?.one.getByRole('link', { name: 'order:7310' }).waitFor(PATIENCE)
  })

  it('says that Redis does not answer, keeps what it has, and goes on when Redis is back', async () => {
    await signIn('/topics/orders')
    await page.getByText('Visibility timeout').waitFor()
    await stage.redis.kill()
    await page.locator('main [role=alert]').first().waitFor(PATIENCE)
    expect(await page.getByText('Visibility timeout').isVisible()).to.equal(true)
    await stage.redis.startAgain()
    await page
      .locator('main [role=alert]')
      .first()
      .waitFor({ state: 'detached', ...PATIENCE })
    await page.getByRole('button', { name: /^Pause pushes/ }).click()
    await heard(/pushes of orders is paused/)
  })
})
