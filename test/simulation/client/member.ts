import type { RedelayedClient } from '../../../src/client.js'
import type { BlockingQueue } from '../../../src/queues/blocking-queue.js'
import type { DelayedQueue } from '../../../src/queues/delayed-queue.js'
import type { ReliableQueue } from '../../../src/reliable/reliable-queue.js'
import type { Server } from '../redis/server.js'
import type { Process, World } from '../world.js'
import type { Books, Message } from './books.js'
import type { ClientCode } from './code.js'

const CONNECT_MS = 1_500
const COMMAND_MS = 1_000
const VISIBILITY_MS = 1_200
/** What a call that is repeated as often as it may takes at most. */
const CALL_MS = 5 * (CONNECT_MS + COMMAND_MS) + 3_000
/** A take that ends waits for the reply of its command, which may carry an element: 10 s at the server, then it is overdue. */
const WAIT_MS = 10_000 + 3_500 + CONNECT_MS + 1_000
const CALM_MS = 100
const HANDLERS_ARE_SHORT_AT = 5_000
/** Handlers may end. */
const SHUTDOWN_MS = 2_600

interface Params {
  readonly world: World
  readonly process: Process
  readonly books: Books
  readonly code: ClientCode
  readonly server: Server
  readonly roles: readonly string[]
  readonly calm: boolean
}

/** A process of an application: it sends, takes and handles messages with a client. */
export class Member {
  readonly process: Process
  /** It only sends before this time, perhaps always. */
  worksFrom = 0
  readonly #params: Params
  #client: RedelayedClient | undefined
  #delayed: DelayedQueue<string> | undefined
  #sender: DelayedQueue<string> | undefined
  #orders: BlockingQueue<string> | undefined
  #jobs: ReliableQueue<string> | undefined
  #ending = false

  constructor(params: Params) {
    this.#params = params
    this.process = params.process
  }

  run(): void {
    const { code, roles, world } = this.#params
    this.#client = code.createClient({
      host: 'redis',
      codec: code.codecs.string(),
      connectTimeout: CONNECT_MS,
      commandTimeout: COMMAND_MS,
      sweepInterval: 2_000,
      pingInterval: 1_500,
    })
    this.#client.on('error', () => undefined)
    if (roles.includes('delayed')) this.#orders = this.#client.getBlockingQueue<string>('orders')
    if (roles.includes('reliable')) this.#jobs = this.#client.getReliableQueue<string>('jobs')
    if (this.#orders !== undefined) this.#sender = this.#client.getDelayedQueue(this.#orders, { deliver: false })
    const work = (): void => {
      if (this.#orders !== undefined) {
        this.#delayed = this.#client?.getDelayedQueue(this.#orders)
        for (let takes = world.chance(0.5) ? 1 : 2; takes > 0; takes--) void this.#takeOn(this.#orders)
      }
      if (this.#jobs !== undefined) {
        if (world.chance(0.7)) this.#startWorker(this.#jobs)
        else void this.#pollOn(this.#jobs)
      }
      if (world.chance(0.5)) void this.#look()
    }
    if (this.worksFrom === Infinity) return
    if (this.worksFrom > world.now) world.after(this.worksFrom - world.now, work, this.process)
    else work()
  }

  kill(): void {
    this.process.dead = true
    for (const call of this.#calls) this.#params.books.calls.delete(call)
  }

  /** Its calls take so much longer. */
  suspend(until: number): void {
    const { world } = this.#params
    this.process.suspendedUntil = until
    for (const call of this.#calls) Object.assign(call, { within: call.within + until - world.now })
  }

  /** Sends messages in one call. */
  send(role: string, payloads: readonly string[], delay: number): void {
    const { books, server, world } = this.#params
    if (this.#ending) return
    const messages = payloads.map((payload) => books.add(payload, delay, Math.floor(server.world.now())))
    const [payload = ''] = payloads
    if (role === 'delayed') {
      const queue = this.#delayed ?? this.#sender
      if (queue === undefined) return
      const durable = world.chance(0.1) ? { durability: { replicas: 1, timeoutMs: 500 } } : undefined
      this.#sent('offer', messages, () =>
        payloads.length === 1
          ? durable === undefined
            ? queue.offer(payload, delay)
            : queue.offer(payload, delay, durable)
          : queue.offerAll(payloads.map((value) => ({ value, delay }))),
      )
    } else {
      const jobs = this.#jobs
      if (jobs === undefined) return
      const id = world.chance(0.5) ? payload : undefined
      this.#sent('add', messages, () =>
        payloads.length === 1
          ? jobs.add(payload, { delay, id }).then(({ outcome }) => {
              if (outcome !== 'added') books.violate(`${payload} is new, and its add was answered with ${outcome}`)
            })
          : jobs.addMany(payloads.map((each) => ({ payload: each, delay }))),
      )
    }
  }

  shutdown(): void {
    this.#ending = true
    const client = this.#client
    if (client !== undefined)
      this.#call('shutdown', SHUTDOWN_MS, WAIT_MS, () => client.shutdown()).catch(() => undefined)
  }

  readonly #calls = new Set<ReturnType<Books['begin']>>()

  /** `ms`: what it may take with nothing in its way; `limits`: how much longer with faults. */
  async #call<T>(what: string, ms: number, limits: number, action: () => Promise<T>): Promise<T> {
    const { books, world, calm } = this.#params
    const call = books.begin(what, world.now, ms + (calm ? CALM_MS : limits))
    this.#calls.add(call)
    try {
      return await action()
    } finally {
      this.#calls.delete(call)
      books.end(call, world.now)
    }
  }

  #sent(what: string, messages: readonly Message[], action: () => Promise<unknown>): void {
    const { world, books, calm } = this.#params
    this.#call(what, 0, CALL_MS, action).then(
      () => {
        for (const message of messages) Object.assign(message, { outcome: 'accepted', settledAt: world.now })
      },
      (error: Error & { failures?: readonly { index: number; error: unknown }[] }) => {
        messages.forEach((message, at) => {
          const failure = error.failures === undefined ? error : error.failures.find(({ index }) => index === at)?.error
          const outcome = failure === undefined ? 'accepted' : outcomeOf(failure)
          Object.assign(message, { outcome, settledAt: world.now })
        })
        if (calm) books.violate(`${what} failed without faults: ${error.message}`)
      },
    )
  }

  async #takeOn(orders: BlockingQueue<string>): Promise<void> {
    const { world, books } = this.#params
    while (!this.#ending) {
      const kind = world.random()
      const ms = Math.floor(world.between(50, 1_500))
      try {
        let value: string | null
        if (kind < 0.4) value = await this.#call('poll', ms, WAIT_MS, () => orders.poll(ms))
        else if (kind < 0.7) value = await this.#abortedTake(orders, ms)
        else value = await this.#call('take', Infinity, 0, () => orders.take())
        const message = value === null ? undefined : books.get(value)
        if (message !== undefined) message.handled++
      } catch {
        if (!this.#ending) await sleep(world.between(20, 100))
      }
    }
  }

  async #abortedTake(orders: BlockingQueue<string>, ms: number): Promise<string | null> {
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(), ms)
    try {
      return await this.#call('take with a signal', ms, WAIT_MS, () => orders.take({ signal: abort.signal }))
    } catch (error) {
      if (abort.signal.aborted) return null
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  #startWorker(jobs: ReliableQueue<string>): void {
    const { world } = this.#params
    const concurrency = world.chance(0.5) ? 1 : 3
    const prefetch = world.chance(0.3) ? 2 : 0
    this.#client?.createWorker(jobs, (payload) => this.#handle(payload), {
      concurrency,
      prefetch,
      visibilityTimeout: VISIBILITY_MS,
      backoff: { type: 'fixed', delay: 200 },
    })
  }

  async #handle(payload: string): Promise<void> {
    const { world, books, calm } = this.#params
    const message = books.get(payload)
    if (message === undefined) return
    const { server } = this.#params
    if (server.world.now() < message.begun + message.delay) books.violate(`${payload} was handled early`)
    message.handled++
    message.active++
    if (calm && message.active > 1) books.violate(`${payload} is handled twice at once without faults`)
    try {
      // longer than the visibility; not in the end, when all has to be done
      const isLong = world.now < HANDLERS_ARE_SHORT_AT && world.chance(0.2)
      await sleep(isLong ? world.between(1_300, 2_500) : world.between(1, 100))
    } finally {
      message.active--
    }
    if (!calm && world.chance(0.1)) throw new Error('this handler failed')
    message.succeeded = true
  }

  async #pollOn(jobs: ReliableQueue<string>): Promise<void> {
    const { world, books } = this.#params
    while (!this.#ending) {
      const timeout = Math.floor(world.between(100, 1_500))
      try {
        const polled = await this.#call('reliable poll', timeout, CALL_MS, () =>
          jobs.poll({ timeout, visibilityTimeout: VISIBILITY_MS }),
        )
        if (polled === null) continue
        const message = books.get(polled.payload)
        if (message !== undefined) {
          message.handled++
          await sleep(world.between(1, 300))
          message.succeeded = true
        }
        await this.#call('acknowledge', 0, CALL_MS, () => polled.acknowledge())
      } catch {
        if (!this.#ending) await sleep(world.between(20, 100))
      }
    }
  }

  async #look(): Promise<void> {
    const { world } = this.#params
    while (!this.#ending) {
      await sleep(world.between(500, 3_000))
      if (this.#ending) return
      const queue = this.#orders ?? this.#jobs
      if (queue !== undefined) await this.#call('size', 0, CALL_MS, () => queue.size()).catch(() => undefined)
    }
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function outcomeOf(error: unknown): Message['outcome'] {
  return error instanceof Error && 'outcome' in error && error.outcome === 'unknown' ? 'unknown' : 'refused'
}
