import type { Agent, Dispatcher } from 'undici'
import type { EgressPolicy } from './egress-policy.js'
import type { Lookup } from './guarded-connect.js'

/** The answer with the first bytes of its body, or the reason why there is none. */
export type Answer =
  | {
      readonly is: 'answer'
      readonly status: number
      readonly retryAfter: string | undefined
      readonly body: Buffer
      readonly tookMs: number
    }
  | { readonly is: 'none'; readonly reason: string; readonly tookMs: number }

export interface SenderOptions {
  /** The limit for the look-up and the connection with TLS. Default 5 s. */
  readonly connectTimeoutMs?: number
  /** The limit from the request to the end of the answer. Default 15 s. */
  readonly timeoutMs?: number
  /** The most bytes kept of an answer. Default 4 KiB. */
  readonly keptBytes?: number
  /** An HTTP proxy for all webhooks, `http:` or `https:`. */
  readonly proxy?: URL | undefined
  /** @internal for tests: another resolver, another certificate authority */
  readonly lookup?: Lookup
  readonly ca?: string
}

/** An answer is read up to this size, so that its connection can be reused; a longer one closes it. */
const MOST_READ_BYTES = 65_536

/** Sends webhooks where the policy allows, over reused connections with one request at a time. It follows no redirects. */
export class Sender {
  readonly #makeAgent: () => Promise<Agent>
  readonly #timeoutMs: number
  readonly #keptBytes: number
  #agent: Promise<Agent> | undefined

  constructor(policy: EgressPolicy, options: SenderOptions = {}) {
    const { connectTimeoutMs = 5_000, timeoutMs = 15_000, keptBytes = 4_096, ...how } = options
    this.#timeoutMs = timeoutMs
    this.#keptBytes = keptBytes
    this.#makeAgent = async () => (await import('./agent.js')).makeAgent(policy, { ...how, connectTimeoutMs })
  }

  /** Loads the HTTP client, so that the first webhook need not wait for it. */
  async prepare(): Promise<void> {
    await this.#opened()
  }

  /** Never rejects: any failure becomes the reason why there is no answer. */
  async post(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    options: { timeoutMs?: number; signal?: AbortSignal } = {},
  ): Promise<Answer> {
    const startedAt = performance.now()
    const took = (): number => Math.round(performance.now() - startedAt)
    const limit = new AbortController()
    const timeoutMs = options.timeoutMs ?? this.#timeoutMs
    const timer = setTimeout(() => {
      limit.abort(new Error(`no whole answer within ${timeoutMs} ms`))
    }, timeoutMs)
    const signal = options.signal ? AbortSignal.any([limit.signal, options.signal]) : limit.signal
    try {
      const agent = await this.#opened()
      const request = agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: 'POST',
        headers: { ...headers },
        body,
        signal,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      })
      const response = await unlessAborted(request, signal)
      const kept = await firstBytes(response.body, this.#keptBytes)
      return {
        is: 'answer',
        status: response.statusCode,
        retryAfter: textOf(response.headers['retry-after']),
        body: kept,
        tookMs: took(),
      }
    } catch (error) {
      return { is: 'none', reason: reasonOf(error), tookMs: took() }
    } finally {
      clearTimeout(timer)
    }
  }

  /** Closes all connections; webhooks under way get no answer. */
  async close(): Promise<void> {
    const agent = await this.#agent
    await agent?.destroy()
  }

  #opened(): Promise<Agent> {
    this.#agent ??= this.#makeAgent().catch((error: unknown) => {
      this.#agent = undefined // the next webhook tries again
      throw error
    })
    return this.#agent
  }
}

/** Aborts also while a request waits for a connection, when undici does not check the signal yet. */
async function unlessAborted(request: Promise<Dispatcher.ResponseData>, signal: AbortSignal) {
  let end = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    end = () => reject(signal.reason as Error)
    signal.addEventListener('abort', end, { once: true })
  })
  request.catch(() => undefined) // it can still reject after the abort
  try {
    return await Promise.race([request, aborted])
  } finally {
    signal.removeEventListener('abort', end)
  }
}

async function firstBytes(body: Dispatcher.ResponseData['body'], count: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let read = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (read < count) chunks.push(chunk.subarray(0, count - read))
    read += chunk.length
    if (read > MOST_READ_BYTES) break
  }
  return Buffer.concat(chunks)
}

function textOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}

/** The code of the system or of undici, if there is one, because the message can quote data of the endpoint. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const { code } = error as { code?: unknown }
  if (code === 'ERR_EGRESS_REFUSED') return error.message
  return typeof code === 'string' && code !== 'UND_ERR_ABORTED' ? code : error.message.slice(0, 200)
}
