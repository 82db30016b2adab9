import { toError } from '../errors.js'
import type { ReliableMessage } from '../reliable/message.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import { MOST_HANDLED } from '../store/reliable-store.js'
import { TurnCollector } from '../timing/turn-collector.js'
import { COMPLETED, type Assignment, type Outcome } from './assignment.js'

interface Params {
  /** Whether results of handlers are kept. */
  readonly keepsResults: boolean
  /** A result cannot be encoded. */
  readonly onError: (error: unknown) => void
  /** Whether an outcome may be sent again after sending it failed. */
  readonly mayTryAgain: (outcome: Outcome) => boolean
  /** Redis has the outcome, or will never get it. */
  readonly onSettled: (assignment: Assignment, outcome: Outcome) => void
}

/**
 * Sends the outcomes of messages to Redis. Messages completed in one turn of the event loop are acknowledged together: with a promise
 * for each of them a worker would spend more on promises than on messages.
 */
export class Settlement {
  readonly #params: Params
  readonly #completed = new Map<ReliableQueue, TurnCollector<Assignment>>()

  constructor(params: Params) {
    this.#params = params
  }

  settle(assignment: Assignment, outcome: Outcome): void {
    if (outcome.is !== 'completed') return this.#send(assignment, outcome)
    if (this.#params.keepsResults) assignment.result = this.#resultOf(assignment, outcome.result)
    this.#completedOf(assignment.queue).add(assignment)
  }

  #completedOf(queue: ReliableQueue): TurnCollector<Assignment> {
    const known = this.#completed.get(queue)
    if (known !== undefined) return known
    const collector = new TurnCollector<Assignment>(
      (completed) => void this.#acknowledge(queue, completed),
      MOST_HANDLED,
    )
    this.#completed.set(queue, collector)
    return collector
  }

  async #acknowledge(queue: ReliableQueue, completed: readonly Assignment[]): Promise<void> {
    const messages = completed.map(({ message }) => message)
    const answers = await this.#acknowledgeAll(queue, messages, completed).catch(toError)
    completed.forEach((assignment, at) => {
      const answer = answers instanceof Error ? answers : answers[at] === true
      if (answer === true) this.#params.onSettled(assignment, COMPLETED)
      else this.#send(assignment, COMPLETED, answer)
    })
  }

  #acknowledgeAll(
    queue: ReliableQueue,
    messages: readonly ReliableMessage[],
    completed: readonly Assignment[],
  ): Promise<boolean[]> {
    if (!this.#params.keepsResults) return queue.acknowledge(...messages)
    return queue.complete(
      messages,
      completed.map(({ result }) => result),
    )
  }

  /** Encodes a result. One that the codec cannot encode is only reported: doing the work again would not help. */
  #resultOf({ queue }: Assignment, result: unknown): Buffer | null {
    try {
      return queue.resultOf(result)
    } catch (thrown) {
      this.#params.onError(thrown)
      return null
    }
  }

  /** `answer`: the result of an earlier attempt to send the outcome. */
  #send(assignment: Assignment, outcome: Outcome, answer?: boolean | Error): void {
    const mayTryAgain = (): boolean => this.#params.mayTryAgain(outcome)
    void assignment.settle(outcome, mayTryAgain, answer).then((end) => this.#params.onSettled(assignment, end))
  }
}
