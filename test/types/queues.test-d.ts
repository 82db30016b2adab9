/** The uses of queues that the types allow and refuse. Nothing here runs: `npm run lint` compiles it. */
import {
  codecs,
  createClient,
  dueOf,
  type BlockingDeque,
  type BlockingQueue,
  type Codec,
  type DelayedQueue,
  type Deque,
  type Queue,
  type ShardedDelayedQueue,
  type Ticket,
} from '../../src/index.js'
import { is } from './is.js'

interface Order {
  readonly id: string
  readonly amount: number
}
const order: Order = { id: 'a', amount: 1 }
const client = createClient({ url: 'redis://127.0.0.1:6379' })
const queue = client.getBlockingQueue<Order>('orders')
const delayed = client.getDelayedQueue(queue)

export async function results(): Promise<void> {
  is<BlockingQueue<Order>>()(queue)
  is<DelayedQueue<Order>>()(delayed)
  is<Queue<Order>>()(client.getQueue<Order>('orders'))
  is<Deque<Order>>()(client.getDeque<Order>('orders'))
  is<BlockingDeque<Order>>()(client.getBlockingDeque<Order>('orders'))
  is<BlockingQueue>()(client.getBlockingQueue('orders'))

  is<Order>()(await queue.take())
  is<Order | null>()(await queue.poll())
  is<Order | null>()(await queue.poll(5_000))
  is<Order | null>()(await queue.poll(5, 'seconds', { signal: AbortSignal.timeout(1) }))
  is<Order | null>()(await queue.poll(5, { signal: AbortSignal.timeout(1) }))
  is<Order[]>()(await queue.takeMany(10, { timeout: 100 }))
  is<Order[]>()(await queue.readAll())
  for await (const each of queue) is<Order>()(each)

  // `poll` of a queue that cannot wait takes several at once: its number is no timeout
  is<Order | null>()(await client.getQueue<Order>('orders').poll())
  is<Order[]>()(await client.getQueue<Order>('orders').poll(5))
  is<Order | null>()(await delayed.poll())
  is<Order[]>()(await delayed.poll(5))

  // @ts-expect-error without waiting there may be no element
  const sure: Order = await queue.poll()
  // @ts-expect-error nor within a time limit
  const inTime: Order = await queue.poll(5_000)
  void [sure, inTime]
}

export async function tickets(): Promise<void> {
  const ticket = await delayed.offer(order, 5_000)
  is<Ticket>()(ticket)
  is<Ticket>()(await delayed.offer(order, 5, 'seconds'))
  is<Ticket>()(await delayed.offerAt(order, new Date()))
  is<Ticket[]>()(await delayed.offerAll([{ value: order, delay: 1 }]))
  is<boolean>()(await delayed.cancel(ticket))
  is<Ticket | null>()(await delayed.reschedule(ticket, 60_000))
  is<number>()(dueOf(ticket))

  // @ts-expect-error the ticket, not the payload
  await delayed.cancel(order)
  // @ts-expect-error
  await delayed.reschedule(order, 1)
}

export async function payloads(): Promise<void> {
  await queue.offer(order)
  // @ts-expect-error a string is no order
  await queue.offer('a')
  // @ts-expect-error
  await delayed.offer({ id: 'a' }, 5_000)
  // @ts-expect-error
  await delayed.offerAll([{ value: 1, delay: 1 }])
  // @ts-expect-error
  await queue.contains(1)
  // @ts-expect-error the type of the codec's values
  client.getQueue<Order>('orders', { codec: codecs.string() })
  is<Codec<string>>()(codecs.string())
  is<Queue<string>>()(client.getQueue('names', { codec: codecs.string() }))
}

export async function numbersAndUnits(): Promise<void> {
  // @ts-expect-error there is no such unit
  await delayed.offer(order, 5, 'fortnights')
  // @ts-expect-error
  await queue.poll(5, 'years')
  await delayed.offer(order, '5s')
  await delayed.offer(order, '1.5h', { durability: { replicas: 1, timeoutMs: '5s' } })
  await queue.poll('15m')
  // @ts-expect-error a duration has one of the units ms, s, m, h and d
  await delayed.offer(order, '5min')
  // @ts-expect-error
  await queue.poll('soon')
  // @ts-expect-error a delay is not left out
  await delayed.offer(order)
}

export function options(): void {
  client.getDelayedQueue(queue, { layout: 'redisson' })
  client.getDelayedQueue(queue, { layout: 'compact' })
  // @ts-expect-error there are two layouts
  client.getDelayedQueue(queue, { layout: 'list' })
  // @ts-expect-error
  client.getDelayedQueue(queue, { order: 'none' })
  // @ts-expect-error
  client.getBlockingQueue('orders', { consumerDelivers: false })
  // @ts-expect-error only what can wait has it
  client.getQueue('orders', { consumersDeliver: false })
  // @ts-expect-error
  createClient({ uri: 'redis://127.0.0.1' })
  // @ts-expect-error
  createClient({ clock: 'atomic' })
  createClient({ sweepInterval: '5s' })
  // @ts-expect-error a text has a unit
  createClient({ sweepInterval: '5000' })
  // @ts-expect-error the number of shards is not left out
  client.getShardedDelayedQueue('orders', {})
  is<ShardedDelayedQueue<Order>>()(client.getShardedDelayedQueue<Order>('orders', { shards: 4 }))
}

export function kinds(): void {
  const needsBlocking = (_: BlockingQueue<Order>): void => {}
  const needsQueue = (_: Queue<Order>): void => {}
  const needsDeque = (_: Deque<Order>): void => {}
  const deque = client.getBlockingDeque<Order>('orders')

  needsBlocking(deque)
  needsDeque(client.getDeque<Order>('orders'))
  client.getDelayedQueue(deque)
  client.getDelayedQueue(client.getQueue<Order>('orders'))
  // @ts-expect-error it cannot wait
  needsBlocking(client.getQueue<Order>('orders'))
  // @ts-expect-error it has one end only
  needsDeque(queue)
  // @ts-expect-error its `poll(n)` waits instead of taking n
  needsQueue(queue)
  // @ts-expect-error other payloads
  needsBlocking(client.getBlockingQueue<string>('names'))
  // @ts-expect-error a destination is a queue, not its name
  client.getDelayedQueue('orders')
  // @ts-expect-error nor a delayed queue
  client.getDelayedQueue(delayed)
}

export function events(): void {
  client.on('transferred', ({ queue, count, maxLatenessMs }) => {
    is<string>()(queue)
    is<number>()(count)
    is<number>()(maxLatenessMs)
  })
  client.on('error', (error) => is<string>()(error.code))
  // @ts-expect-error there is no such event
  client.on('handled', () => {})
  // @ts-expect-error
  client.on('transferred', ({ lateness }) => lateness)
}
