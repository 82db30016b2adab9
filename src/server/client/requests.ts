import { pause } from '../pause.js'
import { NoAnswerError, ProblemError } from './errors.js'

export interface ClientOptions {
  /** The URL of the service, such as `http://127.0.0.1:8080`. Its path, if any, comes before `/v1`. */
  readonly url: string
  /** An API key. */
  readonly key: string
  /** The longest that an answer may take, in milliseconds, without the `wait` of a receive. Default 30,000. */
  readonly timeout?: number
  /** How often a call that is safe to repeat is repeated after a 502, 503 or 504, or without an answer. Default 3. */
  readonly retries?: number
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch
}

export interface CallOptions {
  /** Ends the call: it rejects with the reason. */
  readonly signal?: AbortSignal
}

export interface Call {
  readonly body?: unknown
  readonly query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
  /** How long the service may wait before it answers. */
  readonly wait?: number | undefined
  /** Whether repeating the call changes nothing more. */
  readonly isRepeatable?: boolean
}

const [FIRST_PAUSE_MS, MOST_PAUSE_MS] = [100, 5_000]
const PASSING = new Set([502, 503, 504])

/** Sends requests with the key, repeats those that are safe to repeat, and turns problems into errors. */
export class Requests {
  readonly #base: string
  readonly #options: Required<Omit<ClientOptions, 'url'>>

  constructor({ url, key, timeout = 30_000, retries = 3, fetch: send = fetch }: ClientOptions) {
    this.#base = new URL(url).href.replace(/\/$/, '')
    this.#options = { key, timeout, retries, fetch: send }
  }

  /** @throws ProblemError @throws NoAnswerError @throws the reason of the signal */
  async json<T>(method: string, path: string, call: Call = {}): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#limited(method, path, call)
      } catch (error) {
        call.signal?.throwIfAborted()
        if (call.isRepeatable !== true || attempt >= this.#options.retries || !isPassing(error)) throw error
        await pause(pauseAfter(error, attempt), call.signal)
        call.signal?.throwIfAborted()
      }
    }
  }

  /** Sends a request; the caller reads the body of the answer. */
  async open(method: string, path: string, { body, query = {}, headers, signal }: Call): Promise<Response> {
    const words = new URLSearchParams()
    for (const [name, value] of Object.entries(query))
      for (const each of Array.isArray(value) ? value : value === undefined ? [] : [value])
        words.append(name, String(each))
    const search = words.size === 0 ? '' : `?${words.toString()}`
    const response = await this.#options
      .fetch(`${this.#base}${path}${search}`, {
        method,
        headers: {
          authorization: `Bearer ${this.#options.key}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal && { signal }),
      })
      .catch(noAnswer)
    if (!response.ok) throw await problemIn(response)
    return response
  }

  async #limited<T>(method: string, path: string, call: Call): Promise<T> {
    const { signal } = call
    signal?.throwIfAborted()
    const limit = new AbortController()
    const end = (): void => limit.abort(signal?.reason)
    const ms = this.#options.timeout + (call.wait ?? 0)
    const timer = setTimeout(() => limit.abort(new NoAnswerError(`no answer within ${ms} ms`)), ms)
    signal?.addEventListener('abort', end, { once: true })
    try {
      const response = await this.open(method, path, { ...call, signal: limit.signal })
      const text = await response.text().catch(noAnswer)
      return (text === '' ? undefined : JSON.parse(text)) as T
    } catch (error) {
      throw limit.signal.aborted ? limit.signal.reason : error
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
    }
  }
}

function noAnswer(cause: unknown): never {
  const { message, cause: deeper } = cause as Error
  throw new NoAnswerError(deeper instanceof Error ? deeper.message || message : message, { cause })
}

async function problemIn(response: Response): Promise<ProblemError> {
  const { status, headers } = response
  const text = await response.text().catch(() => '')
  const seconds = Number(headers.get('retry-after') ?? NaN)
  const retryAfter = Number.isNaN(seconds) ? undefined : seconds * 1_000
  try {
    return new ProblemError({ ...(JSON.parse(text) as object), status }, retryAfter)
  } catch {
    return new ProblemError({ status, ...(text !== '' && { detail: text.slice(0, 200) }) }, retryAfter)
  }
}

/** Whether the next attempt may succeed. */
export function isPassing(error: unknown): boolean {
  return error instanceof NoAnswerError || (error instanceof ProblemError && PASSING.has(error.status))
}

/** How long to wait before the next attempt; `attempt` counts from 0. */
export function pauseAfter(error: unknown, attempt: number): number {
  const asked = error instanceof ProblemError ? (error.retryAfter ?? 0) : 0
  return Math.min(Math.max(asked, FIRST_PAUSE_MS * 2 ** attempt), MOST_PAUSE_MS)
}
