import { createHash } from 'node:crypto'
import { codecs, QueueFullError, type RedelayedClient, type ShardedReliableQueue } from 'redelayed'
import { pause } from '../pause.js'
import { TopicError } from './errors.js'
import type { Pushed } from './new-message.js'
import { RESERVED } from './topic-name.js'

/** Over so many queues the keys are spread, so that all masters of a cluster have some. It stays. */
const SHARDS = 8

export interface IdempotencyOptions {
  /** For so long a key is known, in milliseconds. */
  readonly idempotencyPeriod: number
  /** How many are known at once, about: each shard has its part. */
  readonly maxIdempotencyKeys: number
}

/** A topic that the message goes to. */
export interface Place {
  readonly topic: string
  /** When it is due there, epoch milliseconds; `null` where the topic decides, and could not be asked. */
  readonly dueAt: number | null
}

/** What is kept of a request with an idempotency key. */
export interface KnownRequest {
  /** Of the request as it was given. */
  readonly print: string
  /** The message's id. */
  readonly id: string
  readonly places: readonly Place[]
  /** What was answered of each place, once all of them have the message. */
  readonly pushed?: readonly Pushed[]
}

/** One request, and what is known of an earlier one with the same key. */
export interface Request {
  readonly known: KnownRequest
  readonly isRepeated: boolean
  /** Notes what is answered. */
  readonly answered: (pushed: readonly Pushed[]) => Promise<void>
}

/**
 * The requests with an idempotency key: a delayed message for each, which becomes visible when the key may be forgotten, and is removed then.
 */
export class Idempotency {
  readonly #queue: ShardedReliableQueue<KnownRequest>
  readonly #options: IdempotencyOptions
  readonly #stop = new AbortController()
  #forgetting: Promise<void> | undefined

  constructor(client: RedelayedClient, options: IdempotencyOptions) {
    this.#options = options
    this.#queue = client.getShardedReliableQueue<KnownRequest>(`${RESERVED}idempotency-keys`, {
      codec: codecs.json<KnownRequest>(),
      shards: SHARDS,
    })
  }

  /** For so long a key is known. */
  get knownMs(): number {
    return this.#options.idempotencyPeriod
  }

  /** Begins to forget keys whose time is over. */
  async start(onError: (error: unknown) => void): Promise<void> {
    await this.#queue.setConfig({ maxSize: Math.ceil(this.#options.maxIdempotencyKeys / SHARDS) })
    this.#forgetting ??= this.#forget(onError)
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#forgetting
  }

  /**
   * @throws TopicError ERR_IDEMPOTENCY_MISMATCH the key came before with another message; ERR_TOO_MANY_KEYS there is no room for it, and nothing
   *   was done
   */
  async begin(
    scope: readonly string[],
    request: unknown,
    first: Pick<KnownRequest, 'id' | 'places'>,
  ): Promise<Request> {
    const key = digestOf(scope)
    const known: KnownRequest = { print: digestOf([canonical(request)]), ...first }
    let earlier: { readonly payload: KnownRequest } | null = null
    const answered = async (pushed: readonly Pushed[]): Promise<void> => {
      await this.#queue.updatePayload(key, { ...(earlier?.payload ?? known), pushed })
    }
    // one that is forgotten between the two is begun anew
    while (earlier === null) {
      if (await this.#isNew(key, known)) return { known, isRepeated: false, answered }
      earlier = await this.#queue.get(key)
    }
    if (earlier.payload.print !== known.print) {
      throw new TopicError('ERR_IDEMPOTENCY_MISMATCH', 'this Idempotency-Key came before with another message')
    }
    return { known: earlier.payload, isRepeated: true, answered }
  }

  /** Notes the request, where there is none under its key. */
  async #isNew(key: string, known: KnownRequest): Promise<boolean> {
    try {
      return (await this.#queue.add(known, { id: key, delay: this.knownMs, existing: 'keep' })).outcome === 'added'
    } catch (thrown) {
      if (!(thrown instanceof QueueFullError)) throw thrown
      throw new TopicError('ERR_TOO_MANY_KEYS', 'nothing was done; a key is forgotten when its period is over')
    }
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
