import { ConnectionError, RedelayedError, type ReliableQueue } from '../../../src/index.js'
import { codeOf, type Ledger } from '../bench/ledger.js'
import { LIMIT, POISON_LIMIT, type Entry, type Job, type Payload, type Plan } from './job.js'
import { Witness } from './witness.js'

const PRIORITIES = 10
/** Of all messages so many have a handler that always throws, or takes long, and so many are due long after everything is over. */
const POISON_SHARE = 0.05
const LONG_SHARE = 0.05
const FAR_SHARE = 0.02
/** Of the others so many are cancelled, and as many put off, at any moment of their delay and some time beyond. */
const CHANGED_SHARE = 0.1
const BEYOND = 1.3

/** Adds messages of all kinds, and changes some. */
export class Producer {
  readonly #queue: ReliableQueue<Payload>
  readonly #ledger: Ledger<Entry>
  readonly #job: Job
  readonly #witness: Witness | undefined
  readonly #underWay = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #next: number

  constructor(job: Job, queue: ReliableQueue<Payload>, ledger: Ledger<Entry>) {
    this.#job = job
    this.#queue = queue
    this.#ledger = ledger
    this.#next = job.load.from
    if (job.load.replicas > 0) this.#witness = new Witness(job.client, job.queue, job.load.replicas)
  }

  produce(on: boolean): Promise<unknown> {
    clearInterval(this.#timer)
    if (!on) return Promise.all(this.#underWay)
    this.#timer = setInterval(() => this.#follow(this.#message(Math.random())), this.#job.load.everyMs)
    return Promise.resolve()
  }

  async burst(count: number, delay: number): Promise<void> {
    const plan: Plan = { at: Date.now(), delay, limit: LIMIT, poison: false }
    const ids = Array.from({ length: count }, () => String(this.#next++))
    for (const id of ids) this.#ledger.note(['try', id, plan])
    await this.#queue.addMany(ids.map((id) => ({ id, delay, payload: { poison: false, long: false } })))
    await Promise.all(ids.map((id) => this.#confirm(id)))
  }

  async stop(): Promise<void> {
    await this.produce(false)
    this.#witness?.close()
  }

  async #message(dice: number): Promise<void> {
    const id = String(this.#next++)
    const { load } = this.#job
    const poison = dice < POISON_SHARE
    const long = Math.random() < LONG_SHARE
    const isFar = dice > 1 - FAR_SHARE
    const delay = isFar ? load.farMs : Math.floor(Math.random() * load.maxDelay)
    const limit = poison ? POISON_LIMIT : LIMIT
    const priority = Math.floor(Math.random() * PRIORITIES)
    this.#ledger.note(['try', id, { at: Date.now(), delay, limit, poison }])
    try {
      const { outcome } = await this.#queue.add({ poison, long }, { id, delay, priority, deliveryLimit: limit })
      if (outcome !== 'added') return this.#ledger.note(['no', id, outcome])
    } catch (error) {
      this.#ledger.count(codeOf(error))
      if (error instanceof RedelayedError && !isUnknown(error)) this.#ledger.note(['no', id, error.code])
      return
    }
    await this.#confirm(id)
    const change = Math.random()
    if (load.amend && !isFar && change < 2 * CHANGED_SHARE) await this.#change(id, delay, change < CHANGED_SHARE)
  }

  async #confirm(id: string): Promise<void> {
    if (this.#witness === undefined || (await this.#witness.isSafe(id))) this.#ledger.note(['ok', id, Date.now()])
  }

  async #change(id: string, delay: number, cancel: boolean): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * delay * BEYOND))
    const later = Math.floor(Math.random() * this.#job.load.maxDelay)
    this.#ledger.note(['changing', id, cancel ? 'cancel' : 'move', later, Date.now()])
    try {
      const done = cancel ? await this.#queue.cancel(id) : await this.#queue.reschedule(id, later)
      this.#ledger.note(['changed', id, done, Date.now()])
    } catch (error) {
      this.#ledger.count(codeOf(error)) // what it did stays unknown
    }
  }

  #follow(promise: Promise<void>): void {
    const followed = promise.finally(() => this.#underWay.delete(followed))
    this.#underWay.add(followed)
  }
}

function isUnknown(error: RedelayedError): boolean {
  return error instanceof ConnectionError && error.outcome === 'unknown'
}
