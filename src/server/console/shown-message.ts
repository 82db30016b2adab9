import type { StoredMessage } from '../topics/topic.js'

export interface Reader {
  /** The reader may see neither the contents of messages nor the answers of endpoints. */
  readonly isBlind: boolean
  /** The most bytes of a body. */
  readonly maxBody: number | undefined
}

/** A message as a reader gets it. */
export interface MessageForReader extends StoredMessage {
  readonly bodyHidden?: true
  /** The body was cut; `bytes` is its whole size. */
  readonly bodyCut?: { readonly bytes: number }
  /** The beginning of the JSON text of a cut body. */
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
  // drops an incomplete character at the end
  const bodyText = new TextDecoder().decode(text.subarray(0, reader.maxBody), { stream: true })
  return { ...rest, bodyText, bodyCut: { bytes: text.length } }
}

/** The reason of a failure for a reader. A blind reader gets only the status of an endpoint's answer, which can quote the message. */
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

/** The same for a change in the history of a message. */
export function errorFor(isBlind: boolean, error: string | null): string | null {
  return error === null ? null : reasonFor(isBlind, error)
}
