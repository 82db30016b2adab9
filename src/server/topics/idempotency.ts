import { createHash } from 'node:crypto'
import { codecs, QueueFullError, type RedelayedClient, type ShardedReliableQueue } from 'redelayed'
import { pause } from '../pause.js'
import { TopicError } from './errors.js'
import type { Pushed } from './new-message.js'
import { RESERVED } from './topic-name.js'

/** The number of queues that hold the keys, so that all masters of a cluster have some. It must not change. */
const SHARDS = 8
/** How often to store a key that is removed before it is read: only another program removes keys that fast. */
const MOST_ROUNDS = 10

export interface IdempotencyOptions {
  /** How long a key is known, in milliseconds. */
  readonly idempotencyPeriod: number
  /** About how many keys can be known at once: each shard has its part. */
  readonly maxIdempotencyKeys: number
}

/** A topic that the message goes to. */
export interface Place {
  readonly topic: string
  /** When the message is due there, epoch milliseconds; `null` if the topic decides and could not be asked. */
  readonly dueAt: number | null
}

/** The stored part of a request with an idempotency key. */
export interface KnownRequest {
  /** The digest of the request. */
  readonly print: string
  /** The message's id. */
  readonly id: string
  readonly places: readonly Place[]
  /** The answer for each place, once all of them have the message. */
  readonly pushed?: readonly Pushed[]
}

/** A request, or the earlier one with the same key. */
export interface Request {
  readonly known: KnownRequest
  readonly isRepeated: boolean
  /** Stores the answer. */
  readonly answered: (pushed: readonly Pushed[]) => Promise<void>
}

/**
 * The requests with an idempotency key: each is a delayed message, which becomes visible when the key may be forgotten, and is then
 * removed.
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

  /** How long a key is known, in milliseconds. */
  get knownMs(): number {
    return this.#options.idempotencyPeriod
  }

  /** Starts to forget expired keys. */
  async start(onError: (error: unknown) => void): Promise<void> {
    await this.#queue.setConfig({ maxSize: Math.ceil(this.#options.maxIdempotencyKeys / SHARDS) })
    this.#forgetting ??= this.#forget(onError)
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#forgetting
  }

  /**
   * @throws TopicError ERR_IDEMPOTENCY_MISMATCH the key was used with another message before; ERR_TOO_MANY_KEYS the key has no room, and
   *   nothing was done; ERR_IDEMPOTENCY_KEY_REMOVED another program removes the key, and nothing was done
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
    // a key that is forgotten between the two calls is stored anew
    for (let round = 0; earlier === null; round++) {
      if (round === MOST_ROUNDS)
        throw new TopicError(
          'ERR_IDEMPOTENCY_KEY_REMOVED',
          'this Idempotency-Key was stored and removed again and again; nothing was done',
        )
      if (await this.#isNew(key, known)) return { known, isRepeated: false, answered }
      earlier = await this.#queue.get(key)
    }
    if (earlier.payload.print !== known.print) {
      throw new TopicError('ERR_IDEMPOTENCY_MISMATCH', 'this Idempotency-Key was used with another message before')
    }
    return { known: earlier.payload, isRepeated: true, answered }
  }

  /** The earlier request and its answer; `undefined` if they are not known. */
  async answered(scope: readonly string[], request: unknown): Promise<KnownRequest | undefined> {
    const earlier = (await this.#queue.get(digestOf(scope)))?.payload
    return earlier?.pushed !== undefined && earlier.print === digestOf([canonical(request)]) ? earlier : undefined
  }

  /** Stores the request, unless its key has one. */
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

/** The same text for the same message, whatever the order of its properties. */
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
