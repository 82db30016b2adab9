// The data of the benchmark: topics with messages that are due in the next day or overdue, dead letters, and an endpoint that fails.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { codecs, createClient } from '../../src/index.js'
import { HttpPool, type Target } from '../service-bench/http-client.js'

export interface Receiver {
  readonly port: number
  close(): void
}

const BATCH = 1_000
/** Of each batch so many are overdue. */
const OVERDUE = 10
const AT_ONCE = 8
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const DEAD_TOPICS = 20
const DEAD_EACH = 500

export const topicAt = (at: number, topics: number): string => `topic-${String(at % topics).padStart(5, '0')}`

/** Answers each webhook with the status 500. */
export async function startReceiver(): Promise<Receiver> {
  const server: Server = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      response.statusCode = 500
      response.end('the customer is not known')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

export async function makeTopics(pool: HttpPool, count: number): Promise<void> {
  await all(count, (at) => pool.call(`/v1/topics/${topicAt(at, count)}`, '{}', 'PUT'))
}

/** Messages over the topics, `BATCH` each, from the `from`th on: by the library, since ten million over HTTP take most of an hour. */
export async function addMessages(url: string, topics: number, from: number, to: number): Promise<void> {
  const client = createClient({ url })
  const codec = codecs.json()
  const first = Math.ceil(from / BATCH)
  try {
    await all(Math.ceil(to / BATCH) - first, async (at) => {
      const messages = Array.from({ length: BATCH }, (_, n) => ({
        payload: { n },
        delay: n < OVERDUE ? 0 : MINUTE_MS + ((((first + at) * BATCH + n) * 977) % DAY_MS),
      }))
      await client.getReliableQueue(topicAt((first + at) * 7, topics), { codec }).addMany(messages)
    })
  } finally {
    await client.shutdown()
  }
}

/** The same through the API, which writes each message into the journal first; one of a hundred has the business key of another. */
export async function pushMessages(pool: HttpPool, topics: number, from: number, to: number): Promise<void> {
  const first = Math.ceil(from / BATCH)
  await all(Math.ceil(to / BATCH) - first, async (at) => {
    const messages = Array.from({ length: BATCH }, (_, n) => ({
      ...{ id: `order-${(first + at) * BATCH + n}`, bizKey: `customer-${((first + at) * BATCH + n) % 99_991}` },
      ...{ body: { n }, delay: n < OVERDUE ? 0 : MINUTE_MS + ((((first + at) * BATCH + n) * 977) % DAY_MS) },
    }))
    await pool.call(`/v1/topics/${topicAt((first + at) * 7, topics)}/messages/batch`, JSON.stringify({ messages }))
  })
}

/** Messages that consumers have finished: only the journal has them. */
export async function addFinished(pool: HttpPool, isQuick: boolean): Promise<void> {
  await all(isQuick ? 2 : 20, async (at) => {
    const path = `/v1/topics/finished-${at}`
    const messages = Array.from({ length: BATCH }, (_, n) => ({ id: `finished-${n}`, bizKey: 'finished', body: { n } }))
    await pool.call(`${path}/messages/batch`, JSON.stringify({ messages }))
    for (let left = BATCH; left > 0;) {
      const received = await pool.call(`${path}/receive`, '{"max":100,"wait":1000}')
      const leases = (JSON.parse(received) as { messages: { lease: string }[] }).messages.map(({ lease }) => lease)
      if (leases.length === 0) throw new Error(`finished-${at} lacks ${left} messages`)
      await pool.call('/v1/leases/acknowledge', JSON.stringify({ leases }))
      left -= leases.length
    }
  })
}

/** Dead letters of topics that have an endpoint then, and a message whose webhooks have failed. Resolves with the endpoint. */
export async function addDeadLetters(pool: HttpPool, receiver: Receiver, isQuick: boolean): Promise<string> {
  const each = isQuick ? 20 : DEAD_EACH
  const url = `http://127.0.0.1:${receiver.port}/hook`
  const made = await pool.call('/v1/endpoints', JSON.stringify({ url, description: 'Billing' }))
  const { id } = JSON.parse(made) as { id: string }
  await all(DEAD_TOPICS, async (at) => {
    const path = `/v1/topics/dead-${at}`
    const messages = Array.from({ length: each }, (_, n) => ({ id: `order-${n}`, body: { n } }))
    await pool.call(`${path}/messages/batch`, JSON.stringify({ messages }))
    for (let left = each; left > 0;) {
      const received = await pool.call(`${path}/receive`, '{"max":100,"wait":1000}')
      const leases = (JSON.parse(received) as { messages: { lease: string }[] }).messages.map(({ lease }) => lease)
      if (leases.length === 0) throw new Error(`dead-${at} lacks ${left} messages`)
      await pool.call('/v1/leases/negative-acknowledge', JSON.stringify({ leases, reject: true, error: 'no customer' }))
      left -= leases.length
    }
    await pool.call(path, JSON.stringify({ endpoint: id }), 'PUT')
  })
  await pool.call('/v1/topics/hooks', JSON.stringify({ endpoint: id, deliveryLimit: 2, retryDelays: [1] }), 'PUT')
  await pool.call('/v1/topics/hooks/messages', JSON.stringify({ id: 'hook', body: {} }))
  return id
}

export function poolOf(target: Target): HttpPool {
  return new HttpPool(target)
}

/** Runs tasks, some of them at once. */
async function all(count: number, task: (at: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const run = async (): Promise<void> => {
    while (next < count) await task(next++)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, run))
}
