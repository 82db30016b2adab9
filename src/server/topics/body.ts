import { codecs } from 'redelayed'
import { BIZ_KEY_HEADER as BIZ_KEY } from '../database/biz-key.js'
import { ENDPOINT_ID } from './endpoint-id.js'

/** The prefix of the service's own headers; callers cannot set them. */
export const OWN_HEADERS = 'redelayed-'

export const BODY = `${OWN_HEADERS}body`
/** How long a message waits after each of its deliveries, instead of the topic's retry delays. */
const RETRY_DELAYS = `${OWN_HEADERS}retry-delays`
const ENDPOINT_IDS = new RegExp(ENDPOINT_ID)
/** The endpoint that gets the message's webhook, instead of the topic's. */
const ENDPOINT = `${OWN_HEADERS}endpoint`
const json = codecs.json()

/** The content of a message, as a caller gives it. */
export interface BodyInput {
  readonly body?: unknown
  readonly bodyBase64?: string | undefined
  readonly bizKey?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly retryDelays?: readonly number[] | undefined
  readonly endpoint?: string | undefined
}

/** A message's content as callers get it: one of `body` and `bodyBase64`. */
export interface ShownBody {
  readonly body?: unknown
  readonly bodyBase64?: string
  readonly bizKey?: string
  readonly retryDelays?: number[]
  readonly endpoint?: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * The payload and the headers of the queue's message. A JSON value is stored as its text, which consumers with the library read with
 * `codecs.json()`; bytes are stored as they are, and a header says so.
 */
export function storedBody(input: BodyInput): { payload: Buffer; headers: Record<string, string> } {
  const { bodyBase64, bizKey, retryDelays, endpoint } = input
  const headers = { ...input.headers }
  if (bizKey !== undefined) headers[BIZ_KEY] = bizKey
  if (retryDelays !== undefined && retryDelays.length > 0) headers[RETRY_DELAYS] = retryDelays.join()
  if (endpoint !== undefined) headers[ENDPOINT] = endpoint
  if (bodyBase64 === undefined) return { payload: jsonBytes(input.body), headers }
  return { payload: Buffer.from(bodyBase64, 'base64'), headers: { ...headers, [BODY]: 'bytes' } }
}

export function jsonBytes(body: unknown): Buffer {
  return Buffer.from(JSON.stringify(body === undefined ? null : body))
}

/** The body of a message that may have been added with the library. Payloads that are not JSON are shown as bytes. */
export function shownBody(payload: Uint8Array, stored: Readonly<Record<string, string>>): ShownBody {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  const { [BODY]: kind, [BIZ_KEY]: bizKey, [RETRY_DELAYS]: _, [ENDPOINT]: __, ...headers } = stored
  const [retryDelays, endpoint] = [ownRetryDelays(stored), ownEndpoint(stored)]
  const rest = {
    ...(bizKey !== undefined && { bizKey }),
    ...(retryDelays !== undefined && { retryDelays }),
    ...(endpoint !== undefined && { endpoint }),
    headers,
  }
  if (kind !== 'bytes') {
    try {
      return { body: json.decode(bytes), ...rest }
    } catch {
      // not JSON
    }
  }
  return { bodyBase64: bytes.toString('base64'), ...rest }
}

type Stored = Readonly<Record<string, string>>

/** The message's own retry delays. A header that no request can set was written by another program and is ignored. */
export function ownRetryDelays({ [RETRY_DELAYS]: text }: Stored): number[] | undefined {
  if (text === undefined || !/^\d{1,15}(,\d{1,15}){0,99}$/.test(text)) return undefined
  return text.split(',').map(Number)
}

/** The headers that are sent with a webhook. */
export function sentHeaders({ [BODY]: _, [RETRY_DELAYS]: __, [ENDPOINT]: ___, ...headers }: Stored): Stored {
  return headers
}

export function ownBizKey({ [BIZ_KEY]: text }: Stored): string | undefined {
  return text
}

export function ownEndpoint({ [ENDPOINT]: text }: Stored): string | undefined {
  return text !== undefined && ENDPOINT_IDS.test(text) ? text : undefined
}

/** Whether the text is valid base64; `Buffer` does not check that. */
export function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
}
