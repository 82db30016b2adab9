import { InvalidArgumentError } from 'redelayed'
import { TopicError } from './errors.js'
import { readLease, type Lease } from './lease.js'
import type { NegativeAnswer, Topic } from './topic.js'

/** The answer to a lease. */
export type LeaseAnswer = 'ok' | 'lost'

/** Answers for leased messages, of several topics in one call. @throws TopicError ERR_LEASE one of the leases is not valid */
export class Leases {
  readonly #find: (topic: string) => Promise<Topic | undefined>

  constructor(find: (topic: string) => Promise<Topic | undefined>) {
    this.#find = find
  }

  acknowledge(leases: readonly string[]): Promise<LeaseAnswer[]> {
    return this.#answer(leases, (topic, own) => topic.acknowledge(own.map(({ receipt }) => receipt)))
  }

  extend(leases: readonly string[], visibilityTimeout?: number): Promise<LeaseAnswer[]> {
    return this.#answer(leases, (topic, own) =>
      topic.extend(
        own.map(({ receipt }) => receipt),
        visibilityTimeout,
      ),
    )
  }

  negativeAcknowledge(leases: readonly string[], answer: NegativeAnswer): Promise<LeaseAnswer[]> {
    return this.#answer(leases, (topic, own) =>
      Promise.all(own.map((lease) => topic.negativeAcknowledge(lease, answer))),
    )
  }

  async #answer(
    leases: readonly string[],
    send: (topic: Topic, own: readonly Lease[]) => Promise<boolean[]>,
  ): Promise<LeaseAnswer[]> {
    const answers = leases.map((): LeaseAnswer => 'lost')
    const byTopic = new Map<string, { lease: Lease; at: number }[]>()
    leases.map(readLease).forEach((lease, at) => {
      byTopic.set(lease.topic, [...(byTopic.get(lease.topic) ?? []), { lease, at }])
    })
    await Promise.all(
      Array.from(byTopic, async ([name, own]) => {
        const topic = await this.#find(name)
        if (topic === undefined) return // the topic was deleted with its messages
        const done = await send(
          topic,
          own.map(({ lease }) => lease),
        ).catch((thrown: unknown) => {
          if (!(thrown instanceof InvalidArgumentError)) throw thrown
          throw new TopicError('ERR_LEASE', 'one of the leases is not valid')
        })
        own.forEach(({ at }, position) => (answers[at] = done[position] === true ? 'ok' : 'lost'))
      }),
    )
    return answers
  }
}
