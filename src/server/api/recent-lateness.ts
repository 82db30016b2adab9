import type { Histogram } from 'prom-client'

export interface Quantiles {
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
}

/** For each bucket its bound and the number of messages up to that lateness. */
type Buckets = readonly (readonly [bound: number, count: number])[]

const WINDOW_MS = 300_000
const STEP_MS = 10_000

/**
 * How late this instance handed messages out since the first read of the last five minutes, as exactly as the buckets of its histograms
 * allow. Earlier counts can have any age.
 */
export class RecentLateness {
  readonly #histograms: readonly Histogram[]
  /** The oldest first. */
  readonly #before: { readonly at: number; readonly buckets: Buckets }[] = []

  /** @param histograms with the same buckets, in seconds */
  constructor(histograms: readonly Histogram[]) {
    this.#histograms = histograms
  }

  /** `null`: no message was handed out, or this is the first read. */
  async read(at: number): Promise<Quantiles | null> {
    const now = await this.#counted()
    while ((this.#before[0]?.at ?? Infinity) < at - WINDOW_MS) this.#before.shift()
    if (at - (this.#before.at(-1)?.at ?? -Infinity) >= STEP_MS) this.#before.push({ at, buckets: now })
    const base = this.#before[0]?.buckets
    const recent = now.map(([bound, count], place) => [bound, count - (base?.[place]?.[1] ?? 0)] as const)
    const total = recent.at(-1)?.[1] ?? 0
    return total === 0 ? null : { p50: quantile(recent, total * 0.5), p99: quantile(recent, total * 0.99) }
  }

  async #counted(): Promise<Buckets> {
    const sums = new Map<number, number>()
    for (const histogram of this.#histograms) {
      for (const { metricName = '', labels, value } of (await histogram.get()).values) {
        if (!metricName.endsWith('_bucket')) continue
        const bound = labels.le === '+Inf' ? Infinity : Number(labels.le)
        sums.set(bound, (sums.get(bound) ?? 0) + value)
      }
    }
    return [...sums].sort(([a], [b]) => a - b)
  }
}

/** Assumes that values are spread evenly within a bucket, and that those above the last bound are at it. */
function quantile(buckets: Buckets, rank: number): number {
  const at = buckets.findIndex(([, count]) => count >= rank)
  const [bound, count] = buckets[at] ?? [0, 0]
  const [low, below] = buckets[at - 1] ?? [0, 0]
  const seconds = bound === Infinity ? low : low + ((bound - low) * (rank - below)) / Math.max(1, count - below)
  return Math.round(seconds * 10_000) / 10
}
