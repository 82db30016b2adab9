import { toError } from '../errors.js'
import type { ReliableMessage } from '../reliable/message.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import { nextTurn } from '../timing/pause.js'
import type { Assignment } from './assignment.js'

/** What one script acknowledges: of more, one error would hide what came of the others. */
const MOST = 1_000

/**
 * Acknowledges what was completed in one turn of the event loop together: with a promise for each of them a worker would spend more
 * on promises than on messages.
 */
export class Completions {
  readonly #onAnswer: (assignment: Assignment, answer: boolean | Error) => void
  #waiting: Assignment[] = []

  constructor(onAnswer: (assignment: Assignment, answer: boolean | Error) => void) {
    this.#onAnswer = onAnswer
  }

  add(assignment: Assignment): void {
    this.#waiting.push(assignment)
    if (this.#waiting.length === 1) void nextTurn().then(() => this.#flush())
  }

  #flush(): void {
    const byQueue = new Map<ReliableQueue, Assignment[]>()
    for (const assignment of this.#waiting) {
      const own = byQueue.get(assignment.queue)
      if (own === undefined) byQueue.set(assignment.queue, [assignment])
      else own.push(assignment)
    }
    this.#waiting = []
    for (const [queue, own] of byQueue) {
      for (let from = 0; from < own.length; from += MOST) void this.#send(queue, own.slice(from, from + MOST))
    }
  }

  async #send(queue: ReliableQueue, own: readonly Assignment[]): Promise<void> {
    const messages: readonly ReliableMessage[] = own.map(({ message }) => message)
    const answers = await queue.acknowledge(...messages).catch(toError)
    own.forEach((assignment, at) =>
      this.#onAnswer(assignment, answers instanceof Error ? answers : answers[at] === true),
    )
  }
}
