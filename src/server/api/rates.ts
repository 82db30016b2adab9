import type { Counter } from 'prom-client'
import type { Metrics } from './metrics.js'

const NAMES = ['pushed', 'delivered', 'acknowledged', 'failed'] as const
export type Rate = Record<(typeof NAMES)[number], number>
type Point = Rate & { readonly at: number }

const STEP_MS = 10_000
const STEPS = 90

/** The rates of this instance per second, measured between two reads. */
export class Rates {
  readonly #metrics: Metrics
  #last: Point | undefined
  #rates: Rate = { pushed: 0, delivered: 0, acknowledged: 0, failed: 0 }
  readonly #series: Point[] = []

  constructor(metrics: Metrics) {
    this.#metrics = metrics
  }

  async read(at: number): Promise<{ rates: Rate; series: Point[] }> {
    this.#last ??= { at, ...(await this.#counted()) }
    if (at - this.#last.at >= STEP_MS || this.#series.length === 0) {
      const now = { at, ...(await this.#counted()) }
      const before = this.#last
      const seconds = (at - before.at) / 1_000
      if (seconds >= 1) {
        const each = NAMES.map((name) => [name, Math.max(0, now[name] - before[name]) / seconds] as const)
        this.#rates = Object.fromEntries(each) as Rate
        this.#series.push({ at, ...this.#rates })
        this.#series.splice(0, this.#series.length - STEPS)
        this.#last = now
      }
    }
    return { rates: this.#rates, series: [...this.#series] }
  }

  async #counted(): Promise<Rate> {
    const { pushed, received, leases, webhooks } = this.#metrics
    const answers = async (operation: string): Promise<number> => total(leases, { operation, answer: 'ok' })
    const [sent, delivered] = [await total(webhooks), await total(webhooks, { outcome: 'delivered' })]
    return {
      pushed: (await total(pushed)) - (await total(pushed, { outcome: 'refused' })),
      delivered: (await total(received)) + sent,
      acknowledged: (await answers('acknowledge')) + delivered,
      failed: (await answers('negative-acknowledge')) + sent - delivered,
    }
  }
}

async function total(counter: Counter, labels: Readonly<Record<string, string>> = {}): Promise<number> {
  const { values } = await counter.get()
  const fits = (own: Partial<Record<string, string | number>>): boolean =>
    Object.entries(labels).every(([name, value]) => own[name] === value)
  return values.filter((each) => fits(each.labels)).reduce((sum, { value }) => sum + value, 0)
}
