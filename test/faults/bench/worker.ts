// A process of the fault bench: one client that offers, only delivers, or consumes, until it is told to stop or killed.
import dns from 'node:dns'
import { closeSync, openSync, writeSync } from 'node:fs'
import {
  ConnectionError,
  DurabilityError,
  codecs,
  createClient,
  dueOf,
  RedelayedError,
  ShutdownError,
  type DelayedQueue,
  type RedelayedClient,
  type Ticket,
} from '../../../src/index.js'
import type { Answer, Entry, Job, Order, WorkerReport } from './job.js'

/** A message that is due sooner is neither cancelled nor put off: who is first would be chance. */
const AMENDABLE_MS = 200
const RETRY_MS = 100

/** Before anybody changes it. */
const realNow = Date.now.bind(Date)

class Worker {
  readonly #job: Job
  readonly #client: RedelayedClient
  readonly #delayed: DelayedQueue<number> | undefined
  #books: number
  #errors: Record<string, number> = {}
  readonly #ending = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()
  #timer: NodeJS.Timeout | undefined
  #next: number

  constructor(job: Job) {
    this.#job = job
    this.#next = job.load.from
    this.#books = openSync(job.ledger, 'a')
    this.#client = createClient({ ...job.client, ioredis: { ...job.client.ioredis, connectionName: job.name } })
    this.#client.on('error', (error) => this.#count(codeOf(error)))
    this.#client.on('reconnecting', ({ error }) => this.#count(`reconnecting ${codeOf(error)}`))
    const queue = this.#client.getBlockingQueue<number>(job.queue, { codec: codecs.json() })
    if (job.role === 'consumer')
      for (let i = 0; i < job.takes; i++) this.#follow(this.#consume(() => queue.take({ signal: this.#ending.signal })))
    else this.#delayed = this.#client.getDelayedQueue(queue, { order: job.order, deliver: job.role === 'transferrer' })
  }

  produce(on: boolean): Promise<unknown> {
    clearInterval(this.#timer)
    if (!on) return Promise.all(this.#underWay)
    this.#timer = setInterval(() => this.#follow(this.#message(Math.random())), this.#job.load.everyMs)
    return Promise.resolve()
  }

  async burst(count: number, delay: number): Promise<void> {
    const due = realNow() + delay
    const numbers = Array.from({ length: count }, () => this.#next++)
    for (const n of numbers) this.#note(['try', n])
    const tickets = await this.#queue.offerAll(numbers.map((value) => ({ value, delay: Math.max(0, due - realNow()) })))
    tickets.forEach((ticket, i) => this.#note(['ok', numbers[i] ?? -1, dueOf(ticket)]))
  }

  /** Many other queues, all delivered by this one client; each gets one message, which is taken when it is there. */
  async queues(count: number, prefix: string, delay: number): Promise<void> {
    const numbers = Array.from({ length: count }, () => this.#next++)
    const delivered = new Promise<void>((resolve) => {
      const left = new Set(numbers.map((n) => `${prefix}${n}`))
      this.#client.on('transferred', ({ queue }) => left.delete(queue) && left.size === 0 && resolve())
    })
    const queues = numbers.map((n) => this.#client.getBlockingQueue<number>(`${prefix}${n}`, { codec: codecs.json() }))
    const delayed = queues.map((queue) => this.#client.getDelayedQueue(queue, { order: this.#job.order }))
    for (const n of numbers) this.#note(['try', n])
    await Promise.all(
      delayed.map(async (to, i) =>
        this.#note(['ok', numbers[i] ?? -1, dueOf(await to.offer(numbers[i] ?? -1, delay))]),
      ),
    )
    await delivered
    await Promise.all(
      queues.map(async (queue) => {
        const n = await queue.poll()
        if (n !== null) this.#note(['got', n, realNow()])
      }),
    )
    await Promise.all(delayed.map((queue) => queue.destroy()))
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#ending.abort(new ShutdownError('the worker was told to stop'))
    await Promise.all(this.#underWay)
    await this.#client.shutdown()
    closeSync(this.#books)
  }

  turnTo(path: string): void {
    closeSync(this.#books)
    this.#books = openSync(path, 'a')
    this.#errors = {}
  }

  get errors(): Readonly<Record<string, number>> {
    return this.#errors
  }

  get #queue(): DelayedQueue<number> {
    if (this.#delayed === undefined) throw new Error('a consumer offers nothing')
    return this.#delayed
  }

  async #message(dice: number): Promise<void> {
    const n = this.#next++
    // of ten messages one is cancelled and one put off, and one in fifty is due long after everything is over
    const delay = dice > 0.98 ? this.#job.load.farMs : Math.floor(Math.random() * this.#job.load.maxDelay)
    this.#note(['try', n])
    let ticket: Ticket
    try {
      ticket = await this.#queue.offer(n, delay, { durability: this.#job.load.durability })
    } catch (error) {
      this.#count(codeOf(error))
      const unknown =
        error instanceof DurabilityError || (error instanceof ConnectionError && error.outcome === 'unknown')
      this.#note(unknown ? ['lost answer', n] : ['no', n, codeOf(error)])
      return
    }
    this.#note(['ok', n, dueOf(ticket)])
    if (this.#job.load.amend && delay > AMENDABLE_MS && dice < 0.2) await this.#amend(n, ticket, dice < 0.1)
  }

  async #amend(n: number, ticket: Ticket, cancel: boolean): Promise<void> {
    this.#note([cancel ? 'cancelling' : 'moving', n, dueOf(ticket)])
    try {
      if (cancel) this.#note(['cancel', n, await this.#queue.cancel(ticket)])
      else {
        const moved = await this.#queue.reschedule(ticket, this.#job.load.maxDelay)
        this.#note(['move', n, moved === null ? null : dueOf(moved)])
      }
    } catch (error) {
      this.#count(codeOf(error)) // what it did stays unknown
    }
  }

  async #consume(take: () => Promise<number>): Promise<void> {
    while (!this.#ending.signal.aborted) {
      try {
        const n = await take()
        this.#note(['got', n, realNow()])
      } catch (error) {
        if (this.#ending.signal.aborted) return
        this.#count(codeOf(error))
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
  }

  #follow(promise: Promise<unknown>): void {
    const followed = promise.finally(() => this.#underWay.delete(followed))
    this.#underWay.add(followed)
  }

  #note(entry: Entry): void {
    writeSync(this.#books, `${JSON.stringify(entry)}\n`)
  }

  #count(code: string): void {
    this.#errors[code] = (this.#errors[code] ?? 0) + 1
  }
}

function codeOf(error: unknown): string {
  return error instanceof RedelayedError ? error.code : String(error)
}

let worker: Worker | undefined
let lastErrors: Readonly<Record<string, number>> = {}
const hosts = new Map<string, string>()

async function carryOut(order: Order): Promise<WorkerReport | undefined> {
  switch (order.kind) {
    case 'start':
      worker = new Worker(order.job)
      return undefined
    case 'produce':
      await worker?.produce(order.on)
      return undefined
    case 'burst':
      await worker?.burst(order.count, order.delay)
      return undefined
    case 'queues':
      await worker?.queues(order.count, order.prefix, order.delay)
      return undefined
    case 'stop':
      lastErrors = worker?.errors ?? {}
      await worker?.stop()
      worker = undefined
      return undefined
    case 'ledger':
      worker?.turnTo(order.path)
      return undefined
    case 'block':
      for (const until = performance.now() + order.ms; performance.now() < until;);
      return undefined
    case 'date':
      // the date of this process alone: what the library may not rely on
      Date.now = () => realNow() + order.shiftMs
      return undefined
    case 'dns':
      hosts.set(order.host, order.address)
      return undefined
    case 'report': {
      globalThis.gc?.()
      const { user, system } = process.cpuUsage()
      return {
        errors: worker?.errors ?? lastErrors,
        heapBytes: process.memoryUsage().heapUsed,
        cpuMs: Math.round((user + system) / 1_000),
        resources: process.getActiveResourcesInfo().filter((kind) => kind !== 'PipeWrap').length,
      }
    }
  }
}

const lookup = dns.lookup
dns.lookup = ((host: string, options: unknown, callback: (error: Error | null, ...rest: unknown[]) => void) => {
  const address = hosts.get(host)
  if (address === undefined) return lookup(host, options as dns.LookupOptions, callback as never)
  const all = (options as dns.LookupOptions).all === true
  process.nextTick(() => (all ? callback(null, [{ address, family: 4 }]) : callback(null, address, 4)))
}) as typeof dns.lookup

process.on('message', ({ id, order }: { id: number; order: Order }) => {
  const reply = (answer: Omit<Answer, 'id'>): void => void process.send?.({ id, ...answer })
  carryOut(order).then(
    (report) => reply(report === undefined ? {} : { report }),
    (error: unknown) => reply({ error: String(error instanceof Error ? error.stack : error) }),
  )
})
process.on('disconnect', () => process.exit(0)) // the bench is gone
