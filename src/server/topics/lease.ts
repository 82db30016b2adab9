import { TopicError } from './errors.js'

/** What a consumer acknowledges with: topic, number of the delivery, receipt. Neither of the last two has a dot. */
export interface Lease {
  readonly topic: string
  readonly attempt: number
  readonly receipt: string
}

export function leaseText({ topic, attempt, receipt }: Lease): string {
  return `${topic}.${attempt}.${receipt}`
}

/** @throws TopicError ERR_LEASE */
export function readLease(text: string): Lease {
  const [, topic = '', attempt = '', receipt = ''] =
    /^(.{1,128})\.(\d{1,9})\.([A-Za-z0-9_-]{1,1024})$/s.exec(text) ?? []
  if (topic === '') throw new TopicError('ERR_LEASE', 'expected a lease as a receive answered it')
  return { topic, attempt: Number(attempt), receipt }
}
