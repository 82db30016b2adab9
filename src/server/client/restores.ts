import type { Static } from 'typebox'
import type * as schemas from '../api/schemas.js'
import type { CallOptions, Requests } from './requests.js'

export type Restore = Static<typeof schemas.RestoreOutput>

const ASK_MS = 500

/** Restores from the journal by hand. The service puts back what Redis loses also without them. */
export class Restores {
  readonly #requests: Requests

  constructor(requests: Requests) {
    this.#requests = requests
  }

  /**
   * Starts a restore of one message, a topic, or all topics of the key.
   *
   * @throws ProblemError `no-journal`, `topic-not-found` or `too-many-restores`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const { id } = await service.restores.start({ topic: 'orders' })
   * console.log((await service.restores.ended(id)).state)
   * ```
   */
  start({ signal, ...what }: Static<typeof schemas.RestoreInput> & CallOptions = {}): Promise<Restore> {
    return this.#requests.json('POST', '/v1/restores', { body: what, signal })
  }

  /**
   * The progress of a restore.
   *
   * @throws ProblemError `restore-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * console.log((await service.restores.get('the id of a restore')).state)
   * ```
   */
  get(id: string, { signal }: CallOptions = {}): Promise<Restore> {
    return this.#requests.json('GET', `/v1/restores/${encodeURIComponent(id)}`, { signal, isRepeatable: true })
  }

  /**
   * The last restores, the newest first.
   *
   * @throws ProblemError, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * for (const { id, state } of await service.restores.list()) console.log(id, state)
   * ```
   */
  async list({ signal }: CallOptions = {}): Promise<Restore[]> {
    const { restores } = await this.#requests.json<Static<typeof schemas.RestoreList>>('GET', '/v1/restores', {
      signal,
      isRepeatable: true,
    })
    return restores
  }

  /**
   * Resolves when a restore has ended; its `state` says how.
   *
   * @throws ProblemError `restore-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const { id } = await service.restores.start()
   * console.log((await service.restores.ended(id)).state)
   * ```
   */
  async ended(id: string, options: CallOptions = {}): Promise<Restore> {
    for (;;) {
      const restore = await this.get(id, options)
      if (restore.state !== 'running') return restore
      await new Promise((resolve) => setTimeout(resolve, ASK_MS))
      options.signal?.throwIfAborted()
    }
  }
}
