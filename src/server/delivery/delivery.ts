import { late, within } from '../pause.js'
import { traceOf } from '../topics/trace.js'
import type { Tracing } from '../topics/tracing.js'
import type { Endpoint } from './endpoint.js'
import type { Ended, EndpointGate } from './endpoint-gate.js'
import type { Answer, Sender } from './sender.js'
import { signatureHeaders } from './signature.js'
import { verdictOn } from './verdict.js'

/** The longest that the gate may take to answer. */
const GATE_MS = 2_000
/** How long a message waits after the gate did not answer. */
const CLOSED_MS = 2_000
const GONE_MS = 10_000

/** A message on its way to an endpoint. */
export interface Webhook {
  readonly id: string
  readonly body: Uint8Array
  readonly contentType: string
  /** 1 for the first delivery. */
  readonly attempt: number
  readonly headers?: Readonly<Record<string, string>>
}

/** The outcome of a delivery. `failingMs`: for how long nothing has been delivered to the endpoint; 0 after a delivery. */
export type Delivered =
  | { readonly is: 'delivered'; readonly answer: Answer; readonly failingMs: number }
  /** The endpoint is paused or limited, its breaker is open, or the service stops. This does not count as an attempt. */
  | { readonly is: 'held'; readonly waitMs: number }
  /** The attempt failed; the endpoint asked for at least this pause. */
  | { readonly is: 'failed'; readonly answer: Answer; readonly pauseMs: number; readonly failingMs: number }
  /** The endpoint answered 410: it wants no more webhooks. */
  | { readonly is: 'gone'; readonly answer: Answer; readonly failingMs: number }

/** Delivers webhooks: asks the gate, signs, sends, and judges the answer. */
export class Delivery {
  readonly #sender: Sender
  readonly #gate: EndpointGate
  readonly #onError: (error: unknown) => void
  readonly #now: () => number
  readonly #tracing: Tracing | undefined

  /** @param now epoch milliseconds of this process: receivers compare the timestamp with their own clock, not with that of Redis */
  constructor(
    sender: Sender,
    gate: EndpointGate,
    onError: (error: unknown) => void = () => undefined,
    now = Date.now,
    tracing?: Tracing,
  ) {
    this.#tracing = tracing
    this.#sender = sender
    this.#gate = gate
    this.#onError = onError
    this.#now = now
  }

  async deliver(endpoint: Endpoint, webhook: Webhook, signal?: AbortSignal): Promise<Delivered> {
    const waitMs = await this.#enter(endpoint)
    if (waitMs > 0) return { is: 'held', waitMs }
    const answer = await this.send(endpoint, webhook, signal)
    // a missing answer while the service stops is not the endpoint's fault
    if (signal?.aborted === true && answer.is === 'none') return { is: 'held', waitMs: 0 }
    const verdict = verdictOn(answer, this.#now())
    const pauseMs = verdict.is === 'throttled' ? verdict.waitMs : 0
    // an endpoint that is gone gets no more webhooks while it is being disabled
    const ended = verdict.is === 'delivered' || verdict.is === 'refused' ? verdict.is : 'failed'
    const failingMs = await this.#leave(endpoint, ended, verdict.is === 'gone' ? GONE_MS : pauseMs)
    if (verdict.is === 'delivered' || verdict.is === 'gone') return { is: verdict.is, answer, failingMs }
    return { is: 'failed', answer, pauseMs, failingMs }
  }

  /** How long the gate holds webhooks to the endpoint; a default time if the gate does not answer. */
  async heldMs({ id }: Endpoint): Promise<number> {
    try {
      return await within(GATE_MS, this.#gate.heldMs(id), late('Redis did not say in time whether an endpoint is held'))
    } catch (error) {
      this.#onError(error)
      return CLOSED_MS
    }
  }

  /** How long to wait before sending. If the gate does not answer, nothing is sent, which does not count as an attempt. */
  async #enter({ id, perSecond }: Endpoint): Promise<number> {
    try {
      return await within(GATE_MS, this.#gate.enter(id, perSecond), late('Redis did not let a webhook pass in time'))
    } catch (error) {
      this.#onError(error)
      return CLOSED_MS
    }
  }

  /** Reports the end of a webhook to the gate. If the gate does not answer, the verdict stands. */
  async #leave({ id }: Endpoint, ended: Ended, pauseMs: number): Promise<number> {
    try {
      const left = this.#gate.leave(id, ended, pauseMs)
      return (await within(GATE_MS, left, late('Redis did not record the end of a webhook in time'))).failingMs
    } catch (error) {
      this.#onError(error)
      return 0
    }
  }

  /** Signs and sends a webhook without asking the gate. */
  async send(endpoint: Endpoint, webhook: Webhook, signal?: AbortSignal): Promise<Answer> {
    // without the path, which can contain a secret
    const span = this.#tracing?.start('CLIENT', 'POST', webhook.headers, {
      'http.request.method': 'POST',
      'server.address': endpoint.url.hostname,
      'messaging.message.id': webhook.id,
      'redelayed.attempt': webhook.attempt,
      'redelayed.endpoint': endpoint.id,
    })
    const answer = await this.#post(endpoint, webhook, span?.trace ?? traceOf(webhook.headers), signal)
    if (answer.is === 'none') span?.end({}, answer.reason)
    else span?.end({ 'http.response.status_code': answer.status }, answer.status < 300 ? undefined : `${answer.status}`)
    return answer
  }

  #post(endpoint: Endpoint, webhook: Webhook, trace: Record<string, string>, signal?: AbortSignal): Promise<Answer> {
    const headers = {
      ...forwarded(webhook.headers),
      ...trace,
      'content-type': webhook.contentType,
      'user-agent': 'redelayed-server',
      'redelayed-attempt': String(webhook.attempt),
      ...signatureHeaders(webhook.id, this.#now(), webhook.body, endpoint.secrets),
    }
    return this.#sender.post(endpoint.url, headers, webhook.body, {
      timeoutMs: endpoint.timeoutMs,
      ...(signal && { signal }),
    })
  }
}

/** The headers of the message, prefixed so that none can be mistaken for a header of the request. */
function forwarded(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  const names = Object.entries(headers).filter(([name]) => /^[\w-]{1,64}$/.test(name))
  return Object.fromEntries(
    names.map(([name, value]) => [`redelayed-header-${name.toLowerCase()}`, encodeURIComponent(value.toWellFormed())]),
  )
}
