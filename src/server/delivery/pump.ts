import type { ReliableMessage } from 'redelayed'
import { pause } from '../pause.js'
import { BODY } from '../topics/body.js'
import type { Topic } from '../topics/topic.js'
import { retryDelayOf } from '../topics/topic-settings.js'
import type { Delivered, Delivery } from './delivery.js'
import type { Endpoint } from './endpoint.js'
import type { Lane } from './lane.js'

export interface PumpParts {
  readonly topic: Topic
  readonly endpoint: Endpoint
  readonly lane: Lane
  readonly delivery: Delivery
  /** What became of a webhook, and how late its message was when it was sent. */
  readonly onDelivered: (message: ReliableMessage<Uint8Array>, delivered: Delivered) => void
  readonly onError: (error: unknown) => void
}

/** A lease lasts so much longer than an answer may take. */
const MARGIN_MS = 5_000
/** A webhook that may go so soon waits with its lease. */
const SHORT_HOLD_MS = 1_000
/** After so long the gate is asked again: an operator may have enabled the endpoint, or given it another URL. */
const MOST_HOLD_MS = 5_000
const RETRY_MS = 1_000
const REASON_CHARS = 500

/** Takes the due messages of one topic and delivers them to its endpoint. Any number of instances do so at once: each message has one lease. */
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

  /** Takes no more. What is under way has so long to end; then it is given back. */
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
        // one message tries whether the endpoint is there again
        const count = lane.wasHeld ? 1 : Math.min(lane.free, 100)
        const messages = await topic.queue.pollMany({
          ...{ count, timeout: Infinity, visibilityTimeout: this.#leaseMs, signal },
        })
        for (const message of messages) this.#start(message)
      } catch (thrown) {
        if (signal.aborted) return
        onError(thrown)
        await pause(RETRY_MS, signal)
      }
    }
  }

  /** Messages of an endpoint that asked for a long pause stay where they are, instead of being taken and given back all the time. */
  async #isHeld(): Promise<boolean> {
    const { delivery, endpoint, lane } = this.#parts
    if (!lane.wasHeld) return false
    const heldMs = await delivery.heldMs(endpoint)
    if (heldMs > 0) lane.hold(Math.min(heldMs, MOST_HOLD_MS))
    return heldMs > 0
  }

  #start(message: ReliableMessage<Uint8Array>): void {
    const { lane, onError } = this.#parts
    const takenAt = performance.now()
    const running: Promise<void> = lane
      .run(() => this.#deliver(message, takenAt))
      .catch(onError)
      .finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  async #deliver(message: ReliableMessage<Uint8Array>, takenAt: number): Promise<void> {
    const { delivery, endpoint, lane, onDelivered } = this.#parts
    const { id, payload, attempt } = message
    const { [BODY]: kind, ...headers } = message.headers
    const contentType = kind === 'bytes' ? 'application/octet-stream' : 'application/json'
    for (;;) {
      // so late the lease could end while the endpoint has the message
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
        onDelivered(message, delivered)
        return
      }
      const waitMs = Math.min(delivered.waitMs, MOST_HOLD_MS)
      if (waitMs > 0) lane.hold(waitMs)
      if (waitMs === 0 || waitMs > SHORT_HOLD_MS) return this.#giveBack(message, waitMs)
      await pause(waitMs, this.#cut.signal)
    }
  }

  async #settle(message: ReliableMessage<Uint8Array>, delivered: Exclude<Delivered, { is: 'held' }>): Promise<void> {
    const { topic } = this.#parts
    if (delivered.is === 'delivered') {
      await message.acknowledge() // in one script with the others that end now
      return
    }
    if (delivered.is === 'gone') return this.#giveBack(message, 0)
    const delay = Math.max(delivered.pauseMs, retryDelayOf(topic.settings, message.attempt))
    await topic.queue.negativeAcknowledge([message], { delay, error: new Failure(reasonOf(delivered)) })
  }

  /** That was no attempt. */
  async #giveBack(message: ReliableMessage<Uint8Array>, delay: number): Promise<void> {
    await this.#parts.topic.queue.negativeAcknowledge([message], { countAttempt: false, delay })
  }
}

/** What stands in the history of the message. */
class Failure extends Error {
  override name = 'Webhook'
}

function reasonOf({ answer }: Exclude<Delivered, { is: 'held' }>): string {
  if (answer.is === 'none') return answer.reason
  return `${answer.status} ${answer.body.toString().slice(0, REASON_CHARS)}`.trim()
}
