import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { launch, visit } from './support/browser.js'
import { setStage, type Stage } from './support/stage.js'

/** More than the page reads of a body, and the words around it. */
const MOST_READ = 200_000
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
