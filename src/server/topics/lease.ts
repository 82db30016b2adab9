import { TopicError } from './errors.js'

/** The text that a consumer acknowledges with: topic, number of the delivery, receipt. The last two contain no dot. */
export interface Lease {
  readonly topic: string
  readonly attempt: number
  readonly receipt: string
  /** How long the message waits after a negative acknowledgement, if it has retry delays of its own. */
  readonly retryDelay?: number | undefined
}

export function leaseText({ topic, attempt, receipt, retryDelay }: Lease): string {
  return `${topic}.${attempt}${retryDelay === undefined ? '' : `~${retryDelay}`}.${receipt}`
}

/** @throws TopicError ERR_LEASE */
export function readLease(text: string): Lease {
  const [, topic = '', attempt = '', delay, receipt = ''] =
    /^(.{1,128})\.(\d{1,9})(?:~(\d{1,15}))?\.([A-Za-z0-9_-]{1,1024})$/s.exec(text) ?? []
  if (topic === '') throw new TopicError('ERR_LEASE', 'expected a lease from a receive')
  return { topic, attempt: Number(attempt), receipt, ...(delay !== undefined && { retryDelay: Number(delay) }) }
}
