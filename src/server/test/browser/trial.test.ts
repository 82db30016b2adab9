import { expect } from 'chai'
import type { Browser, Locator, Page } from 'playwright-core'
import { launch, visit } from './support/browser.js'
import { setStage, type Stage } from './support/stage.js'

/** An operator who has signed in, and whose clicks are counted. Nothing is typed, and no address is known. */
class Operator {
  readonly page: Page
  clicks = 0

  constructor(page: Page) {
    this.page = page
  }

  async click(what: Locator): Promise<void> {
    this.clicks++
    await what.click()
  }

  /** Clicks an entry of the menu on the left. */
  goTo(place: string): Promise<void> {
    return this.click(this.page.locator('nav').getByRole('link', { name: place }))
  }
}

describe('an operator who does not know the page', function () {
  this.timeout(120_000)
  let browser: Browser
  let stage: Stage
  let operator: Operator
  let close: () => Promise<void>

  before(async () => {
    ;[browser, stage] = await Promise.all([launch(), setStage()])
  })
  after(async () => {
    await browser?.close()
    await stage?.stop()
  })
  beforeEach(async () => {
    const { page, context } = await visit(browser, stage.url)
    close = () => context.close()
    await page.goto(`${stage.url}/ui`)
    await page.getByLabel('API key').fill(stage.key)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Busiest topics' }).waitFor()
    operator = new Operator(page)
  })
  afterEach(() => close())

  it('finds the oldest overdue message', async () => {
    const { page } = operator
    const { messages } = await stage.ask('GET', '/v1/agenda/messages?limit=1')
    await operator.click(page.getByRole('link', { name: /^Oldest overdue/ }))
    await operator.click(page.getByRole('table').getByRole('row').nth(1).getByRole('link').first())
    await page.getByRole('heading', { level: 1, name: messages[0]?.id ?? '' }).waitFor()
    await page.getByText('Timeline').first().waitFor()
    expect(operator.clicks).to.equal(2)
  })

  it('finds why a webhook fails', async () => {
    const { page } = operator
    await operator.goTo('Endpoints')
    await operator.click(page.getByRole('link', { name: /^Billing/ }))
    await page.getByRole('heading', { name: 'Why webhooks fail' }).waitFor()
    await page.getByText('Status 500').waitFor()
    expect(operator.clicks).to.equal(2)
  })

  it('redrives the dead letters of one endpoint since yesterday, and no others', async () => {
    const { page } = operator
    const dead = async (topic: string): Promise<number> => (await stage.ask('GET', `/v1/topics/${topic}`)).counts.dead
    expect([await dead('hooks'), await dead('failing')]).to.deep.equal([4, 2])
    await operator.goTo('Endpoints')
    await operator.click(page.getByRole('link', { name: /^Billing/ }))
    await operator.click(page.getByRole('link', { name: 'Dead letters since yesterday' }))
    await operator.click(page.getByRole('button', { name: /^Redrive .* that match/ }))
    await page.locator('.announcement').filter({ hasText: '4 dead letters were redriven' }).waitFor()
    expect(await dead('failing')).to.equal(2)
    expect(operator.clicks).to.equal(4)
  })

  it('finds how far a restore is', async () => {
    const { page } = operator
    await stage.ask('POST', '/v1/restores', {})
    await operator.goTo('Journal & restores')
    const row = page.getByRole('table', { name: 'Restores' }).getByRole('row').filter({ hasText: 'all topics' })
    await row.getByText(/^[\d,. ]+ of about [\d,. ]+ checked|^[\d,. ]+ checked, \d+ of \d+ topics/).waitFor()
    expect(operator.clicks).to.equal(1)
  })
})
