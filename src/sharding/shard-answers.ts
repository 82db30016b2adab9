import { InvalidArgumentError, inWords } from '../errors.js'
import { ReliableMessage } from '../reliable/message.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import { allOf, groupBy, type ReliableShards } from './reliable-shards.js'

type Send<T> = (queue: ReliableQueue<T>, own: readonly ReliableMessage<T>[]) => Promise<boolean[]>

/** Acknowledges messages of several shards, or answers them otherwise: each shard gets one call for its own, all side by side. */
export class ShardAnswers<T> {
  readonly #byKey: ReadonlyMap<string, ReliableQueue<T>>

  constructor({ queues }: ReliableShards<T>) {
    this.#byKey = new Map(queues.map((queue) => [queue.identity.keys.messages, queue]))
  }

  /** The shard that a message was polled from. */
  queueOf(message: ReliableMessage): ReliableQueue<T> {
    return this.#queueOf('message', message)
  }

  /** The answers in the order of the messages. */
  async send(messages: readonly ReliableMessage<T>[], send: Send<T>): Promise<boolean[]> {
    const groups = groupBy(messages, (message, at) => this.#queueOf(`messages[${at}]`, message))
    const answers = new Array<boolean>(messages.length)
    const sendTo = async ([queue, indexes]: [ReliableQueue<T>, number[]]): Promise<void> => {
      const own = indexes.flatMap((at) => messages[at] ?? [])
      const answered = await send(queue, own)
      indexes.forEach((at, position) => (answers[at] = answered[position] === true))
    }
    await allOf(Array.from(groups, sendTo))
    return answers
  }

  #queueOf(what: string, message: unknown): ReliableQueue<T> {
    const isMessage = message instanceof ReliableMessage
    const queue = isMessage ? this.#byKey.get(message.queueKey) : undefined
    if (queue !== undefined) return queue
    const received = isMessage ? inWords('one of another queue') : message
    throw new InvalidArgumentError(what, 'a message that was polled from this queue', received)
  }
}
