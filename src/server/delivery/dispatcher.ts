import type { ReliableMessage } from 'redelayed'
import type { Topic } from '../topics/topic.js'
import { TopicError } from '../topics/errors.js'
import type { Topics } from '../topics/topics.js'
import type { Tracing } from '../topics/tracing.js'
import { Delivery, type Delivered } from './delivery.js'
import { loggedAnswer, type DeliveryLog } from './delivery-log.js'
import type { EgressPolicy } from './egress-policy.js'
import type { EndpointGate } from './endpoint-gate.js'
import { endpointOf, type EndpointRecord } from './endpoint-record.js'
import type { Endpoints } from './endpoints.js'
import { Lane } from './lane.js'
import { Pump, type Target } from './pump.js'
import type { Answer, Sender } from './sender.js'

/** A webhook that an endpoint has answered, or not. */
export interface CountedWebhook {
  readonly outcome: 'delivered' | 'failed' | 'gone'
  readonly answer: Answer
  readonly latenessMs: number
  /** For how long nothing has been delivered to the endpoint, by any instance. */
  readonly failingMs: number
}

export interface DispatcherParts {
  readonly topics: Topics
  readonly endpoints: Endpoints
  readonly policy: EgressPolicy
  readonly sender: Sender
  readonly gate: EndpointGate
  readonly log: DeliveryLog
  readonly tracing?: Tracing | undefined
  /** Counts a webhook. */
  readonly onDelivered: (webhook: CountedWebhook) => void
  readonly onDisabled: (endpoint: string, reason: 'gone' | 'failing') => void
  readonly onError: (error: unknown) => void
}

/** An endpoint that was tried and took no webhook for this time is disabled. */
const FAILING_MS = 5 * 86_400_000
const REFRESH_MS = 1_000
/** The greatest share of time spent on refreshing all topics. */
const REFRESH_SHARE = 0.02

interface Running {
  readonly pump: Pump
  readonly topic: Topic
  readonly version: string
}

/** Delivers the messages of all topics that have an endpoint. Every instance does so; any of them can deliver any message. */
export class Dispatcher {
  readonly #parts: DispatcherParts
  readonly #delivery: Delivery
  readonly #pumps = new Map<string, Running>()
  readonly #lanes = new Map<string, { readonly lane: Lane; readonly concurrency: number }>()
  readonly #stopping = new Set<Promise<void>>()
  /** The endpoints at the last refresh. */
  #records: ReadonlyMap<string, EndpointRecord> = new Map()
  #timer: NodeJS.Timeout | undefined
  #refreshing = Promise.resolve()
  /** A refresh that was requested and has not begun. */
  #next: Promise<void> | undefined
  #isStopped = false
  #stopped: Promise<void> | undefined

  constructor(parts: DispatcherParts) {
    this.#parts = parts
    this.#delivery = new Delivery(parts.sender, parts.gate, parts.onError, Date.now, parts.tracing)
  }

  start(): void {
    void this.refresh()
  }

  /** Reads now which topics have which endpoint. Calls during a refresh share the next one, as it takes longer with each topic. */
  refresh(): Promise<void> {
    this.#next ??= this.#refreshing.then(() => {
      this.#next = undefined
      return this.#refreshOnce()
    })
    this.#refreshing = this.#next
    return this.#next
  }

  async #refreshOnce(): Promise<void> {
    clearTimeout(this.#timer)
    if (this.#isStopped) return
    const startedAt = performance.now()
    await this.#look().catch(this.#parts.onError)
    const pause = Math.max(REFRESH_MS, (performance.now() - startedAt) / REFRESH_SHARE)
    this.#timer = setTimeout(() => void this.refresh(), pause)
    this.#timer.unref()
  }

  /** Stops: webhooks under way have `graceMs` to end, then their messages are given back. */
  stop(graceMs: number): Promise<void> {
    this.#stopped ??= this.#endAll(graceMs)
    return this.#stopped
  }

  async #endAll(graceMs: number): Promise<void> {
    this.#isStopped = true
    await this.#refreshing
    clearTimeout(this.#timer)
    for (const name of [...this.#pumps.keys()]) this.#end(name, graceMs)
    await Promise.all(this.#stopping)
  }

  /** Sends one webhook now, without any limits; the gate does not count it. */
  async test(id: string, record: EndpointRecord): Promise<Answer> {
    const now = Date.now()
    const body = Buffer.from(
      JSON.stringify({ type: 'redelayed.test', timestamp: new Date(now).toISOString(), data: {} }),
    )
    return this.#delivery.send(endpointOf(id, record, this.#parts.policy, now), {
      ...{ id: `test_${now.toString(36)}`, body, contentType: 'application/json', attempt: 1 },
    })
  }

  async #look(): Promise<void> {
    const { topics, endpoints, policy, onError } = this.#parts
    const records = new Map(await endpoints.list())
    this.#records = records
    const wanted = new Set<string>()
    for (const { name, record } of await topics.list({ fresh: true })) {
      const id = record.settings.endpoint
      const to = id === null ? undefined : records.get(id)
      if (id === null || to === undefined || to.disabled !== null) continue
      try {
        const endpoint = endpointOf(id, to, policy, Date.now())
        const topic = await topics.open(name)
        wanted.add(name)
        const version = JSON.stringify([id, to, endpoint.secrets.length])
        const running = this.#pumps.get(name)
        if (running?.version === version && running.topic === topic) continue
        if (running !== undefined) this.#end(name, endpoint.timeoutMs)
        if (this.#isStopped) return
        const pump = new Pump({
          ...{ topic, endpoint, delivery: this.#delivery, lane: this.#lane(id, to.concurrency), onError },
          other: (own) => this.#other(own),
          onDelivered: (to, message, delivered) => this.#note(to, name, message, delivered),
        })
        this.#pumps.set(name, { pump, topic, version })
      } catch (thrown) {
        onError(thrown) // for example a URL that the operator no longer allows
      }
    }
    for (const name of [...this.#pumps.keys()]) if (!wanted.has(name)) this.#end(name, REFRESH_MS)
    for (const id of [...this.#lanes.keys()]) if (!records.has(id)) this.#lanes.delete(id)
  }

  #lane(id: string, concurrency: number): Lane {
    const known = this.#lanes.get(id)
    if (known?.concurrency === concurrency) return known.lane
    const lane = new Lane(concurrency)
    this.#lanes.set(id, { lane, concurrency })
    return lane
  }

  /** An endpoint that a message names for itself; if the last refresh did not have it, Redis is asked. */
  async #other(id: string): Promise<Target | string | undefined> {
    const { endpoints, policy } = this.#parts
    const record = this.#records.get(id) ?? (await endpoints.get(id).catch(noneOf))
    if (record === undefined) return `there is no endpoint ${id}`
    if (record.disabled !== null) return undefined
    try {
      return { endpoint: endpointOf(id, record, policy, Date.now()), lane: this.#lane(id, record.concurrency) }
    } catch (thrown) {
      return (thrown as Error).message // for example a URL that the operator no longer allows
    }
  }

  #end(name: string, graceMs: number): void {
    const running = this.#pumps.get(name)
    this.#pumps.delete(name)
    const stopping = running?.pump.stop(graceMs).finally(() => this.#stopping.delete(stopping as Promise<void>))
    if (stopping !== undefined) this.#stopping.add(stopping)
  }

  #note(id: string, topic: string, message: ReliableMessage<Uint8Array>, delivered: Delivered): void {
    if (delivered.is === 'held') return
    const { log, onDelivered, onError } = this.#parts
    const { answer, failingMs, is: outcome } = delivered
    onDelivered({ outcome, answer, failingMs, latenessMs: Math.max(0, message.polledAt - message.visibleAt) })
    const entry = { id: message.id, topic, attempt: message.attempt, at: Date.now(), outcome, ...loggedAnswer(answer) }
    log.add(id, entry).catch(onError)
    if (outcome === 'gone') this.#disable(id, 'gone')
    if (outcome === 'failed' && failingMs >= FAILING_MS) this.#disable(id, 'failing')
  }

  #disable(id: string, reason: 'gone' | 'failing'): void {
    const { endpoints, onDisabled, onError } = this.#parts
    endpoints.disable(id, reason).then((isNew) => {
      if (!isNew) return
      onDisabled(id, reason)
      void this.refresh()
    }, onError)
  }
}

function noneOf(thrown: unknown): undefined {
  if (!(thrown instanceof TopicError && thrown.code === 'ERR_ENDPOINT_NOT_FOUND')) throw thrown
}
