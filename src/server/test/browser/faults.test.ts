import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { launch, visit } from './support/browser.js'
import { setStage, type Stage } from './support/stage.js'

/** More bytes than the page reads of a body, with the JSON around it. */
const MOST_READ = 200_000
/** The most CPU seconds of the page's main thread: some 0.2 for the screens; parsing and showing 16 MiB of JSON would take several. */
const MOST_WORK_S = 2
const PATIENCE = { timeout: 60_000 }

describe('the page when something goes wrong', function () {
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

  it('reads the beginning of a body of 16 MiB, and continues', async () => {
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
    // by the CPU clock of its main thread, which stops while other processes run
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

  it('refuses requests that other pages make the browser send with its session', async () => {
    await signIn('/topics/orders')
    const context = page.context()
    await context.route(/^http:\/\/(127\.0\.0\.1:65000|elsewhere\.test)\//, (route) =>
      route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>another page</title>' }),
    )
    // the first is another origin of the same site, so it sends the cookie
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

  it('says on every screen that the service is away, and continues by itself when it is back', async () => {
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
      ...['/dead-letters', '/endpoints', `/endpoints/${stage.endpoint}`, '/journal', '/instances', '/doctor', '/audit'],
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
    // a screen that is opened meanwhile cannot be loaded
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

  it('says for every action that the service is away; none has changed anything when the service is back', async () => {
    await signIn('/topics')
    const endpoint = `/endpoints/${stage.endpoint}`
    const [order, hook] = ['/topics/orders/messages/order%3A7310', '/topics/hooks/messages/hook-0']
    const hooks = '/dead-letters?topic=hooks'
    const { url } = await stage.ask('GET', `/v1${endpoint}`)
    const made = `${url}/made-while-away`
    const { id: disabled } = await stage.ask('POST', '/v1/endpoints', { url: `${url}/disabled` })
    await stage.ask('PATCH', `/v1/endpoints/${disabled}`, { enabled: false })
    /** The screen of an action, the steps before the service stops, and the button that carries it out. */
    const actions: readonly (readonly [path: string, begin: readonly RegExp[], typed: string, button: RegExp])[] = [
      ['/topics/orders', [], '', /^Pause pushes/],
      ['/topics/orders', [], '', /^Pause receiving/],
      ['/topics/reminders', [], '', /^Resume receiving/],
      ['/topics/orders', [/^Purge…/], 'orders', /^Purge messages$/],
      ['/topics/hooks', [/^Purge dead letters…/], 'hooks', /^Purge dead letters$/],
      [order, [/^Reschedule…/], '', /^Due now$/],
      [order, [/^Cancel message…/], '', /^Cancel message$/],
      [hook, [], '', /^Redrive$/],
      [hooks, [], '', /^Redrive .*that match/],
      [hooks, [/^Delete .*that match…/], '', /^Delete$/],
      [endpoint, [], '', /^Send a test$/],
      [endpoint, [], '', /^Disable$/],
      [endpoint, [/^Recover…/], '', /^Recover$/],
      [endpoint, [/^Delete…/], stage.endpoint, /^Delete endpoint$/],
      [`/endpoints/${disabled}`, [], '', /^Enable$/],
      ['/endpoints', [/^Make an endpoint…/], made, /^Make endpoint$/],
      ['/journal', [], '', /^Start the (restore|dry run)$/],
      ['/topics', [], '', /^Sign out$/],
    ]
    const state = async () => {
      const topics = ['orders', 'reminders', 'hooks'].map((topic) => stage.ask('GET', `/v1/topics/${topic}`))
      const { counts, ...rest } = await stage.ask('GET', order.replace('/topics', '/v1/topics'))
      return {
        topics: (await Promise.all(topics)).map(({ counts: { total, dead }, paused }) => ({ total, dead, paused })),
        message: [rest.state, rest.dueAt, counts],
        endpoints: (await stage.ask('GET', '/v1/endpoints')).endpoints.map(({ id, enabled }) => ({ id, enabled })),
        restores: (await stage.ask('GET', '/v1/restores')).restores.length,
      }
    }
    const before = await state()
    const open = await Promise.all(
      actions.map(async ([path, begin, typed, button]) => {
        const one = await page.context().newPage()
        await one.goto(`${stage.url}/ui${path}`)
        await one.locator('main .panel').first().waitFor()
        for (const step of begin) await one.getByRole('button', { name: step }).click()
        if (typed !== '') await one.getByRole('dialog').getByRole('textbox').first().fill(typed)
        return { one, what: `${path} ${button.source}`, button: one.getByRole('button', { name: button }).last() }
      }),
    )
    for (const { button } of open) await button.waitFor()
    await stage.stopService()
    for (const { one, what, button } of open) {
      await button.click()
      // the form of an endpoint says it where the entries are, which stay
      const said = one.locator('.announcement, dialog [role=alert]').filter({ hasText: /does not answer/ })
      await said
        .first()
        .waitFor(PATIENCE)
        .catch(() => expect.fail(`${what}: nothing says that the service does not answer`))
    }
    await stage.startService()
    expect(await state()).to.deep.equal(before)
    // the same buttons work again
    const pause = open[0]
    await pause?.button.click()
    await pause?.one
      .locator('.announcement')
      .filter({ hasText: /pushes of orders is paused/ })
      .waitFor(PATIENCE)
    await stage.ask('POST', '/v1/topics/orders/resume', { what: 'push' })
    const make = open.find(({ what }) => what.includes('Make endpoint'))
    await make?.button.click()
    await make?.one.getByLabel('Secret').waitFor(PATIENCE)
    const { endpoints } = await stage.ask('GET', '/v1/endpoints')
    const its = endpoints.filter((one) => one.url === made)
    expect(its).to.have.length(1)
    for (const id of [disabled, ...its.map((one) => one.id)]) await stage.ask('DELETE', `/v1/endpoints/${id}`)
    for (const { one } of open) await one.close()
  })

  it('says that Redis does not answer, keeps what it has, and continues when Redis is back', async () => {
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
