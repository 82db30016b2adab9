import type { Form } from '../records/record-in.js'
import type { Answer } from './sender.js'
import { StreamLog, type LogCommands, type LogPage } from './stream-log.js'

/** What is kept of one webhook that was sent. */
export interface LoggedDelivery {
  /** The message's. */
  readonly id: string
  readonly topic: string
  readonly attempt: number
  /** Epoch milliseconds. */
  readonly at: number
  readonly outcome: 'delivered' | 'failed' | 'gone'
  /** Of the answer; `null` where there was none, and `error` says why. */
  readonly status: number | null
  readonly error: string | null
  readonly tookMs: number
  /** The first 4 KiB of the answer. */
  readonly answer: string
}

const OUTCOMES: readonly unknown[] = ['delivered', 'failed', 'gone'] satisfies LoggedDelivery['outcome'][]
const FORM: Form<LoggedDelivery> = {
  ...{ id: 'text', topic: 'text', attempt: 'number', at: 'number', status: 'number?' },
  ...{ error: 'text?', tookMs: 'number', answer: 'text' },
  outcome: (value) => OUTCOMES.includes(value),
}

/** The last so many of each endpoint, for so long. */
const BOUNDS = { count: 500, ms: 7 * 86_400_000 }
const ANSWER_BYTES = 4_096

/** The last webhooks of each endpoint with their answers. */
export class DeliveryLog {
  readonly #log: StreamLog<LoggedDelivery>

  constructor(redis: LogCommands) {
    this.#log = new StreamLog(redis, FORM, BOUNDS)
  }

  add(endpoint: string, delivery: LoggedDelivery): Promise<void> {
    return this.#log.add(keyOf(endpoint), delivery)
  }

  /** The newest first, before a place in the log. */
  list(endpoint: string, count: number, before?: string): Promise<LogPage<LoggedDelivery>> {
    return this.#log.list(keyOf(endpoint), count, before)
  }

  forget(endpoint: string): Promise<void> {
    return this.#log.forget(keyOf(endpoint))
  }
}

export function loggedAnswer(answer: Answer): Pick<LoggedDelivery, 'status' | 'error' | 'tookMs' | 'answer'> {
  return answer.is === 'answer'
    ? { status: answer.status, error: null, tookMs: answer.tookMs, answer: shownText(answer.body) }
    : { status: null, error: answer.reason, tookMs: answer.tookMs, answer: '' }
}

/** So that an entry has at most about twice these bytes: what is no text would be six times as long in JSON. */
function shownText(body: Buffer): string {
  // eslint-disable-next-line no-control-regex -- these are what JSON makes long
  const text = body.toString().replaceAll(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g, '?')
  const bytes = Buffer.from(text)
  // half a character at the end is left out
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, ANSWER_BYTES), { stream: true })
}

function keyOf(endpoint: string): string {
  return `redelayed:service:deliveries:{${endpoint}}`
}
