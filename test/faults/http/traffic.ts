import { eventually } from '../../support/events.js'
import type { Books, Delivery, LeaseAnswer, Message } from './books.js'
import { hooksOf, type Item, type Received } from './messages.js'
import type { Arrived, Receiver } from './receiver.js'

/** How often a producer pushes, and how many messages at most in one batch. */
const EVERY_MS = 40
const MOST_ITEMS = 4
const MOST_DELAY_MS = 1_500
const FAR_MS = 86_400_000
const SHARES = { far: 0.05, fails: 0.08, removed: 0.12, batch: 0.3, webhook: 0.2 } as const
/** The most pushes of a message under its id until an answer accepts it, as by an application that must not lose messages. */
const ATTEMPTS = 60
const AGAIN_MS = 250
/** While Redis is away, a push takes 10 s until the journal answers for it. */
const PUSH_MS = 20_000
const CONSUMERS = 6
const WAIT_MS = 2_000
const HANDLING_MS = 15
const RESTORE_MS = 60_000

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

/** A request that failed. `isRepeated`: nginx may send it to the other instance when its connection breaks, as a repeat changes nothing. */
export interface Failure {
  readonly isRepeated: boolean
  readonly text: string
}

interface Asked {
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly type?: string
  readonly limitMs?: number
  /** Default: one of the addresses of the service. */
  readonly at?: string | undefined
}

/** Clients of the service that push, receive, acknowledge and remove over HTTP, and the books of what they were answered. */
export class Traffic {
  readonly books: Books
  /** The wrong answers of this round. */
  failures: Failure[] = []
  readonly #urls: readonly string[]
  readonly #key: string
  readonly #topic: string
  /** Its messages come as webhooks. */
  readonly #hooks: string
  readonly #receiver: Receiver
  readonly #webhooks = new Map<number, Message>()
  readonly #random: () => number
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #end = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #numbers = 0

  /** `urls`: asked in turn. */
  constructor({
    books,
    urls,
    key,
    topic,
    receiver,
    random,
  }: {
    books: Books
    urls: readonly string[]
    key: string
    topic: string
    receiver: Receiver
    random: () => number
  }) {
    this.books = books
    this.#urls = urls
    this.#key = key
    this.#topic = `/v1/topics/${topic}`
    this.#hooks = `/v1/topics/${hooksOf(topic)}`
    this.#receiver = receiver
    this.#random = random
  }

  consume(): void {
    this.#takeWebhooks()
    for (let at = 0; at < CONSUMERS; at++) this.#follow(this.#consume())
  }

  produce(on: boolean): void {
    clearInterval(this.#timer)
    if (!on) return
    this.#timer = setInterval(() => {
      if (this.#random() < SHARES.webhook) {
        const drawn = this.#draw()
        this.#follow(this.#pushWebhook({ ...drawn, delay: drawn.delay % MOST_DELAY_MS }))
        return
      }
      const isBatch = this.#random() < SHARES.batch
      const count = isBatch ? 1 + Math.floor(this.#random() * MOST_ITEMS) : 1
      const items = Array.from({ length: count }, () => this.#draw())
      this.#follow(isBatch ? this.#pushBatch(items) : this.#produceOne(items[0]!))
    }, EVERY_MS)
  }

  /** Resolves when each push has its answer, and what was to be removed is removed. */
  async pushed(): Promise<void> {
    while (this.#underWay.size > CONSUMERS) await new Promise((resolve) => setTimeout(resolve, 20))
  }

  /** The number of messages that are due tomorrow. */
  async fillBacklog(count: number): Promise<void> {
    for (let left = count; left > 0; left -= 500)
      await this.#pushBatch(Array.from({ length: Math.min(500, left) }, () => ({ ...this.#draw(), delay: FAR_MS })))
  }

  /** Messages for consumers and for the receiver that are due soon; resolves when all are accepted. */
  async pushDue(count: number, min: number, max: number): Promise<readonly Message[]> {
    const items = Array.from({ length: count }, () => ({ ...this.#draw(), delay: this.#between(min, max) }))
    const webhooks = items.slice(0, count / 3).map((item) => this.#pushWebhook(item))
    return [...(await this.#pushBatch(items.slice(count / 3))), ...(await Promise.all(webhooks))]
  }

  /** Begins a restore, at one instance if its address is given; gives its id. */
  async restore(how: { readonly dryRun?: true }, at?: string): Promise<string> {
    // an instance whose Redis has just come back can refuse it at first
    const begin = async (): Promise<string> => {
      const answer = await this.ask('POST', '/v1/restores', { body: JSON.stringify(how), at })
      if (answer.status !== 202) throw new Error(`no restore: ${answer.status} ${JSON.stringify(answer.body)}`)
      return String(answer.body['id'])
    }
    return eventually(begin, RESTORE_MS, 250)
  }

  /** The restore when it has ended. */
  async ended(id: string): Promise<Record<string, unknown>> {
    return eventually(
      async () => {
        const { status, body } = await this.ask('GET', `/v1/restores/${id}`)
        if (status !== 200 || body['state'] === 'running') throw new Error(`${status} ${JSON.stringify(body)}`)
        return body
      },
      RESTORE_MS,
      100,
    )
  }

  /** Large messages, until the result is called: those that were not accepted by then are pushed again as all others. */
  pushBulk(count: number, bytes: number): () => void {
    const text = 'x'.repeat(bytes)
    let isOver = false
    const push = async (): Promise<void> => {
      while (!isOver) {
        const drawn = Array.from({ length: count }, () => this.#draw())
        const bulk = this.#pushBatch(
          drawn.map((item) => ({ ...item, body: { ...item.body, text }, delay: item.delay % MOST_DELAY_MS })),
        )
        this.#follow(bulk)
        await Promise.race([bulk, this.#pause(EVERY_MS * 5)])
      }
    }
    this.#follow(push())
    return () => (isOver = true)
  }

  /** Many messages that are removed soon after they were accepted. */
  async pushAndRemove(count: number): Promise<void> {
    const each = async (): Promise<void> => {
      const message = await this.#pushOne({ ...this.#draw(), delay: this.#between(2_500, 4_000) })
      await this.#pause(0, 300)
      if (message.state === 'accepted') await this.#remove(message)
    }
    await Promise.all(Array.from({ length: count }, each))
  }

  /** Messages that are due in a while; the result removes them. */
  async pushForRemoval(count: number): Promise<() => Promise<void>> {
    const items = Array.from({ length: count }, () => ({ ...this.#draw(), delay: this.#between(7_000, 9_000) }))
    const messages = await this.#pushBatch(items)
    return async () => void (await Promise.all(messages.map((message) => this.#remove(message))))
  }

  /** The service's description of a message; `undefined` if the service does not know it. */
  async find({ item: { id }, isWebhook }: Message): Promise<Record<string, unknown> | undefined> {
    const topic = isWebhook ? this.#hooks : this.#topic
    const { status, body } = await this.ask('GET', `${topic}/messages/${encodeURIComponent(id)}`)
    if (status !== 200 && status !== 404) throw new Error(`GET of ${id}: ${status} ${JSON.stringify(body)}`)
    return status === 200 ? body : undefined
  }

  /** The due times of the waiting messages of both topics, or of their dead letters, by id. */
  async waiting(kind: 'messages' | 'dead-letters' = 'messages'): Promise<Map<string, number>> {
    const [own, hooks] = await Promise.all([this.#listed(this.#topic, kind), this.#listed(this.#hooks, kind)])
    return new Map([...own, ...hooks])
  }

  async #listed(topic: string, kind: string): Promise<Map<string, number>> {
    const found = new Map<string, number>()
    for (let cursor = ''; ;) {
      const { status, body } = await this.ask('GET', `${topic}/${kind}?limit=1000${cursor}`)
      if (status !== 200) throw new Error(`the messages: ${status} ${JSON.stringify(body)}`)
      for (const { id, dueAt } of body['messages'] as { id: string; dueAt: number }[]) found.set(id, dueAt)
      if (typeof body['cursor'] !== 'string') return found
      cursor = `&cursor=${body['cursor']}`
    }
  }

  /** @throws where there is no answer */
  async ask(method: string, path: string, { headers, body, type, at, limitMs = PUSH_MS }: Asked = {}): Promise<Answer> {
    const url = at ?? this.#urls[Math.floor(this.#random() * this.#urls.length)] ?? ''
    const response = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${this.#key}`,
        ...(body !== undefined && { 'content-type': type ?? 'application/json' }),
        ...headers,
      },
      signal: AbortSignal.timeout(limitMs),
      ...(body !== undefined && { body }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) }
  }

  async stop(): Promise<void> {
    this.produce(false)
    this.#end.abort()
    await Promise.all(this.#underWay)
  }

  /** Undefined where the answer was none, or not a 2xx. */
  async #try(method: string, path: string, asked: Asked): Promise<Answer | undefined> {
    try {
      const answer = await this.ask(method, path, asked)
      if (answer.status < 300) return answer
      const text = `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body).slice(0, 200)}`
      this.failures.push({ isRepeated: isRepeated(path, asked), text })
    } catch (error) {
      const { cause } = error as Error
      this.failures.push({ isRepeated: isRepeated(path, asked), text: `${method} ${path}: ${String(cause ?? error)}` })
    }
    return undefined
  }

  async #produceOne(item: Item): Promise<void> {
    const message = await this.#pushOne(item)
    if (message.state !== 'accepted' || item.delay > MOST_DELAY_MS || this.#random() > SHARES.removed) return
    await this.#pause(0, item.delay * 1.2)
    await this.#remove(message)
  }

  /** A message with the receiver's endpoint. */
  async #pushWebhook(item: Item): Promise<Message> {
    const message = this.books.begin(item, true)
    this.#webhooks.set(item.body.n, message)
    await this.#untilAccepted([message], async () => {
      const answer = await this.#try('POST', `${this.#hooks}/messages`, { body: JSON.stringify(item) })
      return [answer?.body]
    })
    return message
  }

  #takeWebhooks(): void {
    const receiver = this.#receiver
    receiver.onWrong = (text) => this.books.wrong('other', text)
    const known = new WeakMap<Arrived, Delivery>()
    receiver.handle = (arrived) => {
      const { n, fails } = arrived.body as Item['body']
      const message = this.#webhooks.get(n)
      if (message === undefined) {
        this.books.wrong('other', `a webhook has the body ${JSON.stringify(arrived.body)}, which was never pushed`)
        return 400
      }
      const delivery = this.books.arrived(message, arrived)
      known.set(arrived, delivery)
      delivery.how = fails && arrived.attempt === 1 ? 'failed' : 'acknowledged'
      return delivery.how === 'failed' ? 500 : 200
    }
    receiver.onAnswered = (arrived, status) => {
      const delivery = known.get(arrived)
      if (delivery === undefined) return
      delivery.answer = status === 200 ? 'ok' : 'unknown'
      delivery.answeredAt = Date.now()
    }
  }

  async #pushOne(item: Item): Promise<Message> {
    const message = this.books.begin(item)
    const headers: Record<string, string> = this.#random() < 0.5 ? { 'idempotency-key': item.id } : {}
    await this.#untilAccepted([message], async () => {
      const answer = await this.#try('POST', `${this.#topic}/messages`, { headers, body: JSON.stringify(item) })
      return [answer?.body]
    })
    return message
  }

  /** Returns the accepted messages. */
  async #pushBatch(items: readonly Item[]): Promise<Message[]> {
    const messages = items.map((item) => this.books.begin(item))
    const isLines = this.#random() < 0.5
    await this.#untilAccepted(messages, async (open) => {
      const texts = open.map(({ item }) => JSON.stringify(item))
      const answer = await this.#try('POST', `${this.#topic}/messages/batch`, {
        body: isLines ? `${texts.join('\n')}\n` : `[${texts.join()}]`,
        type: isLines ? 'application/x-ndjson' : 'application/json',
      })
      return (answer?.body['results'] ?? []) as Record<string, unknown>[]
    })
    return messages.filter(({ state }) => state === 'accepted')
  }

  async #untilAccepted(
    messages: readonly Message[],
    push: (open: readonly Message[]) => Promise<readonly (Record<string, unknown> | undefined)[]>,
  ): Promise<void> {
    let open = messages
    for (let attempt = 1; attempt <= ATTEMPTS && open.length > 0 && !this.#end.signal.aborted; attempt++) {
      if (attempt > 1) await this.#pause(AGAIN_MS)
      for (const message of open) message.attempts++
      const answers = await push(open)
      open = open.filter((message, at) => {
        const answer = answers[at]
        if (answer?.['outcome'] === undefined) return true
        this.books.accepted(message, answer as { outcome: string; dueAt?: number })
        return false
      })
    }
  }

  async #remove(message: Message): Promise<void> {
    const cancel: NonNullable<Message['cancel']> = { from: Date.now(), to: Infinity, done: null }
    message.cancel = cancel
    const path = `${this.#topic}/messages/${encodeURIComponent(message.item.id)}`
    const { status } = await this.ask('DELETE', path).catch((error: unknown) => {
      this.failures.push({ isRepeated: true, text: `DELETE: ${String((error as Error).cause ?? error)}` })
      return { status: 0 }
    })
    if (status >= 500) this.failures.push({ isRepeated: true, text: `DELETE: ${status}` })
    // a consumer has it: nothing was done
    cancel.done = status === 204 ? true : status === 409 ? false : null
    cancel.to = Date.now()
  }

  async #consume(): Promise<void> {
    while (!this.#end.signal.aborted) {
      const wanted = JSON.stringify({ max: 3, wait: WAIT_MS })
      const answer = await this.#try('POST', `${this.#topic}/receive`, { body: wanted })
      const messages = (answer?.body['messages'] ?? []) as Received[]
      await Promise.all(messages.map((message) => this.#handle(message)))
      if (answer === undefined) await this.#pause(100, 300)
    }
  }

  async #handle(received: Received): Promise<void> {
    const delivery = this.books.received(received)
    if (delivery === undefined) return
    await this.#pause(0, HANDLING_MS)
    const { fails } = received.body as Item['body']
    const isFirst = received.attempt === 1
    delivery.how = fails && isFirst ? 'failed' : 'acknowledged'
    const [path, more] =
      delivery.how === 'failed'
        ? ['/v1/leases/negative-acknowledge', { delay: 100, error: 'it fails' }]
        : ['/v1/leases/acknowledge', {}]
    const body = JSON.stringify({ leases: [received.lease], ...more })
    const answer = await this.#try('POST', path, { body })
    const [result] = (answer?.body['results'] ?? []) as LeaseAnswer[]
    delivery.answer = result ?? 'unknown'
    delivery.answeredAt = Date.now()
  }

  #draw(): Item {
    const n = ++this.#numbers
    const dice = this.#random()
    return {
      id: `${n}-${this.#random() < 0.5 ? 'A' : 'a/ü'}`,
      body: { n, fails: dice < SHARES.fails, text: 'é'.repeat(Math.floor(this.#random() ** 4 * 800)) },
      delay: dice > 1 - SHARES.far ? FAR_MS : Math.floor(this.#random() * MOST_DELAY_MS),
      priority: Math.floor(this.#random() * 10),
      headers: this.#random() < 0.3 ? { order: String(n) } : {},
      bizKey: `order-${n % 7}`,
    }
  }

  #between(min: number, max: number): number {
    return min + Math.floor(this.#random() * (max - min))
  }

  #pause(min: number, max = min): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, this.#between(min, max)))
  }

  #follow(promise: Promise<unknown>): void {
    const followed = promise
      .catch((error: unknown) => this.books.wrong('other', String((error as Error).stack ?? error)))
      .finally(() => this.#underWay.delete(followed))
    this.#underWay.add(followed)
  }
}

/** As the nginx.conf says: not pushes without an `Idempotency-Key`, which an instance that stops can have taken. */
function isRepeated(path: string, { headers }: Asked): boolean {
  return !path.includes('/messages') || headers?.['idempotency-key'] !== undefined
}
