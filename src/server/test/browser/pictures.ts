// The pictures of the documentation: `npm run test:browser -- --pictures` writes them into docs/images. A shop pushes and receives for some
// minutes, so that there is something to see.
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { eventually } from '../support/eventually.js'
import { LosableRedis } from '../support/losable-redis.js'
import { startTestService, type TestService } from '../support/service.js'
import { launch, visit } from './support/browser.js'
import { PAGE_FOLDER } from './support/stage.js'

const [MINUTE, SECOND] = [60_000, 1_000]
const [WIDTH, HEIGHT] = [1180, 720]
const TRAFFIC_MS = 150 * SECOND
const TOPICS = {
  'orders.unpaid': 'order',
  'carts.abandoned': 'cart',
  'trials.ending': 'trial',
  'payments.retry': 'payment',
  'reports.nightly': 'report',
} as const
const NAMES = ['Ada Lovelace', 'Grace Hopper', 'Katherine Johnson', 'Edsger Dijkstra', 'Barbara Liskov']

describe('the pictures of the documentation', function () {
  this.timeout(TRAFFIC_MS + 5 * MINUTE)
  const folder = process.env['REDELAYED_PICTURES'] ?? ''
  let browser: Browser
  let redis: LosableRedis
  let receiver: Server
  let service: TestService
  let dir: string
  let number = 7_300

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-pictures-'))
    receiver = await startReceiver()
    const { port } = receiver.address() as AddressInfo
    ;[browser, redis] = await Promise.all([launch(), LosableRedis.start(['--appendonly', 'yes'])])
    service = await startTestService(
      {
        ...{ redis: redis.url, journal: `sqlite:${join(dir, 'journal.db')}` },
        ...{ webhookNetworks: ['127.0.0.0/8'], webhookPorts: [port] },
      },
      PAGE_FOLDER,
    )
    const { body } = await ask('POST', '/v1/endpoints', {
      url: `http://127.0.0.1:${port}/hooks`,
      description: 'Billing',
    })
    await ask('PUT', '/v1/topics/invoices', { endpoint: body.id, deliveryLimit: 2, retryDelays: [1] })
  })
  after(async () => {
    await browser?.close()
    await service?.stop()
    await redis?.stop()
    receiver?.closeAllConnections()
    receiver?.close()
    rmSync(dir, { recursive: true, force: true })
  })

  const ask: TestService['ask'] = async (method, path, body) => {
    const answer = await service.ask(method, path, body)
    if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer
  }
  const push = (topic: string, kind: string, delays: readonly number[]) =>
    ask('POST', `/v1/topics/${topic}/messages/batch`, {
      messages: delays.map((delay) => {
        number++
        const customer = { id: number % 97, name: NAMES[number % NAMES.length] }
        return {
          ...{ id: `${kind}:${number}`, bizKey: `customer-${number % 97}`, delay, headers: { source: 'shop' } },
          body: { [kind]: number, customer, lines: [{ sku: `A-${number % 40}`, count: 1 + (number % 3) }] },
        }
      }),
    })
  /** Receives what is due, waits a second for it, and rejects one of so many. */
  const handle = async (topic: string, bad: number): Promise<void> => {
    const { body } = await ask('POST', `/v1/topics/${topic}/receive`, { max: 50, wait: SECOND })
    const [rejected, handled]: [string[], string[]] = [[], []]
    for (const { id, lease } of body.messages) (Number(id.split(':')[1]) % bad === 0 ? rejected : handled).push(lease)
    if (handled.length > 0) await ask('POST', '/v1/leases/acknowledge', { leases: handled })
    if (rejected.length > 0)
      await ask('POST', '/v1/leases/negative-acknowledge', {
        ...{ leases: rejected, reject: true, error: 'CardDeclined: the bank says no (code 51)' },
      })
  }

  it('are made', async () => {
    for (const [at, [topic, kind]] of Object.entries(TOPICS).entries()) {
      const minutes = Array.from({ length: 60 }, (_, minute) => 4 + Math.round(4 * (1 + Math.sin(minute / 7 + at))))
      await push(
        topic,
        kind,
        minutes.flatMap((many, minute) => spread(many, minute * MINUTE + 4 * MINUTE)),
      )
      await push(
        topic,
        kind,
        Array.from({ length: 60 }, (_, hour) => (hour + 2) * 31 * MINUTE),
      )
    }
    await ask('POST', '/v1/topics/reports.nightly/pause', {})
    await push('reports.nightly', 'report', [0, 500, 1_000, 2_000])

    const { page, context } = await visit(browser, service.url, { width: WIDTH, height: HEIGHT })
    await page.goto(`${service.url}/ui`)
    await page.getByLabel('API key').fill(service.key)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Busiest topics' }).waitFor()
    const began = performance.now()
    const consume = async (topic: string): Promise<void> => {
      while (performance.now() - began < TRAFFIC_MS) await handle(topic, 97)
    }
    const consumers = Object.keys(TOPICS).slice(0, 4).map(consume)
    for (let turn = 0; performance.now() - began < TRAFFIC_MS; turn++) {
      const wave = 2 + Math.round(2 * (1 + Math.sin(turn / 12)))
      const topics = Object.entries(TOPICS).slice(0, 4)
      await Promise.all([
        ...topics.map(([topic, kind], at) =>
          push(
            topic,
            kind,
            spread(Math.max(1, wave - at), 200).map((delay) => delay % (4 * SECOND)),
          ),
        ),
        ...(turn % 8 === 0 ? [push('invoices', 'invoice', [0])] : []),
      ])
      await setTimeout(SECOND)
    }
    await Promise.all(consumers)
    await eventually(async () => {
      const { body } = await ask('GET', '/v1/dead-letters')
      if ((body as unknown as { deadLetters: unknown[] }).deadLetters.length < 2)
        throw new Error('too few dead letters')
    }, MINUTE)

    await picture(page, 'overview')
    await go(page, '/agenda')
    await page.locator('.histogram a').nth(21).click()
    await page.getByRole('table').getByRole('link').first().waitFor()
    await picture(page, 'agenda')
    await go(page, '/endpoints')
    await page.getByRole('link', { name: /^Billing/ }).click()
    await page.getByText('Status 503').first().waitFor()
    await picture(page, 'endpoint')
    await go(page, '/dead-letters')
    await page.getByRole('table').getByRole('link').first().waitFor()
    await picture(page, 'dead-letters')
    await page.getByRole('table').getByRole('row').nth(1).getByRole('link').first().click()
    await page.getByText('CardDeclined').or(page.getByText('maintenance')).first().waitFor()
    await picture(page, 'message')
    await page.emulateMedia({ colorScheme: 'dark' })
    await go(page, '/')
    await page.getByRole('heading', { name: 'Busiest topics' }).waitFor()
    await picture(page, 'overview-dark')
    await page.emulateMedia({ colorScheme: 'light' })
    await page.setViewportSize({ width: 400, height: 800 })
    await picture(page, 'overview-narrow')
    await context.close()
  })

  async function go(page: Page, path: string): Promise<void> {
    await page.goto(`${service.url}/ui${path}`)
    await page.locator('h1').waitFor()
  }
  async function picture(page: Page, name: string): Promise<void> {
    await page.mouse.move(0, 0)
    await page.evaluate(() => scrollTo(0, 0))
    await page.screenshot({ path: join(folder, `page-${name}.png`) })
  }
})

/** So many delays over a minute that begins then. */
function spread(many: number, from: number): number[] {
  return Array.from({ length: many }, (_, at) => Math.round(from + ((at * 7_919 + many * 3_571) % MINUTE)))
}

/** Is down, as an endpoint is now and then. */
async function startReceiver(): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      response.statusCode = 503
      response.setHeader('Content-Type', 'application/json')
      response.end('{"error":"maintenance until noon"}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}
