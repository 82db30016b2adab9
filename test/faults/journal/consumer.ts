// A process of the journal's fault bench that handles messages, and says of each what it did.
import {
  codecs,
  createClient,
  type RedelayedClient,
  type ReliableMessage,
  type ReliableQueue,
  type Worker,
} from '../../../src/index.js'
import { VISIBILITY_MS, type Job, type Order, type Payload } from './protocol.js'
import { digestOf, machineNow, say, serve } from './serve.js'

const LOOPS = 4
const TAKE = 3
const HANDLING_MS = 15
const RETRY_MS = 100
const AGAIN_MS = 100
/** Parked messages are due long after the end of the run. */
const PARKED_MS = 7_200_000

let client: RedelayedClient | undefined
const ending = new AbortController()
let loops: Promise<void>[] = []
let worker: Worker | undefined

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

/** The worker waits before the next delivery of a message that fails with this. */
class Failure extends Error {
  readonly delay: number

  constructor({ kind }: Payload, attempt: number) {
    super(`${kind} ${attempt}`)
    this.delay = kind === 'park' ? PARKED_MS : AGAIN_MS
  }
}

/** Consumes as an application that leaves everything to a worker. */
function work(from: RedelayedClient, queue: ReliableQueue<Payload>): Worker {
  // by id: a message that comes again meanwhile is another delivery
  const taken = new Map<string, { readonly lease: string; readonly how: 'done' | 'failed' }>()
  const made = from.createWorker(
    queue,
    async (_, { message }) => {
      const how = await take(message)
      taken.set(`${message.id} ${message.attempt}`, { lease: message.delivery, how })
      if (how === 'failed') throw new Failure(message.payload, message.attempt)
    },
    {
      concurrency: LOOPS * TAKE,
      visibilityTimeout: VISIBILITY_MS,
      backoff: (_, error) => (error instanceof Failure ? error.delay : AGAIN_MS),
    },
  )
  made.on('error', (error) => say({ said: 'error', code: error.code }))
  from.on('settled', ({ id, attempt, outcome }) => {
    const known = taken.get(`${id} ${attempt}`)
    taken.delete(`${id} ${attempt}`)
    if (known === undefined || outcome === 'released') return
    // of a lost one an attempt to answer may have had its effect, although the reply was lost
    say({ said: 'answered', id, ...known, effect: outcome === 'lost' ? null : true, at: machineNow() })
  })
  return made
}

async function handle(message: ReliableMessage<Payload>): Promise<void> {
  const how = await take(message)
  const { id, delivery: lease } = message
  const effect = await answer(message, how).catch(() => null)
  say({ said: 'answered', id, lease, how, effect, at: machineNow() })
}

/** Handles a message; resolves with how that went. */
async function take(message: ReliableMessage<Payload>): Promise<'done' | 'failed'> {
  const { id, delivery: lease, attempt, visibleAt, polledAt, priority, headers, payload } = message
  const at = machineNow()
  say({ said: 'claimed', id, lease, attempt, visibleAt, polledAt, priority, headers, digest: digestOf(payload), at })
  await pause(Math.random() * HANDLING_MS)
  const { kind } = payload
  const fails = kind === 'poison' || kind === 'park' || (kind === 'fail' && attempt === 1)
  return fails ? 'failed' : 'done'
}

function answer(message: ReliableMessage<Payload>, how: 'done' | 'failed'): Promise<boolean> {
  if (how === 'done') return message.acknowledge()
  const delay = message.payload.kind === 'park' ? PARKED_MS : AGAIN_MS
  return message.negativeAcknowledge({ delay, error: new Error(`${message.payload.kind} ${message.attempt}`) })
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function start({ name, client: options, queue, isWorker }: Job): void {
  const made = createClient({ ...options, codec: codecs.json(), ioredis: { ...options.ioredis, connectionName: name } })
  made.on('error', (error) => say({ said: 'error', code: error.code }))
  client = made
  const known = made.getReliableQueue<Payload>(queue)
  if (isWorker) worker = work(made, known)
  else loops = Array.from({ length: LOOPS }, () => consume(known))
}

serve(async (order: Order) => {
  if (order.kind === 'start') start(order.job)
  if (order.kind === 'stop') {
    ending.abort()
    await Promise.all(loops)
    await worker?.close()
    await client?.shutdown()
  }
})
