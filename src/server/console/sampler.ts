import type { ReliableQueueCounts } from 'redelayed'
import { pause } from '../pause.js'
import type { Topic } from '../topics/topic.js'
import type { Topics } from '../topics/topics.js'
import type { Paused, Pauses } from './pauses.js'

export interface TopicSample extends ReliableQueueCounts {
  readonly topic: string
  readonly paused: readonly Paused[]
  /** Changes that SQL does not have yet; 0 without a journal. */
  readonly behind: number
  /** Since when SQL has the first of them before it, epoch milliseconds; `null` where that is not known. */
  readonly behindSince: number | null
}

/** What a round over all topics has found. */
export interface Sample {
  /** By the clock of Redis. */
  readonly at: number
  /** By name. Of topics that the first round has not reached yet there is nothing. */
  readonly topics: readonly TopicSample[]
  /** How many topics there are. */
  readonly total: number
}

interface Pace {
  /** So many shards are looked at a second, by three commands each at most. */
  readonly perSecond: number
  readonly atOnce: number
}

/** The first reader has nothing yet; later rounds replace what is known. */
const FIRST: Pace = { perSecond: 2_500, atOnce: 8 }
const LATER: Pace = { perSecond: 500, atOnce: 1 }
const REST_MS = 1_000
/** After so long without a reader the rounds end. */
const IDLE_MS = 60_000
/** So long a first reader waits for the first round: it is better to see a part of the topics soon, and the page is to have a picture in half a second. */
const FIRST_MS = 250

/** Counts the messages of all topics again and again while the page looks, at a bounded rate. */
export class Sampler {
  readonly #topics: Topics
  readonly #pauses: Pauses
  readonly #onError: (error: unknown) => void
  readonly #stop = new AbortController()
  readonly #found = new Map<string, TopicSample>()
  #total = 0
  #readAt = -Infinity
  #first: Promise<void> | undefined
  #running: Promise<void> | undefined

  constructor(topics: Topics, pauses: Pauses, onError: (error: unknown) => void) {
    this.#topics = topics
    this.#pauses = pauses
    this.#onError = onError
  }

  async read(): Promise<Sample> {
    this.#readAt = performance.now()
    if (this.#running === undefined && !this.#stop.signal.aborted) {
      this.#first = this.#round(FIRST)
      this.#running = this.#run(this.#first).finally(() => (this.#running = undefined))
    }
    const waiting = new AbortController()
    await Promise.race([this.#first?.catch(() => undefined), pause(FIRST_MS, waiting.signal)])
    waiting.abort()
    return { at: this.#topics.now(), topics: [...this.#found.values()], total: this.#total }
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #run(first: Promise<void>): Promise<void> {
    const { signal } = this.#stop
    await first.catch(this.#onError)
    for (;;) {
      await pause(REST_MS, signal)
      if (signal.aborted || performance.now() - this.#readAt > IDLE_MS) return
      await this.#round(LATER).catch(this.#onError)
    }
  }

  async #round({ perSecond, atOnce }: Pace): Promise<void> {
    const all = await this.#topics.list()
    this.#total = all.length
    const names = new Set(all.map(({ name }) => name))
    for (const name of this.#found.keys()) if (!names.has(name)) this.#found.delete(name)
    const startedAt = performance.now()
    let counted = 0
    const left = all.values()
    const work = async (): Promise<void> => {
      for (const { name, record } of left) {
        if (this.#stop.signal.aborted) return
        const early = (counted / perSecond) * 1_000 - (performance.now() - startedAt)
        counted += record.settings.shards
        if (early > 0) await pause(early, this.#stop.signal)
        const topic = await this.#topics.openIfThere(name)
        const sample = topic && (await this.#measure(topic).catch((error: unknown) => this.#onError(error)))
        if (sample) this.#found.set(name, sample)
      }
    }
    await Promise.all(Array.from({ length: atOnce }, work))
  }

  async #measure(topic: Topic): Promise<TopicSample> {
    const [counts, [paused = []], lag] = await Promise.all([
      topic.counts(),
      this.#pauses.of([topic]),
      this.#topics.hasJournal ? this.#topics.journalLag(topic) : { changes: 0, since: null },
    ])
    return { topic: topic.name, ...counts, paused, behind: lag.changes, behindSince: lag.since }
  }
}
