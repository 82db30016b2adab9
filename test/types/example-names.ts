/** What the code blocks in the docstrings of src may use without making it; `npm run lint` compiles them. */
import type {
  BlockingDeque,
  BlockingQueue,
  DelayedQueue,
  Deque,
  Queue,
  RedelayedClient,
  ReliableMessage,
  ReliableQueue,
  ShardedDelayedQueue,
  Ticket,
  Worker,
} from '../../src/index.js'
import type { TestKit } from '../../src/testing/index.js'

export interface Order {
  id: string
  amount: number
}
export interface Mail {
  to: string
}
export declare const client: RedelayedClient
export declare const order: Order
export declare const mail: Mail

export declare const queue: Queue<Order>
export declare const deque: Deque<Order>
/** Those whose consumers can wait. */
export declare const orders: BlockingQueue<Order>
export declare const blockingDeque: BlockingDeque<Order>
export declare const delayed: DelayedQueue<Order>
export declare const sharded: ShardedDelayedQueue<Order>
export declare const ticket: Ticket

export declare const mails: ReliableQueue<Mail>
export declare const message: ReliableMessage<Mail>
export declare const worker: Worker
export declare const kit: TestKit
export declare const signal: AbortSignal
