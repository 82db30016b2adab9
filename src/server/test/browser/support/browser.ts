import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'

/** Events that must never happen on the page, whatever it shows. */
export interface Findings {
  /** A script in data was run. */
  readonly executed: string[]
  /** The policy of the page refused something. */
  readonly violations: string[]
  readonly dialogs: string[]
  /** Requests to another origin. */
  readonly elsewhere: string[]
  readonly errors: string[]
}

export interface Visit {
  readonly context: BrowserContext
  readonly page: Page
  readonly findings: Findings
}

export interface VisitOptions {
  readonly dark?: boolean
  readonly width?: number
  readonly height?: number
  /** The time zone of the reader; default: that of this machine. */
  readonly zone?: string
}

const EXECUTABLE = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: EXECUTABLE, args: ['--no-sandbox', '--disable-gpu'] })
}

/** Opens the page at `origin` and watches for events that must not happen. */
export async function visit(browser: Browser, origin: string, options: VisitOptions = {}): Promise<Visit> {
  const { dark = false, width = 1280, height = 860, zone } = options
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: dark ? 'dark' : 'light',
    locale: 'en-GB',
    ...(zone !== undefined && { timezoneId: zone }),
  })
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  const findings: Findings = { executed: [], violations: [], dialogs: [], elsewhere: [], errors: [] }
  await page.exposeFunction('hostile', (what: unknown) => void findings.executed.push(String(what)))
  await page.exposeFunction('violated', (what: unknown) => void findings.violations.push(String(what)))
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      ;(globalThis as unknown as { violated(what: string): void }).violated(`${violatedDirective} ${blockedURI}`)
    })
  })
  page.on('dialog', (dialog) => {
    findings.dialogs.push(dialog.message())
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    const { origin: to, protocol } = new URL(request.url())
    if (to !== origin && protocol !== 'data:') findings.elsewhere.push(request.url())
  })
  page.on('pageerror', (error) => findings.errors.push(error.message))
  return { context, page, findings }
}

/** By how much the document is wider than its visible part. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
}
