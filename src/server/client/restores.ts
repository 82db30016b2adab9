import type { Static } from 'typebox'
import type * as schemas from '../api/schemas.js'
import type { CallOptions, Requests } from './requests.js'

export type Restore = Static<typeof schemas.RestoreOutput>

const ASK_MS = 500

/** Restores from the journal by hand. What Redis loses is put back without them. */
export class Restores {
  readonly #requests: Requests

  constructor(requests: Requests) {
    this.#requests = requests
  }

  /** Begins one: of one message, a topic, or all topics of the key. */
  start({ signal, ...what }: Static<typeof schemas.RestoreInput> & CallOptions = {}): Promise<Restore> {
    return this.#requests.json('POST', '/v1/restores', { body: what, signal })
  }

  /** How far one is. */
  get(id: string, { signal }: CallOptions = {}): Promise<Restore> {
    return this.#requests.json('GET', `/v1/restores/${encodeURIComponent(id)}`, { signal, isRepeatable: true })
  }

  /** The last ones, the newest first. */
  async list({ signal }: CallOptions = {}): Promise<Restore[]> {
    const { restores } = await this.#requests.json<Static<typeof schemas.RestoreList>>('GET', '/v1/restores', {
      signal,
      isRepeatable: true,
    })
    return restores
  }

  /** Resolves when one has ended, well or not: its `state` says so. */
  async ended(id: string, options: CallOptions = {}): Promise<Restore> {
    for (;;) {
      const restore = await this.get(id, options)
      if (restore.state !== 'running') return restore
      await new Promise((resolve) => setTimeout(resolve, ASK_MS))
      options.signal?.throwIfAborted()
    }
  }
}
