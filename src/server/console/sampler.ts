import { pause } from '../pause.js'
import type { ScriptRunner } from '../run-script.js'
import type { Topic } from '../topics/topic.js'
import type { TopicQueues } from '../topics/known-topics.js'
import { countQueue, sumOfShards, type QueueCounts } from './queue-counts.js'

export interface TopicSample extends QueueCounts {
  readonly topic: string
  /** The number of changes that SQL lacks; 0 without a journal. */
  readonly behind: number
  /** The time of the oldest change that SQL lacks, epoch milliseconds; `null` if not known. */
  readonly behindSince: number | null
}

/** The result of the rounds over all topics. */
export interface Sample {
  /** By the clock of Redis. */
  readonly at: number
  /** The topics that a round has counted; the first round may still miss some. */
  readonly topics: readonly TopicSample[]
  /** The number of all topics. */
  readonly total: number
}

interface Pace {
  /** The most shards counted per second, by a small script each. */
  readonly perSecond: number
  readonly atOnce: number
}

/** The first round is fast, because its reader has nothing yet; later rounds only refresh. */
const FIRST: Pace = { perSecond: 10_000, atOnce: 64 }
const LATER: Pace = { perSecond: 500, atOnce: 16 }
const REST_MS = 1_000
/** The rounds end after this time without a reader. */
const IDLE_MS = 60_000
/** The longest that a reader waits for the first round: the page shows some topics within half a second rather than all of them late. */
const FIRST_MS = 250

interface SampledTopics {
  list(): Promise<readonly { readonly name: string }[]>
  queuesOf(names: readonly string[]): Promise<TopicQueues[]>
  openIfThere(name: string): Promise<Topic | undefined>
  journalLag(topic: Topic): Promise<{ readonly changes: number; readonly since: number | null }>
  readonly hasJournal: boolean
  now(): number
}

/** Counts the messages of all topics repeatedly while the page is open, at a bounded rate. */
export class Sampler {
  readonly #topics: SampledTopics
  readonly #redis: ScriptRunner
  readonly #onError: (error: unknown) => void
  readonly #stop = new AbortController()
  readonly #found = new Map<string, TopicSample>()
  #total = 0
  #readAt = -Infinity
  #first: Promise<void> | undefined
  #running: Promise<void> | undefined

  constructor(topics: SampledTopics, redis: ScriptRunner, onError: (error: unknown) => void) {
    this.#topics = topics
    this.#redis = redis
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
    const all = (await this.#topics.list()).map(({ name }) => name)
    this.#total = all.length
    const names = new Set(all)
    for (const name of this.#found.keys()) if (!names.has(name)) this.#found.delete(name)
    const startedAt = performance.now()
    let counted = 0
    const left = await this.#topics.queuesOf(all)
    for (let from = 0; from < left.length; from += atOnce) {
      const early = (counted / perSecond) * 1_000 - (performance.now() - startedAt)
      if (early > 0) await pause(early, this.#stop.signal)
      if (this.#stop.signal.aborted) return
      const some = left.slice(from, from + atOnce)
      counted += some.reduce((sum, { queues }) => sum + queues.length, 0)
      await Promise.all(some.map((each) => this.#note(each)))
    }
  }

  async #note(of: TopicQueues): Promise<void> {
    const sample = await this.#measure(of).catch((error: unknown) => this.#onError(error))
    if (sample) this.#found.set(of.topic, sample)
  }

  async #measure({ topic, queues }: TopicQueues): Promise<TopicSample> {
    const now = this.#topics.now()
    const [shards, lag] = await Promise.all([
      Promise.all(queues.map((queue) => countQueue(this.#redis, queue, now))),
      this.#lag(topic),
    ])
    const counts = sumOfShards(shards)
    // for paused tasks, the library knows how long their messages have been waiting
    const exact = counts.hasAside ? await (await this.#topics.openIfThere(topic))?.counts() : undefined
    return { topic, ...counts, ...exact, behind: lag.changes, behindSince: lag.since }
  }

  async #lag(name: string): Promise<{ readonly changes: number; readonly since: number | null }> {
    const topic = this.#topics.hasJournal ? await this.#topics.openIfThere(name) : undefined
    return topic === undefined ? { changes: 0, since: null } : this.#topics.journalLag(topic)
  }
}
