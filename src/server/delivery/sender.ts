import { Agent, type Dispatcher } from 'undici'
import type { EgressPolicy } from './egress-policy.js'
import { guardedConnect, type Lookup } from './guarded-connect.js'

/** What came back: an answer with the first bytes of its body, or the reason why there is none. */
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
  /** For a look-up and a connection, TLS included. Default 5 s. */
  readonly connectTimeoutMs?: number
  /** From the request to the end of the answer. Default 15 s. */
  readonly timeoutMs?: number
  /** So much of an answer is kept. Default 4 KiB. */
  readonly keptBytes?: number
  /** @internal for tests: another resolver, another certificate authority */
  readonly lookup?: Lookup
  readonly ca?: string
}

/** Answers are read up to here, so that the connection can be used again; a longer one ends it. */
const MOST_READ_BYTES = 65_536
const MOST_HEADER_BYTES = 16_384

/** Sends webhooks over kept connections, one request at a time on each, to where the policy allows. Redirects are not followed. */
export class Sender {
  readonly #agent: Agent
  readonly #timeoutMs: number
  readonly #keptBytes: number

  constructor(policy: EgressPolicy, options: SenderOptions = {}) {
    const { connectTimeoutMs = 5_000, timeoutMs = 15_000, keptBytes = 4_096 } = options
    this.#timeoutMs = timeoutMs
    this.#keptBytes = keptBytes
    const { lookup, ca } = options
    this.#agent = new Agent({
      connect: guardedConnect(policy, {
        connectTimeoutMs,
        ...(lookup !== undefined && { lookup }),
        ...(ca !== undefined && { ca }),
      }),
      // as many connections to an origin as its endpoints may use: a limit here would have one endpoint wait for another
      pipelining: 1,
      maxHeaderSize: MOST_HEADER_BYTES,
      keepAliveTimeout: 30_000,
      keepAliveMaxTimeout: 120_000,
    })
  }

  /** Never rejects: whatever goes wrong is a reason why there is no answer. */
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
      const request = this.#agent.request({
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

  /** Ends all connections; what is under way has no answer. */
  async close(): Promise<void> {
    await this.#agent.destroy()
  }
}

/** undici looks at the signal only once a request has a connection. */
async function unlessAborted(request: Promise<Dispatcher.ResponseData>, signal: AbortSignal) {
  let end = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    end = () => reject(signal.reason as Error)
    signal.addEventListener('abort', end, { once: true })
  })
  request.catch(() => undefined) // it can end after that
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

/** A code of the system or of undici where there is one: the message can have what the endpoint sent. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const { code } = error as { code?: unknown }
  if (code === 'ERR_EGRESS_REFUSED') return error.message
  return typeof code === 'string' && code !== 'UND_ERR_ABORTED' ? code : error.message.slice(0, 200)
}
