// A process of the fault bench: one client that offers, only delivers, or consumes, until the bench stops or kills it.
import {
  ConnectionError,
  DurabilityError,
  OfferAllError,
  codecs,
  createClient,
  dueOf,
  ShutdownError,
  type DelayedQueue,
  type RedelayedClient,
  type Ticket,
} from '../../../src/index.js'
import type { Entry, Job } from './job.js'
import { Ledger, codeOf } from './ledger.js'
import { realNow, serve, type Program } from './serve.js'

/** A message that is due sooner is neither cancelled nor put off: who is first would be chance. */
const CHANGEABLE_MS = 200
const RETRY_MS = 100
/** The share of calls that offer several messages, and their number. */
const MANY_SHARE = 0.05
const MANY = 3

class Worker implements Program {
  readonly #job: Job
  readonly #client: RedelayedClient
  readonly #delayed: DelayedQueue<number> | undefined
  readonly #ledger: Ledger<Entry>
  readonly #ending = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #listening: Promise<void>
  #timer: NodeJS.Timeout | undefined
  #next: number

  constructor(job: Job) {
    this.#job = job
    this.#next = job.load.from
    this.#ledger = new Ledger(job.ledger)
    this.#client = createClient({ ...job.client, ioredis: { ...job.client.ioredis, connectionName: job.name } })
    this.#listening = new Promise((resolve) => this.#client.on('subscribed', () => resolve()))
    this.#client.on('error', (error) => this.#ledger.count(codeOf(error)))
    this.#client.on('reconnecting', ({ error }) => this.#ledger.count(`reconnecting ${codeOf(error)}`))
    const queue = this.#client.getBlockingQueue<number>(job.queue, { codec: codecs.json() })
    if (job.role === 'consumer')
      for (let i = 0; i < job.takes; i++) this.#follow(this.#consume(() => queue.take({ signal: this.#ending.signal })))
    else
      this.#delayed = this.#client.getDelayedQueue(queue, { layout: job.layout, deliver: job.role === 'transferrer' })
  }

  /** Resolves when a delivering process listens; the time until then says nothing about deliveries. */
  async ready(): Promise<void> {
    if (this.#job.role === 'transferrer') await this.#listening
  }

  produce(on: boolean): Promise<unknown> {
    clearInterval(this.#timer)
    if (!on) return Promise.all(this.#underWay)
    const offer = (): Promise<void> => (Math.random() < MANY_SHARE ? this.#several() : this.#message(Math.random()))
    this.#timer = setInterval(() => this.#follow(offer()), this.#job.load.everyMs)
    return Promise.resolve()
  }

  async burst(count: number, delay: number): Promise<void> {
    const due = realNow() + delay
    const numbers = Array.from({ length: count }, () => this.#next++)
    for (const n of numbers) this.#ledger.note(['try', n])
    const tickets = await this.#queue.offerAll(numbers.map((value) => ({ value, delay: Math.max(0, due - realNow()) })))
    tickets.forEach((ticket, i) => this.#ledger.note(['ok', numbers[i] ?? -1, dueOf(ticket)]))
  }

  /** Many other queues, all delivered by this one client; each gets one message, which is taken when it is there. */
  async queues(count: number, prefix: string, delay: number): Promise<void> {
    const numbers = Array.from({ length: count }, () => this.#next++)
    const delivered = new Promise<void>((resolve) => {
      const left = new Set(numbers.map((n) => `${prefix}${n}`))
      this.#client.on('transferred', ({ queue }) => left.delete(queue) && left.size === 0 && resolve())
    })
    const queues = numbers.map((n) => this.#client.getBlockingQueue<number>(`${prefix}${n}`, { codec: codecs.json() }))
    const delayed = queues.map((queue) => this.#client.getDelayedQueue(queue, { layout: this.#job.layout }))
    for (const n of numbers) this.#ledger.note(['try', n])
    await Promise.all(
      delayed.map(async (to, i) =>
        this.#ledger.note(['ok', numbers[i] ?? -1, dueOf(await to.offer(numbers[i] ?? -1, delay))]),
      ),
    )
    await delivered
    await Promise.all(
      queues.map(async (queue) => {
        const n = await queue.poll()
        if (n !== null) this.#ledger.note(['got', n, realNow()])
      }),
    )
    await Promise.all(delayed.map((queue) => queue.destroy()))
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#ending.abort(new ShutdownError('the bench stopped the worker'))
    await Promise.all(this.#underWay)
    await this.#client.shutdown()
    this.#ledger.close()
  }

  turnTo(path: string): void {
    this.#ledger.turnTo(path)
  }

  get errors(): Readonly<Record<string, number>> {
    return this.#ledger.errors
  }

  get #queue(): DelayedQueue<number> {
    if (this.#delayed === undefined) throw new Error('a consumer offers nothing')
    return this.#delayed
  }

  async #message(dice: number): Promise<void> {
    const n = this.#next++
    // of ten messages one is cancelled and one put off, and one in fifty is due long after everything is over
    const delay = dice > 0.98 ? this.#job.load.farMs : Math.floor(Math.random() * this.#job.load.maxDelay)
    this.#ledger.note(['try', n])
    let ticket: Ticket
    try {
      ticket = await this.#queue.offer(n, delay, { durability: this.#job.load.durability })
    } catch (error) {
      return this.#noteFailure(n, error)
    }
    this.#ledger.note(['ok', n, dueOf(ticket)])
    if (this.#job.load.changes && delay > CHANGEABLE_MS && dice < 0.2)
      await this.#cancelOrReschedule(n, ticket, dice < 0.1)
  }

  async #several(): Promise<void> {
    const numbers = Array.from({ length: MANY }, () => this.#next++)
    for (const n of numbers) this.#ledger.note(['try', n])
    const { maxDelay, durability } = this.#job.load
    const items = numbers.map((value) => ({ value, delay: Math.floor(Math.random() * maxDelay) }))
    try {
      const tickets = await this.#queue.offerAll(items, { durability })
      tickets.forEach((ticket, at) => this.#ledger.note(['ok', numbers[at] ?? -1, dueOf(ticket)]))
    } catch (error) {
      if (!(error instanceof OfferAllError)) throw error
      error.tickets.forEach((ticket, at) => {
        if (ticket !== null) this.#ledger.note(['ok', numbers[at] ?? -1, dueOf(ticket)])
      })
      for (const { index, error: failure } of error.failures) this.#noteFailure(numbers[index] ?? -1, failure)
    }
  }

  #noteFailure(n: number, error: unknown): void {
    this.#ledger.count(codeOf(error))
    const unknown =
      error instanceof DurabilityError || (error instanceof ConnectionError && error.outcome === 'unknown')
    this.#ledger.note(unknown ? ['lost answer', n] : ['no', n, codeOf(error)])
  }

  async #cancelOrReschedule(n: number, ticket: Ticket, cancel: boolean): Promise<void> {
    this.#ledger.note([cancel ? 'cancelling' : 'moving', n, dueOf(ticket)])
    try {
      if (cancel) this.#ledger.note(['cancel', n, await this.#queue.cancel(ticket)])
      else {
        const moved = await this.#queue.reschedule(ticket, this.#job.load.maxDelay)
        this.#ledger.note(['move', n, moved === null ? null : dueOf(moved)])
      }
    } catch (error) {
      this.#ledger.count(codeOf(error)) // what it did stays unknown
    }
  }

  async #consume(take: () => Promise<number>): Promise<void> {
    while (!this.#ending.signal.aborted) {
      try {
        const n = await take()
        this.#ledger.note(['got', n, realNow()])
      } catch (error) {
        if (this.#ending.signal.aborted) return
        this.#ledger.count(codeOf(error))
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
  }

  #follow(promise: Promise<unknown>): void {
    const followed = promise.finally(() => this.#underWay.delete(followed))
    this.#underWay.add(followed)
  }
}

serve((job: Job) => new Worker(job))
