import { late, within } from '../pause.js'
import { traceOf } from '../topics/trace.js'
import type { Tracing } from '../topics/tracing.js'
import type { Endpoint } from './endpoint.js'
import type { Ended, EndpointGate } from './endpoint-gate.js'
import type { Answer, Sender } from './sender.js'
import { signatureHeaders } from './signature.js'
import { verdictOn } from './verdict.js'

/** So long Redis may take for an answer of the gate. */
const GATE_MS = 2_000
/** So long a message waits for a gate that did not answer. */
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

/** What became of a delivery. */
export type Delivered =
  | { readonly is: 'delivered'; readonly answer: Answer }
  /** The endpoint is paused, limited, or its breaker is open; or the service stops. That is no attempt. */
  | { readonly is: 'held'; readonly waitMs: number }
  /** An attempt that failed; the endpoint asked for at least this pause. */
  | { readonly is: 'failed'; readonly answer: Answer; readonly pauseMs: number; readonly failingMs: number }
  /** The endpoint answered 410 and wants nothing more. */
  | { readonly is: 'gone'; readonly answer: Answer }

/** One delivery of one webhook: through the gate, signed, sent, and judged. */
export class Delivery {
  readonly #sender: Sender
  readonly #gate: EndpointGate
  readonly #onError: (error: unknown) => void
  readonly #now: () => number
  readonly #tracing: Tracing | undefined

  /** @param now epoch milliseconds of this process: receivers hold the timestamp against a clock of their own, not against that of Redis */
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
    // a service that stops says nothing of the endpoint
    if (signal?.aborted === true && answer.is === 'none') return { is: 'held', waitMs: 0 }
    const verdict = verdictOn(answer, this.#now())
    const pauseMs = verdict.is === 'throttled' ? verdict.waitMs : 0
    // what is gone gets nothing more while it is being disabled
    const ended = verdict.is === 'delivered' || verdict.is === 'refused' ? verdict.is : 'failed'
    const failingMs = await this.#leave(endpoint, ended, verdict.is === 'gone' ? GONE_MS : pauseMs)
    if (verdict.is === 'delivered' || verdict.is === 'gone') return { is: verdict.is, answer }
    return { is: 'failed', answer, pauseMs, failingMs }
  }

  /** For so long the gate lets nothing through to the endpoint; without an answer of the gate for a while. */
  async heldMs({ id }: Endpoint): Promise<number> {
    try {
      return await within(GATE_MS, this.#gate.heldMs(id), late('Redis did not say in time whether an endpoint is held'))
    } catch (error) {
      this.#onError(error)
      return CLOSED_MS
    }
  }

  /** Without an answer of the gate nothing is sent, and that is no attempt. */
  async #enter({ id, perSecond }: Endpoint): Promise<number> {
    try {
      return await within(GATE_MS, this.#gate.enter(id, perSecond), late('Redis did not let a webhook pass in time'))
    } catch (error) {
      this.#onError(error)
      return CLOSED_MS
    }
  }

  /** Without an answer of the gate the verdict on the webhook stays what it is. */
  async #leave({ id }: Endpoint, ended: Ended, pauseMs: number): Promise<number> {
    try {
      const left = this.#gate.leave(id, ended, pauseMs)
      return (await within(GATE_MS, left, late('Redis did not record the end of a webhook in time'))).failingMs
    } catch (error) {
      this.#onError(error)
      return 0
    }
  }

  /** Signed and sent, past the gate. */
  async send(endpoint: Endpoint, webhook: Webhook, signal?: AbortSignal): Promise<Answer> {
    // without the path, which can have a secret
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

/** Headers of the message go along under a prefix, so that none of them can pass for one of the request. */
function forwarded(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  const names = Object.entries(headers).filter(([name]) => /^[\w-]{1,64}$/.test(name))
  return Object.fromEntries(
    names.map(([name, value]) => [`redelayed-header-${name.toLowerCase()}`, encodeURIComponent(value.toWellFormed())]),
  )
}
