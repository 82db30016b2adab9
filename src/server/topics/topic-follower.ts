import type { Journal } from '../journal/journal.js'
import { SharedRun } from '../journal/shared-run.js'
import { atMost } from '../pause.js'
import type { Topic } from './topic.js'

/** How often an instance with a journal looks for topics that other instances have created. */
const FOLLOW_MS = 5_000
/** The most topics attached to the journal at the same time. */
const ATTACHED_AT_ONCE = 8
/** The longest that a start waits for that; the remaining topics are attached afterwards, or when they are used. */
const ATTACHING_MS = 10_000

export interface TopicFollowerParams {
  /** The names of all topics. */
  readonly list: () => Promise<readonly string[]>
  /** The queue of the topics' records. */
  readonly registryQueue: string
  /** The topics that this instance has open. */
  readonly known: () => readonly Topic[]
  /** Opens a topic, or forgets one that is gone. */
  readonly read: (name: string) => Promise<unknown>
  readonly configureAgain: (name: string) => Promise<void>
  readonly maxTopics: number
  readonly attachingMs?: number | undefined
  readonly onError: (error: unknown) => void
}

/**
 * Opens all topics in each instance with a journal, because each instance puts back what Redis loses of any topic. Another program could
 * write so many records of topics that attaching them takes hours: that must not keep the service from starting, and at most `maxTopics`
 * are opened.
 */
export class TopicFollower {
  readonly #journal: Journal
  readonly #params: TopicFollowerParams
  readonly #following = new SharedRun(() => this.#follow())
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(journal: Journal, params: TopicFollowerParams) {
    this.#journal = journal
    this.#params = params
  }

  /** Resolves when the existing topics are open, or when that takes too long. */
  async start(): Promise<void> {
    // Redis also loses the settings of the queues, which are not messages
    this.#journal.on('forgotten', (queue) => this.#configureAgain(queue))
    this.#journal.on('restored', (queue) => this.#configureAgain(queue))
    let isLate = false
    const first = this.#following.run().catch((error: unknown) => {
      if (!isLate) throw error
      this.#params.onError(error)
    })
    await atMost(this.#params.attachingMs ?? ATTACHING_MS, first)
    isLate = true
    if (this.#isStopped) return
    this.#journal.on('restored', (queue) => {
      if (queue === this.#params.registryQueue) this.#followNow()
    })
    this.#timer = setInterval(() => this.#followNow(), FOLLOW_MS)
    this.#timer.unref()
  }

  stop(): void {
    this.#isStopped = true
    clearInterval(this.#timer)
  }

  #followNow(): void {
    void this.#following.run().catch(this.#params.onError)
  }

  async #follow(): Promise<void> {
    const { list, known, read, maxTopics } = this.#params
    const names = new Set(await list())
    const open = new Set(known().map(({ name }) => name))
    // a Redis that has lost its data lists no topics, but the journal still has them
    const room = Math.max(0, maxTopics - open.size)
    const left = [...names]
      .filter((name) => !open.has(name))
      .slice(0, room)
      .values()
    const gone = [...open].filter((name) => !names.has(name)).values()
    // reads each topic anew: attaching many takes a while, and settings can change meanwhile
    const lookAtEach = async (): Promise<void> => {
      for (const some of [left, gone]) for (const name of some) if (!this.#isStopped) await read(name)
    }
    await Promise.all(Array.from({ length: ATTACHED_AT_ONCE }, lookAtEach))
  }

  #configureAgain(queue: string): void {
    const topics = this.#params.known().filter(({ shards }) => shards.some(({ name }) => name === queue))
    for (const { name } of topics) void this.#params.configureAgain(name).catch(this.#params.onError)
  }
}
