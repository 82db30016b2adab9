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

/** Their elements are texts such as 'to ada'. */
export declare const queue: Queue<string>
export declare const deque: Deque<string>
export declare const blockingQueue: BlockingQueue<string>
export declare const blockingDeque: BlockingDeque<string>
export declare const delayed: DelayedQueue<string>
export declare const sharded: ShardedDelayedQueue<string>
export declare const ticket: Ticket

export declare const mails: ReliableQueue<Mail>
export declare const message: ReliableMessage<Mail>
export declare const worker: Worker
export declare const kit: TestKit
export declare const signal: AbortSignal
