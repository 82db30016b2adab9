import { RedelayedError, type DelayedQueueStats, type ReliableQueue } from '../index.js'
import type { Access } from '../doctor/access.js'
import type { Families, Family } from '../doctor/families.js'
import type { ReliableFigures } from '../doctor/measure-reliable.js'
import { ChangeRates, COUNTED, type Counted, type Seen } from './change-rates.js'
import { measured, measuredReliable, sumOfDelayed, type MeasuredFamily } from './measured.js'

/** One queue at one moment, and its changes since the previous one. */
export interface Observation {
  readonly queue: string
  readonly kind: 'delayed' | 'reliable'
  readonly shards: number | null
  readonly now: number
  /** All undelivered messages: visible or overdue ones, and delayed ones. */
  readonly pending: number
  /** Visible or overdue messages. */
  readonly due: number
  /** How long the first of these has been due, in milliseconds. */
  readonly oldestMs: number
  /** Messages in flight; `null` for a delayed queue. */
  readonly inFlight: number | null
  readonly dead: number | null
  /** The growth of the queue in messages a second; `null` the first time. */
  readonly growth: number | null
  /** Changes a second; `null` the first time, and where a shard keeps no changes. */
  readonly rates: Readonly<Record<Counted, number>> | null
  /** Whether there were more changes than were read. */
  readonly isPartial: boolean
  /** The lateness of messages whose due time and delivery were both seen; `null` without any. */
  readonly lateness: { readonly messages: number; readonly medianMs: number; readonly mostMs: number } | null
  /** Why consumers get no messages, if so. */
  readonly hint: 'paused' | 'not delivered' | null
}

export type Watched =
  Observation | { readonly queue: string; readonly kind: Observation['kind']; readonly error: RedelayedError }

interface Sources {
  readonly access: Access
  readonly stats: (queue: string) => Promise<DelayedQueueStats>
  readonly reliable: (queue: string) => ReliableQueue
}

/** Looks at some queues again and again. */
export class Watcher {
  readonly #sources: Sources
  readonly #families: Omit<Families, 'left'>
  readonly #rates = new Map<string, ChangeRates>()
  readonly #before = new Map<string, { readonly now: number; readonly total: number }>()

  constructor(sources: Sources, families: Omit<Families, 'left'>) {
    this.#sources = sources
    this.#families = families
  }

  async look(): Promise<Watched[]> {
    const { access, stats } = this.#sources
    const [delayed, reliable] = await Promise.all([
      measured(this.#families.delayed, stats, sumOfDelayed),
      measuredReliable(access, this.#families.reliable),
    ])
    const seen = await Promise.all(this.#families.reliable.map((family, at) => this.#seen(family, reliable[at])))
    return [
      ...delayed.map((one) => this.#ofDelayed(one)),
      ...reliable.map((one, at) => this.#ofReliable(one, seen[at] ?? null)),
    ]
  }

  #ofDelayed({ queue, figures, shards }: MeasuredFamily<DelayedQueueStats>): Watched {
    if (figures instanceof RedelayedError) return { queue, kind: 'delayed', error: figures }
    const { now, pending, overdue, oldestOverdueMs, delivered, subscribers } = figures
    return {
      ...{
        queue,
        kind: 'delayed',
        shards: shards?.length ?? null,
        now,
        pending,
        due: overdue,
        oldestMs: oldestOverdueMs,
      },
      ...{ inFlight: null, dead: null, rates: null, isPartial: false, lateness: null },
      growth: this.#growth(`delayed ${queue} ${shards === null}`, now, pending + delivered),
      hint: pending > 0 && subscribers === 0 ? 'not delivered' : null,
    }
  }

  #ofReliable(
    { queue, figures, shards }: MeasuredFamily<ReliableFigures>,
    seen: Seen | RedelayedError | null,
  ): Watched {
    const failed = [figures, seen].find((one) => one instanceof RedelayedError)
    if (failed !== undefined || figures instanceof RedelayedError) {
      return { queue, kind: 'reliable', error: failed as RedelayedError }
    }
    const { now, total, visible, delayed, oldestMs, inFlight, dead, pollPaused } = figures
    const key = `reliable ${queue} ${shards === null}`
    const seconds = this.#secondsSince(key, now)
    const changes = seen === null || seen instanceof RedelayedError || seconds === null ? null : seen
    return {
      ...{ queue, kind: 'reliable', shards: shards?.length ?? null, now, due: visible, oldestMs, inFlight, dead },
      pending: visible + delayed,
      growth: this.#growth(key, now, total),
      rates: changes && ratesOf(changes, seconds ?? 1),
      isPartial: changes?.isPartial ?? false,
      lateness: changes && latenessOf(changes.lateness),
      hint: pollPaused ? 'paused' : null,
    }
  }

  /** The changes of all shards; `null` if one keeps no changes, or has just begun to. */
  async #seen(
    { queue, shards }: Family,
    known: MeasuredFamily<ReliableFigures> | undefined,
  ): Promise<Seen | RedelayedError | null> {
    if (known === undefined || known.figures instanceof RedelayedError) return null
    try {
      const all = await Promise.all((shards ?? [queue]).map((name) => this.#ratesOf(name).next()))
      if (all.includes(null)) return null
      return all.reduce<Seen>((sum, one) => (one === null ? sum : add(sum, one)), NOTHING)
    } catch (error) {
      if (error instanceof RedelayedError) return error
      throw error
    }
  }

  #ratesOf(name: string): ChangeRates {
    const rates = this.#rates.get(name) ?? new ChangeRates(this.#sources.reliable(name))
    this.#rates.set(name, rates)
    return rates
  }

  #secondsSince(key: string, now: number): number | null {
    const before = this.#before.get(key)
    return before === undefined || now <= before.now ? null : (now - before.now) / 1_000
  }

  #growth(key: string, now: number, total: number): number | null {
    const [seconds, before] = [this.#secondsSince(key, now), this.#before.get(key)]
    this.#before.set(key, { now, total })
    return seconds === null || before === undefined ? null : (total - before.total) / seconds
  }
}

const NOTHING: Seen = {
  counts: { added: 0, polled: 0, acknowledged: 0, failed: 0, dead: 0 },
  lateness: [],
  isPartial: false,
}

function add(a: Seen, b: Seen): Seen {
  return {
    counts: mapped((kind) => a.counts[kind] + b.counts[kind]),
    lateness: [...a.lateness, ...b.lateness],
    isPartial: a.isPartial || b.isPartial,
  }
}

function ratesOf({ counts }: Seen, seconds: number): Record<Counted, number> {
  return mapped((kind) => counts[kind] / seconds)
}

function mapped(of: (kind: Counted) => number): Record<Counted, number> {
  return Object.fromEntries(COUNTED.map((kind) => [kind, of(kind)])) as Record<Counted, number>
}

function latenessOf(all: readonly number[]): Observation['lateness'] {
  const sorted = [...all].sort((a, b) => a - b)
  const [median, most] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)]
  return median === undefined || most === undefined ? null : { messages: sorted.length, medianMs: median, mostMs: most }
}
