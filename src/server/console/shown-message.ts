import type { StoredMessage } from '../topics/topic.js'

export interface Reader {
  /** The reader may not see what is in messages. */
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
  if (reader.isBlind) return { ...rest, headers: {}, bodyHidden: true }
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
