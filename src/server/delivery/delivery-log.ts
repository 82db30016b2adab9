import type { Answer } from './sender.js'

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

/** The commands of an ioredis client that the log sends. */
export interface LogCommands {
  xadd(...args: [key: string, ...rest: (string | number)[]]): Promise<unknown>
  pexpire(key: string, ms: number): Promise<unknown>
  xrevrange(...args: [key: string, from: string, to: string, word: 'COUNT', count: number]): Promise<unknown>
  del(key: string): Promise<unknown>
}

/** The last so many of each endpoint, for so long. */
const KEPT = 500
const KEPT_MS = 7 * 86_400_000

/** The last webhooks of each endpoint with their answers, in a stream for each. */
export class DeliveryLog {
  readonly #redis: LogCommands

  constructor(redis: LogCommands) {
    this.#redis = redis
  }

  async add(endpoint: string, delivery: LoggedDelivery): Promise<void> {
    const key = keyOf(endpoint)
    await Promise.all([
      this.#redis.xadd(key, 'MAXLEN', '~', KEPT, '*', 'd', JSON.stringify(delivery)),
      this.#redis.pexpire(key, KEPT_MS),
    ])
  }

  /** The newest first, before a place in the log. */
  async list(
    endpoint: string,
    count: number,
    before?: string,
  ): Promise<{ readonly deliveries: LoggedDelivery[]; readonly next: string | undefined }> {
    const from = before === undefined ? '+' : `(${before}`
    const entries = (await this.#redis.xrevrange(keyOf(endpoint), from, '-', 'COUNT', count + 1)) as [
      string,
      string[],
    ][]
    const page = entries.slice(0, count)
    return {
      deliveries: page.map(([, fields]) => JSON.parse(fields[1] ?? '{}') as LoggedDelivery),
      next: entries.length > count ? page.at(-1)?.[0] : undefined,
    }
  }

  async forget(endpoint: string): Promise<void> {
    await this.#redis.del(keyOf(endpoint))
  }
}

export function loggedAnswer(answer: Answer): Pick<LoggedDelivery, 'status' | 'error' | 'tookMs' | 'answer'> {
  return answer.is === 'answer'
    ? { status: answer.status, error: null, tookMs: answer.tookMs, answer: answer.body.toString() }
    : { status: null, error: answer.reason, tookMs: answer.tookMs, answer: '' }
}

function keyOf(endpoint: string): string {
  return `redelayed:service:deliveries:{${endpoint}}`
}
