/** The demo on the test's Redis, with a short recording; and the parts that its verdict rests on. */
import { expect } from 'chai'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expectationOf, readEvents } from '../../scripts/demo/expectation.js'
import { MARGIN_MS, generateOrders, toNdjson, type OrderEvent } from '../../scripts/demo/generate-orders.js'
import { summarize } from '../../scripts/demo/summary.js'
import { Tally, percentile, totalsOf } from '../../scripts/demo/tally.js'
import { rawClient, redisUrl } from '../support/redis.js'
import { cleanUp, onCleanup } from './fixtures.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const RECORDING = join(root, 'scripts/demo/orders.ndjson')
const MINUTE_MS = 120

interface Finished {
  readonly code: number | null
  readonly out: string
  readonly err: string
  /** Keys that the run left in Redis. */
  readonly left: string[]
}

/** `interruptAfter`: Ctrl-C when the output matches this. */
async function demo(args: readonly string[], { interruptAfter }: { interruptAfter?: RegExp } = {}): Promise<Finished> {
  const library = new URL('../../src/index.ts', import.meta.url).href
  const child = spawn(process.execPath, ['scripts/run.mjs', 'demo', '--url', redisUrl(), ...args], {
    cwd: root,
    env: { ...process.env, REDELAYED_DEMO_LIBRARY: library },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onCleanup(() => child.kill('SIGKILL'))
  let [out, err] = ['', '']
  child.stdout.on('data', (bytes: Buffer) => {
    out += bytes.toString()
    if (interruptAfter?.test(out) === true) child.kill('SIGINT')
  })
  child.stderr.on('data', (bytes: Buffer) => (err += bytes.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  const left: string[] = []
  for await (const keys of rawClient().scanStream({ match: `*redelayed:demo:${child.pid}:*`, count: 1000 })) {
    left.push(...(keys as string[]))
  }
  return { code, out, err, left }
}

/** A file with these events, deleted after the test. */
function fileOf(events: OrderEvent[]): string {
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-demo-'))
  onCleanup(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'orders.ndjson')
  writeFileSync(file, toNdjson(events))
  return file
}

/** The rows of the summary: what happened, and what the file says. */
function summaryOf(out: string): Record<string, [happened: number, byTheFile: number]> {
  const rows = out.matchAll(/^([a-z ]+?) +(\d+) +(\d+)(?: +<-- differs)?$/gm)
  return Object.fromEntries(Array.from(rows, ([, name, happened, file]) => [name!, [Number(happened), Number(file)]]))
}

function twice<T>(value: T): [T, T] {
  return [value, value]
}

describe('npm run demo', function () {
  this.timeout(60_000)
  afterEach(cleanUp)

  for (const layout of ['redisson', 'compact']) {
    it(`closes exactly the unpaid orders, and leaves nothing behind (layout: ${layout})`, async () => {
      const events = generateOrders({ seed: 7, orders: 80, minutes: 5 })
      const totals = totalsOf(expectationOf(events).fates.values())
      for (const count of Object.values(totals)) expect(count).to.be.greaterThan(0)

      const { code, out, err, left } = await demo([
        '--orders',
        fileOf(events),
        '--minute',
        String(MINUTE_MS),
        '--layout',
        layout,
      ])
      expect({ code, err, left }, out).to.deep.equal({ code: 0, err: '', left: [] })
      expect(out)
        .to.match(/^Redis: .* as given$/m)
        .and.to.match(/^OK: /m)
      expect(out).to.match(/^lateness +p50 \d+\.\d ms {2}p99 \d+\.\d ms {2}max \d+\.\d ms/m)
      const never = ['early', 'lost', 'duplicated', 'altered', 'quarantined', 'not taken', 'problems']
      expect(summaryOf(out)).to.deep.equal({
        ...Object.fromEntries(Object.entries(totals).map(([name, count]) => [name, twice(count)])),
        ...Object.fromEntries(never.map((name) => [name, twice(0)])),
      })
    })
  }

  it('ends with exit code 1 and names the order when the file says something else', async () => {
    const events = generateOrders({ seed: 8, orders: 40, minutes: 1 })
    const { fates } = expectationOf(events)
    const [paid] = [...fates].find(([, { cancelled }]) => cancelled)!
    const doctored = events.filter((event) => !(event.type === 'paid' && event.order === paid))
    const { code, out, left } = await demo([
      '--orders',
      fileOf(events),
      '--expect',
      fileOf(doctored),
      '--minute',
      String(MINUTE_MS),
    ])
    expect({ code, left }, out).to.deep.equal({ code: 1, left: [] })
    const { cancelled, delivered, lost } = summaryOf(out)
    expect(cancelled![0]).to.equal(cancelled![1] + 1)
    expect(delivered![0]).to.equal(delivered![1] - 1)
    expect(lost).to.deep.equal([1, 0])
    expect(out).to.match(/^DIFFERENT: /m)
    expect(out).to.match(new RegExp(`^ {2}${paid}: .*cancelled by its payment; by the file .*delivered$`, 'm'))
  })

  it('cleans up after Ctrl-C', async () => {
    const { code, err, left } = await demo(['--minute', '1000'], { interruptAfter: /pending [1-9]/ })
    expect({ code, err, left }).to.deep.equal({ code: 130, err: '', left: [] })
  })

  it('refuses wrong options with exit code 2', async () => {
    const { code, err } = await demo(['--minute', 'soon'])
    expect(code).to.equal(2)
    expect(err).to.match(/^--minute takes 1 to 60000, not "soon"\n/)
  })

  describe('its outcome', () => {
    const events = generateOrders({ seed: 8, orders: 40, minutes: 1 })
    const expected = expectationOf(events)
    const [unpaid] = [...expected.fates].find(([, { cancelled }]) => !cancelled)!
    const scale = MINUTE_MS / 60_000
    const marginMs = expected.closestMs * scale

    /** All goes as the file says, but one order that has to be closed is cancelled in place of that. */
    function verdict({ lateMs, behindMs }: { lateMs: number; behindMs: number }) {
      const tally = new Tally()
      for (const event of events) {
        if (event.type !== 'placed') continue
        const { at: _at, type: _type, ...order } = event
        tally.add({ type: 'offered', order: event.order, due: 1_000 })
        if (event.order === unpaid) tally.add({ type: 'paid', order: event.order, cancelled: true })
        else tally.add({ type: 'taken', consumer: 1, orders: [order], at: 1_000 + lateMs })
      }
      tally.add({ type: 'done', behindMs })
      return summarize({ tally, expected, events, quarantined: 0, left: 0, scale }).outcome
    }

    it('is that it differs where everything was in time', () => {
      expect(verdict({ lateMs: marginMs / 4, behindMs: marginMs / 4 })).to.equal('different')
    })

    it('is that the machine was too slow where a message or the producer was later than the file allows for', () => {
      expect(verdict({ lateMs: marginMs, behindMs: 0 })).to.equal('too slow')
      expect(verdict({ lateMs: 0, behindMs: marginMs })).to.equal('too slow')
    })
  })

  describe('its recording', () => {
    const events = readEvents(RECORDING)

    it('is what the generator makes', () => {
      expect(readFileSync(RECORDING, 'utf8')).to.equal(toNdjson(generateOrders()))
    })

    it('has at least 500 orders with every kind of fate, and several for the same moment', () => {
      const fates = [...expectationOf(events).fates.values()]
      expect(fates.length).to.be.at.least(500)
      const kinds: [what: string, of: (fate: (typeof fates)[number]) => boolean][] = [
        ['paid in time', (fate) => fate.cancelled && fate.rescheduled === 0],
        ['never paid', (fate) => fate.closed && fate.refusedPayments === 0],
        ['extended, then paid', (fate) => fate.cancelled && fate.rescheduled > 0],
        ['extended, then unpaid', (fate) => fate.closed && fate.rescheduled > 0],
        ['paid too late', (fate) => fate.closed && fate.refusedPayments > 0],
        ['extended too late', (fate) => fate.refusedExtensions > 0],
      ]
      for (const [what, of] of kinds) expect(fates.filter(of).length, what).to.be.at.least(3)
      const dues = events.flatMap((event) => (event.type === 'placed' ? [event.payBy] : []))
      expect(dues.length - new Set(dues).size).to.be.greaterThan(50)
    })

    it('keeps every event away from the deadlines', () => {
      expect(expectationOf(events).closestMs).to.be.at.least(MARGIN_MS)
      expect((MARGIN_MS * 180) / 60_000).to.be.at.least(200)
    })
  })

  describe('its verdict', () => {
    const order = {
      order: 'R-1',
      customer: { id: 'C', name: 'N', country: 'DE' },
      items: [],
      total: 1,
      currency: 'EUR',
    }
    const placed: OrderEvent = { at: 0, type: 'placed', ...order, payBy: 1000 }
    const message = { ...order, payBy: 1000 }
    const DUE = 1_795_000_000_000

    function check(events: OrderEvent[], taken: { at: number; message?: typeof message }[], paid?: boolean) {
      const tally = new Tally()
      tally.add({ type: 'offered', order: 'R-1', due: DUE })
      if (paid !== undefined) tally.add({ type: 'paid', order: 'R-1', cancelled: paid })
      taken.forEach(({ at, message: order = message }, i) =>
        tally.add({ type: 'taken', consumer: 1 + i, orders: [order], at }),
      )
      const { different, ...ids } = tally.check(expectationOf(events).fates, events)
      const found = Object.entries(ids).flatMap(([name, list]) => (list.length > 0 ? [name] : []))
      return [...found, ...(different.length > 0 ? ['different'] : [])]
    }
    const paidAt = (at: number): OrderEvent => ({ at, type: 'paid', order: 'R-1', method: 'card' })

    const cases: [what: string, found: string[], expected: string[]][] = [
      ['a delivery on time is fine', check([placed], [{ at: DUE }]), []],
      ['a delivery a microsecond early is early', check([placed], [{ at: DUE - 0.001 }]), ['early']],
      ['no delivery is a loss', check([placed], []), ['lost', 'different']],
      ['a second delivery is a duplicate', check([placed], [{ at: DUE }, { at: DUE + 1 }]), ['duplicated']],
      ['a changed message is noticed', check([placed], [{ at: DUE, message: { ...message, total: 2 } }]), ['altered']],
      ['a cancelled one stays away', check([placed, paidAt(999)], [], true), []],
      ['a cancelled one that is delivered is wrong', check([placed, paidAt(999)], [{ at: DUE }], true), ['different']],
      ['a payment too late is refused', check([placed, paidAt(1000)], [{ at: DUE }], false), []],
      ['a payment too late that cancels is wrong', check([placed, paidAt(1000)], [], true), ['lost', 'different']],
    ]
    for (const [what, found, expected] of cases) it(what, () => expect(found).to.deep.equal(expected))

    it('knows percentiles', () => {
      const values = Array.from({ length: 100 }, (_, i) => 100 - i)
      expect([0.5, 0.99, 1].map((fraction) => percentile(values, fraction))).to.deep.equal([50, 99, 100])
      expect(percentile([7], 0.5)).to.equal(7)
    })
  })
})
