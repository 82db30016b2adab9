import { noteServerTime } from '../lib/clock.js'
import { connection } from './connection.js'

/** A problem that the service answered with. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    readonly detail: string | undefined,
    readonly requestId: string | undefined,
  ) {
    super(detail ?? title)
  }
}

/** There was no answer. */
export class Unreachable extends Error {}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

export interface Ask {
  readonly query?: Query
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

export async function request<T>(method: string, path: string, { query, body, signal }: Ask = {}): Promise<T> {
  const response = await send(method, path + search(query), body, signal)
  const date = response.headers.get('date')
  if (date !== null) noteServerTime(Date.parse(date) + 500)
  if (response.status === 204) return undefined as T
  const text = await readText(response, signal)
  if (response.ok) return JSON.parse(text) as T
  throw problemOf(response, text)
}

async function send(method: string, url: string, body: unknown, signal: AbortSignal | undefined): Promise<Response> {
  try {
    const response = await fetch(url, {
      method,
      headers: {
        Accept: 'application/json',
        'X-Redelayed-Page': '1',
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
      cache: 'no-store',
      redirect: 'error',
    })
    connection.answered()
    return response
  } catch (error) {
    if (signal?.aborted) throw error
    connection.lost()
    throw new Unreachable('The service does not answer.')
  }
}

async function readText(response: Response, signal: AbortSignal | undefined): Promise<string> {
  try {
    return await response.text()
  } catch (error) {
    if (signal?.aborted) throw error
    connection.lost()
    throw new Unreachable('The answer ended before it was whole.')
  }
}

function problemOf(response: Response, text: string): Problem {
  const id = response.headers.get('x-request-id') ?? undefined
  try {
    const { code, title, detail, requestId } = JSON.parse(text) as Partial<Problem>
    return new Problem(response.status, code ?? '', title ?? 'The service refused it', detail, requestId ?? id)
  } catch {
    return new Problem(response.status, '', `The answer has the status ${response.status}`, undefined, id)
  }
}

function search(query: Query = {}): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') params.set(name, String(value))
  const text = params.toString()
  return text === '' ? '' : `?${text}`
}
