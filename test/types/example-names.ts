/** The names that code blocks in the docstrings of src may use; `npm run lint` compiles them. */
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
import type { DelayClient, TopicClient } from '../../src/server/client/index.js'
import type { Journal, JournalOptions, JournalQueue, ShardedJournalQueue } from '../../src/server/index.js'
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

/** A client of the delay service, and a topic there. */
export declare const service: DelayClient
export declare const topic: TopicClient<{ order: number }>

/** A journal, and queues that are attached to it. */
export declare const createJournal: (options: JournalOptions) => Promise<Journal>
export declare const journal: Journal
export declare const journalled: JournalQueue<Mail>
export declare const journalledShards: ShardedJournalQueue<Mail>
export declare const signal: AbortSignal
