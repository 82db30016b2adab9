import { InvalidArgumentError, inWords } from '../errors.js'
import { ReliableMessage } from '../reliable/message.js'
import { claimOf } from '../reliable/receipt.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import { placesOf } from './id-places.js'
import { allOf, groupBy, type ReliableShards } from './reliable-shards.js'

/** A message, or the receipt of one. */
type Handled<T> = ReliableMessage<T> | string

type Send<T> = (queue: ReliableQueue<T>, own: readonly Handled<T>[]) => Promise<boolean[]>

/** Acknowledges messages of several shards, or gives them back or extends them: one call for each shard, all concurrently. */
export class ShardAnswers<T> {
  readonly #shards: ReliableShards<T>
  readonly #byKey: ReadonlyMap<string, ReliableQueue<T>>

  constructor(shards: ReliableShards<T>) {
    this.#shards = shards
    this.#byKey = new Map(shards.queues.map((queue) => [queue.identity.keys.messages, queue]))
  }

  /** The shard that a message was polled from. */
  queueOf(message: ReliableMessage): ReliableQueue<T> {
    return this.#queueOf('message', message)
  }

  /** The answers in the order of the messages. */
  async send(messages: readonly Handled<T>[], send: Send<T>): Promise<boolean[]> {
    const answers = messages.map(() => false)
    let asked = messages.map((message, at) => ({ at, message, queues: this.#queuesOf(`messages[${at}]`, message) }))
    while (asked.length > 0) {
      const groups = groupBy(asked, ({ queues: [first] }) => first as ReliableQueue<T>)
      const sendTo = async ([queue, positions]: [ReliableQueue<T>, number[]]): Promise<void> => {
        const own = positions.flatMap((position) => asked[position] ?? [])
        const answered = await send(
          queue,
          own.map(({ message }) => message),
        )
        own.forEach(({ at }, position) => (answers[at] = answered[position] === true))
      }
      await allOf(Array.from(groups, sendTo))
      // a receipt does not name its shard, and an earlier number of shards may have put the message elsewhere
      asked = asked
        .filter(({ at, queues }) => answers[at] !== true && queues.length > 1)
        .map((one) => ({ ...one, queues: one.queues.slice(1) }))
    }
    return answers
  }

  /** The shard of a message; for a receipt, the shards where its message can be, the most likely one first. */
  #queuesOf(what: string, message: Handled<T>): readonly ReliableQueue<T>[] {
    if (typeof message !== 'string') return [this.#queueOf(what, message)]
    return placesOf(claimOf(what, message).id, this.#shards).map((shard) => this.#shards.at(shard))
  }

  #queueOf(what: string, message: unknown): ReliableQueue<T> {
    const isMessage = message instanceof ReliableMessage
    const queue = isMessage ? this.#byKey.get(message.queueKey) : undefined
    if (queue !== undefined) return queue
    const received = isMessage ? inWords('one of another queue') : message
    throw new InvalidArgumentError(what, 'a message that was polled from this queue', received)
  }
}
