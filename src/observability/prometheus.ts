import type * as PromClient from 'prom-client'
import type { RedelayedClient } from '../index.js'
import { BUCKETS, COUNTERS, GAUGES, HISTOGRAMS, LABELS, observe, readGauges, type MeasuredQueue } from './measures.js'
import { optional } from '../optional.js'

export type { MeasuredQueue } from './measures.js'

export interface PrometheusOptions {
  /** The queues whose depth and oldest message are read with each scrape. Default: none. */
  readonly queues?: readonly MeasuredQueue[] | undefined
  /** The registry of the metrics. Default: a new one. */
  readonly register?: PromClient.Registry | undefined
  /** The prefix of all names. Default `'redelayed_'`. */
  readonly prefix?: string | undefined
  /** The tasks that get a label of their own; all others have an empty one. Default: none. */
  readonly tasks?: readonly string[] | undefined
}

export interface PrometheusMetrics {
  /** The registry for the scrape: `await register.metrics()`. */
  readonly register: PromClient.Registry
  /**
   * Stops listening, and removes the metrics from the registry.
   *
   * @throws nothing
   * @example
   * ```ts
   * import { prometheusMetrics } from 'redelayed/prometheus'
   *
   * const { stop } = prometheusMetrics(client)
   * await client.shutdown()
   * stop()
   * ```
   */
  readonly stop: () => void
}

/**
 * Measures a client for Prometheus; needs the package `prom-client`. See docs/observability.md for the metrics.
 *
 * @throws UnsupportedOperationError `ERR_UNSUPPORTED_OPERATION`: `prom-client` is not installed
 * @example
 * ```ts
 * import { prometheusMetrics } from 'redelayed/prometheus'
 *
 * const { register } = prometheusMetrics(client, { queues: [delayed, mails] })
 * console.log(await register.metrics())
 * ```
 */
export function prometheusMetrics(client: RedelayedClient, options: PrometheusOptions = {}): PrometheusMetrics {
  const { Counter, Gauge, Histogram, Registry } = optional(
    'prom-client',
    'measuring for Prometheus',
  ) as typeof PromClient
  const { queues = [], register = new Registry(), prefix = 'redelayed_', tasks = [] } = options
  const registers = [register]
  const names: string[] = []
  const describe = (key: keyof typeof LABELS, help: string, suffix = '') => {
    const name = `${prefix}${key}${suffix}`
    names.push(name)
    return { name, help, labelNames: [...LABELS[key]] as string[], registers }
  }

  const counters = mapOf(COUNTERS, (key, help) => new Counter(describe(key, help, '_total')))
  const histograms = mapOf(
    HISTOGRAMS,
    (key, help) => new Histogram({ ...describe(key, help), buckets: [...BUCKETS[key]] }),
  )
  // one reading for all gauges of a scrape
  let reading: ReturnType<typeof readGauges> | undefined
  const gauges = mapOf(
    GAUGES,
    (key, help) =>
      new Gauge({
        ...describe(key, help),
        async collect() {
          reading ??= readGauges(queues).finally(() => (reading = undefined))
          const readings = await reading
          this.reset()
          for (const { name, labels, value } of readings) if (name === key) this.set(labels, value)
        },
      }),
  )
  const end = observe(client, tasks, {
    count: (name, labels, value) => counters[name].inc(labels, value),
    record: (name, labels, value) => histograms[name].observe(labels, value),
  })
  return {
    register,
    stop: () => {
      end()
      for (const name of names) register.removeSingleMetric(name)
      for (const gauge of Object.values(gauges)) gauge.reset()
    },
  }
}

function mapOf<const T extends Readonly<Record<string, string>>, R>(
  texts: T,
  make: (key: keyof T & string, help: string) => R,
): Record<keyof T, R> {
  return Object.fromEntries(Object.entries(texts).map(([key, help]) => [key, make(key, help)])) as Record<keyof T, R>
}
