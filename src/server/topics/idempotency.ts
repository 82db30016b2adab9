import { createHash } from 'node:crypto'
import { codecs, type RedelayedClient, type ReliableQueue } from 'redelayed'
import { pause } from '../pause.js'
import { TopicError } from './errors.js'
import type { NewMessage, Pushed } from './new-message.js'
import { RESERVED } from './topic-name.js'

/** For so long a key is known. */
export const KNOWN_MS = 86_400_000

/** What is kept of a request with an idempotency key. */
export interface KnownRequest {
  /** Of the message as it was given. */
  readonly print: string
  /** The message's id. */
  readonly id: string
  /** When it is due, epoch milliseconds. */
  readonly dueAt: number
  /** What was answered, once that is known. */
  readonly pushed?: Pushed
}

/** One request, and what is known of an earlier one with the same key. */
export interface Request {
  readonly known: KnownRequest
  readonly isRepeated: boolean
  /** Notes what is answered. */
  readonly answered: (pushed: Pushed) => Promise<void>
}

/**
 * The requests with an idempotency key: a delayed message for each, which becomes visible when the key may be forgotten, and is removed then.
 */
export class Idempotency {
  readonly #queue: ReliableQueue<KnownRequest>
  readonly #stop = new AbortController()
  #forgetting: Promise<void> | undefined

  constructor(client: RedelayedClient) {
    this.#queue = client.getReliableQueue<KnownRequest>(`${RESERVED}idempotency`, {
      codec: codecs.json<KnownRequest>(),
    })
  }

  /** Begins to forget keys whose time is over. */
  start(onError: (error: unknown) => void): void {
    this.#forgetting ??= this.#forget(onError)
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#forgetting
  }

  /** @throws TopicError ERR_IDEMPOTENCY_MISMATCH the key came before with another message */
  async begin(
    scope: readonly string[],
    message: NewMessage,
    first: { readonly id: string; readonly dueAt: number },
  ): Promise<Request> {
    const key = digestOf(scope)
    const known: KnownRequest = { print: digestOf([canonical(message)]), ...first }
    const answered = async (pushed: Pushed): Promise<void> => {
      await this.#queue.updatePayload(key, { ...known, id: pushed.id, pushed })
    }
    const { outcome } = await this.#queue.add(known, { id: key, delay: KNOWN_MS, existing: 'keep' })
    const earlier = outcome === 'kept' ? await this.#queue.get(key) : null
    if (earlier === null) return { known, isRepeated: false, answered }
    if (earlier.payload.print !== known.print) {
      throw new TopicError('ERR_IDEMPOTENCY_MISMATCH', 'this Idempotency-Key came before with another message')
    }
    return { known: earlier.payload, isRepeated: true, answered }
  }

  async #forget(onError: (error: unknown) => void): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      try {
        await this.#queue.pollMany({ count: 500, timeout: Infinity, acknowledge: 'auto', signal })
      } catch (thrown) {
        if (signal.aborted) return
        onError(thrown)
        await pause(1_000, signal)
      }
    }
  }
}

/** The same text for the same message, whatever the order of its names. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => {
    if (typeof each !== 'object' || each === null || Array.isArray(each)) return each
    return Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}

function digestOf(texts: readonly string[]): string {
  const hash = createHash('sha256')
  for (const text of texts) hash.update(`${Buffer.byteLength(text)}:`).update(text)
  return hash.digest('base64url')
}
