import type { Static } from 'typebox'
import type * as schemas from '../api/schemas.js'
import { pagesOf } from './pages.js'
import { assertGiven, sumOfParts } from './parts.js'
import type { CallOptions, Requests } from './requests.js'

/** Selects dead letters that match all given properties. */
export type DeadLetterFilter = Omit<Static<typeof schemas.BulkInput>, 'cursor' | 'dryRun'>
export type DeadLetter = Static<typeof schemas.DeadLetterList>['deadLetters'][number]

/** The dead letters of all topics of the key. */
export class DeadLetters {
  readonly #requests: Requests

  constructor(requests: Requests) {
    this.#requests = requests
  }

  /**
   * Yields the dead letters that match, by topic and time, without their bodies.
   *
   * @throws ProblemError `forbidden`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * for await (const { topic, id, reason } of service.deadLetters.find({ reason: 'timeout' })) console.log(topic, id, reason)
   * ```
   */
  find({ signal, ...filter }: DeadLetterFilter & CallOptions = {}): AsyncGenerator<DeadLetter, void> {
    assertGiven(filter)
    const query = Object.fromEntries(Object.entries(filter).map(([name, value]) => [name, String(value)]))
    return pagesOf(this.#requests, '/v1/dead-letters', 'deadLetters', { query, ...(signal && { signal }) })
  }

  /**
   * Counts the dead letters that match.
   *
   * @throws ProblemError `forbidden`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * console.log(await service.deadLetters.count({ topic: 'orders', since: Date.now() - 3_600_000 }))
   * ```
   */
  count({ signal, ...filter }: DeadLetterFilter & CallOptions = {}): Promise<number> {
    return this.#all('redrive', 'matched', { ...filter, dryRun: true }, signal)
  }

  /**
   * Moves the dead letters that match back; their attempts begin anew. Resolves with their number.
   *
   * @throws ProblemError `forbidden`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * console.log(await service.deadLetters.redrive({ reason: 'timeout' }))
   * ```
   */
  redrive({ signal, ...filter }: DeadLetterFilter & CallOptions = {}): Promise<number> {
    return this.#all('redrive', 'done', filter, signal)
  }

  /**
   * Deletes the dead letters that match; with `{}` all of them. Resolves with their number.
   *
   * @throws ProblemError `forbidden`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * console.log(await service.deadLetters.delete({ topic: 'orders', until: Date.now() - 30 * 86_400_000 }))
   * ```
   */
  delete({ signal, ...filter }: DeadLetterFilter & CallOptions): Promise<number> {
    return this.#all('delete', 'done', filter, signal)
  }

  #all(what: string, counted: 'matched' | 'done', filter: object, signal: AbortSignal | undefined): Promise<number> {
    return sumOfParts(filter, async (body) => {
      const path = `/v1/dead-letters/${what}`
      const part = await this.#requests.json<Static<typeof schemas.BulkOutput>>('POST', path, { body, signal })
      return { done: part[counted], cursor: part.cursor }
    })
  }
}
