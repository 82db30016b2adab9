import type { ReliableMessage } from 'redelayed'
import { pause } from '../pause.js'
import { BODY, ownEndpoint, ownRetryDelays, sentHeaders } from '../topics/body.js'
import type { Topic } from '../topics/topic.js'
import { retryDelayOf } from '../topics/topic-settings.js'
import type { Delivered, Delivery } from './delivery.js'
import type { Endpoint } from './endpoint.js'
import type { Lane } from './lane.js'

/** The endpoint of a webhook, with its lane. */
export interface Target {
  readonly endpoint: Endpoint
  readonly lane: Lane
}

export interface PumpParts {
  readonly topic: Topic
  readonly endpoint: Endpoint
  readonly lane: Lane
  readonly delivery: Delivery
  /** The endpoint that a message names for itself; a text says why it cannot be used, `undefined` that it is disabled. */
  readonly other: (id: string) => Promise<Target | string | undefined>
  /** Gets the outcome of each webhook. */
  readonly onDelivered: (endpoint: string, message: ReliableMessage<Uint8Array>, delivered: Delivered) => void
  readonly onError: (error: unknown) => void
}

/** How much longer a lease lasts than an answer may take. */
const MARGIN_MS = 5_000
/** A webhook that is held for at most this time waits with its lease. */
const SHORT_HOLD_MS = 1_000
/** The longest wait until the gate is asked again: an operator may have enabled the endpoint or changed its URL. */
const MOST_HOLD_MS = 5_000
const RETRY_MS = 1_000
const REASON_CHARS = 500
/** The wait of messages whose own endpoint is disabled, and of those for which it has no room. */
const DISABLED_MS = 30_000
const BUSY_MS = 2_000
/** The pause after messages were given back, so that they are not taken and given back all the time. */
const BREATH_MS = 100

/**
 * Takes the due messages of a topic and delivers them to its endpoint. Any number of instances can do so at once: each message has one
 * lease.
 */
export class Pump {
  readonly #parts: PumpParts
  readonly #stop = new AbortController()
  readonly #cut = new AbortController()
  readonly #running = new Set<Promise<void>>()
  readonly #done: Promise<void>

  constructor(parts: PumpParts) {
    this.#parts = parts
    this.#done = this.#run()
  }

  /** Takes no more messages. Webhooks under way have `graceMs` to end; then their messages are given back. */
  async stop(graceMs: number): Promise<void> {
    this.#stop.abort()
    const timer = setTimeout(() => this.#cut.abort(), graceMs)
    await this.#done
    await Promise.allSettled(this.#running)
    clearTimeout(timer)
  }

  get #leaseMs(): number {
    return this.#parts.endpoint.timeoutMs + MARGIN_MS
  }

  async #run(): Promise<void> {
    const { topic, lane, onError } = this.#parts
    const { signal } = this.#stop
    while (!signal.aborted) {
      await lane.room(signal)
      if (signal.aborted) return
      if (await this.#isHeld()) continue
      try {
        // one message tries whether the endpoint works again
        const count = lane.wasHeld ? 1 : Math.min(lane.free, 100)
        const messages = await topic.queue.pollMany({
          ...{ count, timeout: Infinity, visibilityTimeout: this.#leaseMs, signal },
        })
        const elsewhere = messages.flatMap((message) => this.#start(message) ?? [])
        if ((await Promise.all(elsewhere)).includes('busy')) await pause(BREATH_MS, signal)
      } catch (thrown) {
        if (signal.aborted) return
        onError(thrown)
        await pause(RETRY_MS, signal)
      }
    }
  }

  /** Leaves messages for an endpoint with a long pause in the queue, instead of taking them and giving them back all the time. */
  async #isHeld(): Promise<boolean> {
    const { delivery, endpoint, lane } = this.#parts
    if (!lane.wasHeld) return false
    const heldMs = await delivery.heldMs(endpoint)
    if (heldMs > 0) lane.hold(Math.min(heldMs, MOST_HOLD_MS))
    return heldMs > 0
  }

  /**
   * Starts a delivery. For a message with its own endpoint it resolves when that is under way, or with `busy` if the endpoint has no room.
   */
  #start(message: ReliableMessage<Uint8Array>): Promise<'busy' | undefined> | undefined {
    const takenAt = performance.now()
    const own = ownEndpoint(message.headers)
    if (own !== undefined && own !== this.#parts.endpoint.id) return this.#startElsewhere(own, message, takenAt)
    this.#follow(this.#parts.lane.run(() => this.#deliver(this.#parts, message, takenAt)))
    return undefined
  }

  async #startElsewhere(
    id: string,
    message: ReliableMessage<Uint8Array>,
    takenAt: number,
  ): Promise<'busy' | undefined> {
    try {
      const target = await this.#parts.other(id)
      if (typeof target === 'string') {
        this.#follow(this.#fail(message, new Failure(target)))
        return undefined
      }
      if (target === undefined || target.lane.free === 0) {
        this.#follow(this.#giveBack(message, target === undefined ? DISABLED_MS : BUSY_MS))
        return 'busy'
      }
      // as in `#isHeld`: otherwise messages for an endpoint with a long pause would be taken and given back all the time
      const heldMs = target.lane.wasHeld ? await this.#parts.delivery.heldMs(target.endpoint) : 0
      if (heldMs > 0) {
        this.#follow(this.#giveBack(message, Math.min(heldMs, DISABLED_MS)))
        return 'busy'
      }
      this.#follow(target.lane.run(() => this.#deliver(target, message, takenAt)))
    } catch (thrown) {
      this.#parts.onError(thrown) // the message comes back when its lease ends
    }
    return undefined
  }

  #follow(work: Promise<void>): void {
    const running: Promise<void> = work.catch(this.#parts.onError).finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  async #deliver({ endpoint, lane }: Target, message: ReliableMessage<Uint8Array>, takenAt: number): Promise<void> {
    const { delivery, onDelivered } = this.#parts
    const { id, payload, attempt } = message
    const contentType = message.headers[BODY] === 'bytes' ? 'application/octet-stream' : 'application/json'
    const headers = sentHeaders(message.headers)
    const isSlower = endpoint.timeoutMs > this.#parts.endpoint.timeoutMs
    if (isSlower && !(await message.extend(endpoint.timeoutMs + MARGIN_MS))) return
    for (;;) {
      // half of the margin has passed: the lease could end while the endpoint has the message
      if (performance.now() - takenAt > MARGIN_MS / 2 || this.#cut.signal.aborted) return this.#giveBack(message, 0)
      const delivered = await delivery.deliver(
        endpoint,
        { id, body: payload, contentType, attempt, headers },
        this.#cut.signal,
      )
      if (delivered.is !== 'held') {
        if (delivered.is === 'failed' && delivered.pauseMs > 0) lane.hold(Math.min(delivered.pauseMs, MOST_HOLD_MS))
        else lane.release()
        await this.#settle(message, delivered)
        onDelivered(endpoint.id, message, delivered)
        return
      }
      const waitMs = Math.min(delivered.waitMs, MOST_HOLD_MS)
      if (waitMs > 0) lane.hold(waitMs)
      if (waitMs === 0 || waitMs > SHORT_HOLD_MS) return this.#giveBack(message, waitMs)
      await pause(waitMs, this.#cut.signal)
    }
  }

  async #settle(message: ReliableMessage<Uint8Array>, delivered: Exclude<Delivered, { is: 'held' }>): Promise<void> {
    if (delivered.is === 'delivered') {
      await message.acknowledge() // shares a script with others that end now
      return
    }
    if (delivered.is === 'gone') return this.#giveBack(message, 0)
    return this.#fail(message, new Failure(reasonOf(delivered)), delivered.pauseMs)
  }

  async #fail(message: ReliableMessage<Uint8Array>, error: Failure, leastMs = 0): Promise<void> {
    const { topic } = this.#parts
    const retryDelays = ownRetryDelays(message.headers) ?? topic.settings.retryDelays
    const delay = Math.max(leastMs, retryDelayOf({ retryDelays }, message.attempt))
    await topic.queue.negativeAcknowledge([message], { delay, error })
  }

  /** Gives a message back; the delivery does not count as an attempt. */
  async #giveBack(message: ReliableMessage<Uint8Array>, delay: number): Promise<void> {
    await this.#parts.topic.queue.negativeAcknowledge([message], { countAttempt: false, delay })
  }
}

/** The error in the history of the message. */
class Failure extends Error {
  override name = 'Webhook'
}

function reasonOf({ answer }: Exclude<Delivered, { is: 'held' }>): string {
  if (answer.is === 'none') return answer.reason
  return `${answer.status} ${answer.body.toString().slice(0, REASON_CHARS)}`.trim()
}
