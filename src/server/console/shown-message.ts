import type { StoredMessage } from '../topics/topic.js'

export interface Reader {
  /** The reader may not see what is in messages, nor what endpoints have answered to them. */
  readonly isBlind: boolean
  /** Bodies have at most so many bytes. */
  readonly maxBody: number | undefined
}

/** A message as one reader gets it. */
export interface MessageForReader extends StoredMessage {
  readonly bodyHidden?: true
  /** The body was longer: it has so many bytes. */
  readonly bodyCut?: { readonly bytes: number }
  /** The first part of the JSON text of a body that was cut. */
  readonly bodyText?: string
}

export function messageFor(reader: Reader, message: StoredMessage): MessageForReader {
  const { body, bodyBase64, ...rest } = message
  if (reader.isBlind) return { ...withoutAnswers(rest), headers: {}, bodyHidden: true }
  if (reader.maxBody === undefined) return message
  if (bodyBase64 !== undefined) {
    const bytes = Buffer.byteLength(bodyBase64, 'base64')
    if (bytes <= reader.maxBody) return message
    const first = Buffer.from(bodyBase64.slice(0, Math.ceil(reader.maxBody / 3) * 4), 'base64')
    return { ...rest, bodyBase64: first.subarray(0, reader.maxBody).toString('base64'), bodyCut: { bytes } }
  }
  const text = Buffer.from(JSON.stringify(body))
  if (text.length <= reader.maxBody) return message
  // half a character at the end is left out
  const bodyText = new TextDecoder().decode(text.subarray(0, reader.maxBody), { stream: true })
  return { ...rest, bodyText, bodyCut: { bytes: text.length } }
}

/** What a failure says to a reader: of an endpoint that answered, the status, as its answer can have what is in the message. */
export function reasonFor(isBlind: boolean, reason: string): string {
  return isBlind ? reason.replace(/^(Webhook: \d{3}) [^]*$/, '$1') : reason
}

function withoutAnswers<T extends Pick<StoredMessage, 'failures' | 'flow'>>(message: T): T {
  const { failures, flow } = message
  return {
    ...message,
    failures: failures.map((failure) => ({ ...failure, reason: reasonFor(true, failure.reason) })),
    ...(flow && { flow: flow.map((each) => ({ ...each, error: errorFor(true, each.error) })) }),
  }
}

/** The same of a change in the flow of a message. */
export function errorFor(isBlind: boolean, error: string | null): string | null {
  return error === null ? null : reasonFor(isBlind, error)
}
