import { TopicError } from './errors.js'

/** What a consumer acknowledges with: topic, number of the delivery, receipt. Neither of the last two has a dot. */
export interface Lease {
  readonly topic: string
  readonly attempt: number
  readonly receipt: string
  /** How long the message waits when it is given back, where it has retry delays of its own. */
  readonly retryDelay?: number | undefined
}

export function leaseText({ topic, attempt, receipt, retryDelay }: Lease): string {
  return `${topic}.${attempt}${retryDelay === undefined ? '' : `~${retryDelay}`}.${receipt}`
}

/** @throws TopicError ERR_LEASE */
export function readLease(text: string): Lease {
  const [, topic = '', attempt = '', delay, receipt = ''] =
    /^(.{1,128})\.(\d{1,9})(?:~(\d{1,15}))?\.([A-Za-z0-9_-]{1,1024})$/s.exec(text) ?? []
  if (topic === '') throw new TopicError('ERR_LEASE', 'expected a lease as a receive answered it')
  return { topic, attempt: Number(attempt), receipt, ...(delay !== undefined && { retryDelay: Number(delay) }) }
}
