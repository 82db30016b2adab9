// A process of the journal's fault bench that handles messages, and says of each what it did.
import {
  codecs,
  createClient,
  type RedelayedClient,
  type ReliableMessage,
  type ReliableQueue,
} from '../../../src/index.js'
import type { Job, Order, Payload } from './protocol.js'
import { digestOf, machineNow, say, serve } from './serve.js'

const LOOPS = 4
const TAKE = 3
const VISIBILITY_MS = 3_000
const HANDLING_MS = 15
const RETRY_MS = 100
const AGAIN_MS = 100
/** Parked messages are due long after the end of the run. */
const PARKED_MS = 7_200_000

let client: RedelayedClient | undefined
const ending = new AbortController()
let loops: Promise<void>[] = []

async function consume(queue: ReliableQueue<Payload>): Promise<void> {
  const { signal } = ending
  while (!signal.aborted) {
    try {
      const messages = await queue.pollMany({ count: TAKE, timeout: 5_000, visibilityTimeout: VISIBILITY_MS, signal })
      await Promise.all(messages.map((message) => handle(message)))
    } catch (error) {
      if (signal.aborted) return
      say({ said: 'error', code: String((error as { code?: string }).code ?? error) })
      await pause(RETRY_MS)
    }
  }
}

async function handle(message: ReliableMessage<Payload>): Promise<void> {
  const { id, delivery: lease, attempt, visibleAt, polledAt, priority, headers, payload } = message
  const at = machineNow()
  say({ said: 'claimed', id, lease, attempt, visibleAt, polledAt, priority, headers, digest: digestOf(payload), at })
  await pause(Math.random() * HANDLING_MS)
  const { kind } = payload
  const fails = kind === 'poison' || kind === 'park' || (kind === 'fail' && attempt === 1)
  const how = fails ? 'failed' : 'done'
  const effect = await answer(message, how).catch(() => null)
  say({ said: 'answered', id, lease, how, effect, at: machineNow() })
}

function answer(message: ReliableMessage<Payload>, how: 'done' | 'failed'): Promise<boolean> {
  if (how === 'done') return message.acknowledge()
  const delay = message.payload.kind === 'park' ? PARKED_MS : AGAIN_MS
  return message.negativeAcknowledge({ delay, error: new Error(`${message.payload.kind} ${message.attempt}`) })
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function start({ name, client: options, queue }: Job): void {
  const made = createClient({ ...options, codec: codecs.json(), ioredis: { ...options.ioredis, connectionName: name } })
  made.on('error', (error) => say({ said: 'error', code: error.code }))
  client = made
  loops = Array.from({ length: LOOPS }, () => consume(made.getReliableQueue<Payload>(queue)))
}

serve(async (order: Order) => {
  if (order.kind === 'start') start(order.job)
  if (order.kind === 'stop') {
    ending.abort()
    await Promise.all(loops)
    await client?.shutdown()
  }
})
