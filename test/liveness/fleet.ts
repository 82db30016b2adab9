import { randomUUID } from 'node:crypto'
import { DurabilityError, codecs, createClient, type ClientOptions, type RedelayedClient } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { Calls } from './calls.js'

export const SWEEP_MS = 1_000
export const CONNECT_MS = 600
export const COMMAND_MS = 600
const PING_MS = 500
const VISIBILITY_MS = 1_000
export const TUNING: ClientOptions = {
  sweepInterval: SWEEP_MS,
  pingInterval: PING_MS,
  connectTimeout: CONNECT_MS,
  commandTimeout: COMMAND_MS,
}
/** The additional time on a machine that is busy with other cells. */
export const MARGIN_MS = 1_500
/** A call waits for a connection, and then for its answer. */
const CALL_MS = CONNECT_MS + COMMAND_MS + MARGIN_MS
/** A blocking command that does not end at its timeout has another chance, in case only this process was busy. */
const SECOND_CHANCE_MS = 500
const WAIT_MS = 250
const DURABILITY = { replicas: 1, timeoutMs: 300 }
const MOST_DELAY_MS = 50

/** The calls that have to go on when some sockets are dead. */
export const WORK = ['offer', 'durable offer', 'size', 'taken', 'add', 'durable add', 'handled', 'polled'] as const

/** One client that does everything that an application can, through all kinds of connections, and the books of its messages. */
export class Fleet {
  readonly calls = new Calls()
  readonly client: RedelayedClient
  readonly #names: { readonly delayed: string; readonly worked: string; readonly polled: string }
  readonly #taken = new Set<string>()
  readonly #offered = new Set<string>()
  readonly #added = { worked: new Set<string>(), polled: new Set<string>() }
  readonly #handled = new Set<string>()
  /** When the sending of each message began. */
  readonly #sentAt = new Map<string, number>()
  readonly #isDurableOnly: boolean
  readonly #callMs: number
  #next = 0

  /**
   * `isDurableOnly`: only what replicas have is looked for in the end, as after a failover. `slackMs`: how much longer than usual calls
   * may take.
   */
  constructor(client: ClientOptions, { isDurableOnly = false, slackMs = 0 } = {}) {
    this.#callMs = CALL_MS + slackMs
    const tag = `{live:${randomUUID().slice(0, 8)}}`
    this.#names = { delayed: `${tag}:delayed`, worked: `${tag}:worked`, polled: `${tag}:polled` }
    this.client = createClient({ ...TUNING, ...client })
    this.client.on('error', () => {}) // it goes on by itself: that is what the cell looks at
    this.#isDurableOnly = isDurableOnly
  }

  /** A key of what it works with. */
  get key(): string {
    return this.#names.delayed
  }

  start(): void {
    const { calls, client } = this
    const queue = client.getBlockingQueue<string>(this.#names.delayed, { codec: codecs.string() })
    const delayed = client.getDelayedQueue(queue)
    const worked = client.getReliableQueue<string>(this.#names.worked, { codec: codecs.string() })
    const polled = client.getReliableQueue<string>(this.#names.polled, { codec: codecs.string() })
    const delay = (): number => Math.floor(Math.random() * MOST_DELAY_MS)

    calls.every('offer', 50, this.#callMs, async () => {
      const id = this.#new()
      await delayed.offer(id, delay())
      if (!this.#isDurableOnly) this.#offered.add(id)
      return id
    })
    calls.every('durable offer', 100, this.#callMs + DURABILITY.timeoutMs, async () => {
      const id = this.#new()
      try {
        await delayed.offer(id, delay(), { durability: DURABILITY })
        this.#offered.add(id)
      } catch (error) {
        if (!(error instanceof DurabilityError)) throw error // it was answered: no replica is left after a failover
      }
      return id
    })
    calls.every('size', 100, this.#callMs, () => queue.size())

    const took = (values: readonly (string | null)[]): void => {
      for (const id of values) {
        if (id === null) continue
        this.#taken.add(id)
        calls.succeeded('taken', this.#sentAt.get(id) ?? 0)
      }
    }
    const limit = WAIT_MS + COMMAND_MS + SECOND_CHANCE_MS + MARGIN_MS
    calls.every('take', 100, Infinity, async () => took([await queue.take()]))
    calls.every('poll(timeout)', 100, limit, async () => took([await queue.poll(WAIT_MS)]))
    calls.every('takeMany(timeout)', 200, limit, async () => took(await queue.takeMany(5, { timeout: WAIT_MS })))
    calls.every('take(signal)', 200, limit, async () => took([await queue.take({ signal: soon() })]))

    for (const [which, to] of [
      ['worked', worked],
      ['polled', polled],
    ] as const) {
      calls.every('add', 100, this.#callMs, async () => {
        const id = this.#new()
        await to.add(id, { id })
        if (!this.#isDurableOnly) this.#added[which].add(id)
        return id
      })
    }
    calls.every('durable add', 200, this.#callMs + DURABILITY.timeoutMs, async () => {
      const id = this.#new()
      try {
        await polled.add(id, { id, durability: DURABILITY })
        this.#added.polled.add(id)
      } catch (error) {
        if (!(error instanceof DurabilityError)) throw error // it was answered: no replica is left after a failover
      }
      return id
    })
    const worker = client.createWorker(worked, (id) => this.#handle('handled', id), {
      concurrency: 4,
      visibilityTimeout: VISIBILITY_MS,
    })
    worker.on('error', () => {})
    const acknowledge = async (message: Awaited<ReturnType<typeof polled.poll>>): Promise<undefined> => {
      if (message === null) return
      this.#handle('polled', message.payload)
      await message.acknowledge()
    }
    const reliableLimit = limit + this.#callMs // with the acknowledgement
    calls.every('reliable poll(timeout)', 100, reliableLimit, async () =>
      acknowledge(await polled.poll({ timeout: WAIT_MS, visibilityTimeout: VISIBILITY_MS })),
    )
    calls.every('reliable poll(signal)', 200, reliableLimit, async () =>
      acknowledge(await polled.poll({ timeout: Infinity, visibilityTimeout: VISIBILITY_MS, signal: soon() })),
    )
  }

  /** Resolves when everything worked that was begun after the given time. */
  async works(since: number, timeoutMs: number): Promise<void> {
    await eventually(
      () => {
        const missing = this.calls.missingSince(since, WORK)
        if (missing.length > 0) throw new Error(`${timeoutMs} ms after the fault there was no ${missing.join(', ')}`)
      },
      timeoutMs,
      20,
    )
  }

  /** The number of acknowledged messages that are neither handled nor in Redis, according to another client. */
  async lost(direct: ClientOptions): Promise<{ taken: string[]; reliable: string[] }> {
    const client = createClient(direct)
    client.on('error', () => {})
    try {
      const queue = client.getQueue<string>(this.#names.delayed, { codec: codecs.string() })
      const delayed = client.getDelayedQueue(queue, { deliver: false })
      const pending = await delayed.readAll() // first: what is transferred meanwhile is in the list
      const there = new Set([...this.#taken, ...pending, ...(await queue.readAll())])
      const reliable: string[] = []
      for (const which of ['worked', 'polled'] as const) {
        const own = client.getReliableQueue(this.#names[which], { codec: codecs.string() })
        const open = [...this.#added[which]].filter((id) => !this.#handled.has(id))
        const found = await own.getAll(open)
        reliable.push(...open.filter((_, at) => found[at] === null))
      }
      return { taken: [...this.#offered].filter((id) => !there.has(id)), reliable }
    } finally {
      await client.shutdown()
    }
  }

  #new(): string {
    const id = `m${this.#next++}`
    this.#sentAt.set(id, performance.now())
    return id
  }

  #handle(how: 'handled' | 'polled', id: string): void {
    this.#handled.add(id)
    this.calls.succeeded(how, this.#sentAt.get(id) ?? 0)
  }
}

function soon(): AbortSignal {
  return AbortSignal.timeout(WAIT_MS)
}
