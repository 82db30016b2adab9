import type { Static } from 'typebox'
import type * as schemas from '../api/schemas.js'
import { ProblemError } from './errors.js'
import { pagesOf } from './pages.js'
import { sumOfParts } from './parts.js'
import { pause } from '../pause.js'
import { isPassing, pauseAfter, type CallOptions, type Requests } from './requests.js'

type Of<T, K> = Omit<K, 'body'> & { readonly body?: T }

/** A message to push. Without an `id` the client draws one, so that the push can be repeated. */
export type Push<T> = Of<T, Static<typeof schemas.MessageInput>>
export type Pushed = Static<typeof schemas.PushedOutput>
export type MessageChange<T> = Of<T, Static<typeof schemas.MessageChange>>
/** A message with the lease of this consumer. */
export type Received<T> = Of<T, Static<typeof schemas.ReceiveOutput>['messages'][number]>
/** A message as `get` shows it. */
export type Shown<T> = Of<T, Static<typeof schemas.MessageOutput>>
export type ReceiveOptions = Static<typeof schemas.ReceiveInput>
export type TopicSettings = Static<typeof schemas.TopicInput>
export type TopicInfo = Static<typeof schemas.TopicOutput>

/** The messages that `purge` removes: those with the given ids, or all that match the given properties. */
export type PurgeWhich = Omit<Static<typeof schemas.PurgeInput>, 'what' | 'cursor' | 'ids'> & {
  readonly ids?: readonly string[]
}

/** The dead letters that `redrive` moves: the oldest, those with the given ids, or at most `count` that match the given properties. */
export type RedriveWhich = Omit<Static<typeof schemas.RedriveInput>, 'cursor' | 'dryRun' | 'ids'> & {
  readonly ids?: readonly string[]
}

const DEFAULT_WAIT_MS = 30_000

/** One topic. Methods reject with a `ProblemError`, a `NoAnswerError`, or the reason of their signal. */
export class TopicClient<T> {
  readonly name: string
  readonly #requests: Requests
  readonly #path: string

  constructor(requests: Requests, name: string) {
    this.name = name
    this.#requests = requests
    this.#path = `/v1/topics/${encodeURIComponent(name)}`
  }

  /**
   * Resolves when the service has accepted the message. The client repeats the push until there is an answer, as often as `retries` says.
   *
   * @throws ProblemError `topic-not-found`, `topic-full`, `topic-paused` or `message-too-large`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * await topic.push({ id: 'close:7', delay: 1_800_000, body: { order: 7 } })
   * ```
   */
  push(
    message: Push<T>,
    { signal, idempotencyKey }: CallOptions & { readonly idempotencyKey?: string } = {},
  ): Promise<Pushed> {
    const hasKey = idempotencyKey !== undefined
    return this.#requests.json('POST', `${this.#path}/messages`, {
      // with an idempotency key all attempts must be equal, also those of another call
      body: hasKey ? message : withId(message),
      ...(hasKey && { headers: { 'idempotency-key': idempotencyKey } }),
      ...{ signal, isRepeatable: true },
    })
  }

  /**
   * Pushes many messages with one request; resolves with the outcome of each, in order.
   *
   * @throws ProblemError `topic-not-found` or `body-too-large`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const results = await topic.pushMany([{ body: { order: 7 } }, { body: { order: 8 }, delay: 5_000 }])
   * console.log(results.filter((result) => result instanceof Error))
   * ```
   */
  async pushMany(messages: readonly Push<T>[], { signal }: CallOptions = {}): Promise<(Pushed | ProblemError)[]> {
    const { results } = await this.#requests.json<{ results: (Pushed | { problem: Partial<ProblemError> })[] }>(
      'POST',
      `${this.#path}/messages/batch`,
      { body: { messages: messages.map(withId) }, signal, isRepeatable: true },
    )
    return results.map((result) => {
      if (!('problem' in result)) return result
      const { problem } = result as { problem: ConstructorParameters<typeof ProblemError>[0] }
      return new ProblemError(problem)
    })
  }

  /**
   * Receives due messages; with `wait` it waits for the first ones. An abort gives back messages that were on their way.
   *
   * @throws ProblemError `topic-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * for (const message of await topic.receive({ max: 10, wait: 30_000 })) {
   *   console.log(message.body?.order)
   *   await service.acknowledge([message])
   * }
   * ```
   */
  async receive({ signal, ...options }: ReceiveOptions & CallOptions = {}): Promise<Received<T>[]> {
    const call = { body: options, signal, wait: options.wait }
    const { messages } = await this.#requests.json<{ messages: Received<T>[] }>('POST', `${this.#path}/receive`, call)
    return messages
  }

  /**
   * Yields messages as they become due, until the signal aborts. Acknowledge each of them. It asks for one at a time unless `max` is given;
   * the messages of one answer are leased together. While the service does not answer, or answers with a 502, 503 or 504, it keeps asking.
   *
   * @throws ProblemError `topic-not-found`; `signal` ends it without an error
   *
   * @example
   * ```ts
   * for await (const message of topic.messages({ signal })) {
   *   console.log(message.body?.order)
   *   await service.acknowledge([message])
   * }
   * ```
   */
  async *messages({ signal, wait = DEFAULT_WAIT_MS, ...options }: ReceiveOptions & CallOptions = {}): AsyncGenerator<
    Received<T>,
    void
  > {
    const hasEnded = (): boolean => signal?.aborted === true
    for (let failed = 0; !hasEnded();) {
      let received: readonly Received<T>[] = []
      try {
        received = await this.receive({ ...options, wait, ...(signal && { signal }) })
        failed = 0
      } catch (error) {
        if (hasEnded()) return
        if (!isPassing(error)) throw error
        await pause(pauseAfter(error, failed++), signal)
      }
      yield* received
    }
  }

  /**
   * The current state of a message; `null` if no message has the id.
   *
   * @throws ProblemError, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * console.log((await topic.get('close:7'))?.state)
   * ```
   */
  get(id: string, { signal }: CallOptions = {}): Promise<Shown<T> | null> {
    const shown = this.#requests.json<Shown<T>>('GET', this.#message(id), { signal, isRepeatable: true })
    return shown.catch(orNull)
  }

  /**
   * Changes the time, priority or body of a message that no consumer has.
   *
   * @throws ProblemError `message-not-found` or `message-in-flight`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * await topic.change('close:7', { delay: 3_600_000 })
   * ```
   */
  change(id: string, change: MessageChange<T>, { signal }: CallOptions = {}): Promise<Shown<T>> {
    return this.#requests.json('PATCH', this.#message(id), { body: change, signal, isRepeatable: true })
  }

  /**
   * Removes a message; false if no message has the id. With `force` also one that a consumer has.
   *
   * @throws ProblemError `message-in-flight`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * console.log(await topic.remove('close:7'))
   * ```
   */
  async remove(id: string, { signal, force }: CallOptions & { readonly force?: boolean } = {}): Promise<boolean> {
    const removed = this.#requests.json('DELETE', this.#message(id), { signal, query: { force } })
    return (await removed.catch(orNull)) !== null
  }

  /**
   * All messages except dead letters, or those in a state. Pushes and receives meanwhile can make some come twice or not at all.
   *
   * @throws ProblemError `topic-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * for await (const { id } of topic.list({ state: 'delayed' })) console.log(id)
   * ```
   */
  list({
    state,
    ...options
  }: CallOptions & { readonly state?: 'visible' | 'delayed' | 'inFlight' } = {}): AsyncGenerator<Shown<T>, void> {
    return pagesOf(this.#requests, `${this.#path}/messages`, 'messages', { ...options, query: { state } })
  }

  /**
   * The dead letters, the oldest first.
   *
   * @throws ProblemError `topic-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * for await (const { id, failures } of topic.deadLetters()) console.log(id, failures)
   * ```
   */
  deadLetters(options: CallOptions = {}): AsyncGenerator<Shown<T>, void> {
    return pagesOf(this.#requests, `${this.#path}/dead-letters`, 'messages', options)
  }

  /**
   * Moves dead letters back; their attempts begin anew: the oldest `count` (100), those with the given ids, or all that match. Resolves
   * with their number.
   *
   * @throws ProblemError `topic-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * console.log(await topic.redrive({ count: 100 }))
   * console.log(await topic.redrive({ reason: 'timeout', since: Date.now() - 3_600_000 }))
   * ```
   */
  async redrive({ signal, ...which }: RedriveWhich & CallOptions = {}): Promise<number> {
    const { count = Infinity } = which
    const ask = async (body: object, sum: number) => {
      const given = { ...body, ...(count !== Infinity && { count: count - sum }) }
      const part = await this.#do<Static<typeof schemas.RedriveOutput>>('dead-letters/redrive', given, signal)
      return { done: part.redriven, cursor: part.cursor }
    }
    return sumOfParts(which, ask, count)
  }

  /**
   * Creates the topic or replaces its settings; omitted settings get their defaults.
   *
   * @throws ProblemError `topic-shards`, `too-many-topics` or `topic-busy`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * await topic.put({ deliveryLimit: 5, visibilityTimeout: 60_000 })
   * ```
   */
  put(settings: TopicSettings = {}, { signal }: CallOptions = {}): Promise<TopicInfo> {
    return this.#requests.json('PUT', this.#path, { body: settings, signal, isRepeatable: true })
  }

  /**
   * The settings and counts; `null` if the topic does not exist.
   *
   * @throws ProblemError, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * console.log((await topic.info())?.counts)
   * ```
   */
  info({ signal }: CallOptions = {}): Promise<TopicInfo | null> {
    return this.#requests.json<TopicInfo>('GET', this.#path, { signal, isRepeatable: true }).catch(orNull)
  }

  /**
   * Deletes the topic, with `force` also its messages.
   *
   * @throws ProblemError `topic-not-found` or `topic-not-empty`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * await topic.delete({ force: true })
   * ```
   */
  async delete({ signal, force }: CallOptions & { readonly force?: boolean } = {}): Promise<void> {
    await this.#requests.json('DELETE', this.#path, { signal, query: { force } })
  }

  /**
   * Pauses the topic for all programs until `resume`: consumers get no messages, or with `push` pushes are refused.
   *
   * @throws ProblemError `topic-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * await topic.pause()
   * await topic.resume()
   * ```
   */
  async pause(what: 'push' | 'receive' = 'receive', { signal }: CallOptions = {}): Promise<void> {
    await this.#do('pause', { what }, signal)
  }

  /**
   * Ends a pause.
   *
   * @throws ProblemError `topic-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * await topic.pause('push')
   * await topic.resume('push')
   * ```
   */
  async resume(what: 'push' | 'receive' = 'receive', { signal }: CallOptions = {}): Promise<void> {
    await this.#do('resume', { what }, signal)
  }

  /**
   * Removes all messages or all dead letters, those with the given ids, or all that match. Resolves with about their number.
   *
   * @throws ProblemError `topic-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * console.log(await topic.purge('dead-letters'))
   * console.log(await topic.purge('messages', { state: 'delayed', dueTo: Date.now() + 60_000 }))
   * ```
   */
  async purge(
    what: 'messages' | 'dead-letters' = 'messages',
    { signal, ...which }: CallOptions & PurgeWhich = {},
  ): Promise<number> {
    return sumOfParts({ what, ...which }, async (body) => {
      const part = await this.#do<Static<typeof schemas.PurgeOutput>>('purge', body, signal)
      return { done: part.purged, cursor: part.cursor }
    })
  }

  #do<R>(what: string, body: object, signal: AbortSignal | undefined): Promise<R> {
    return this.#requests.json('POST', `${this.#path}/${what}`, { body, signal })
  }

  #message(id: string): string {
    return `${this.#path}/messages/${encodeURIComponent(id)}`
  }
}

/** Gives a message an id, so that a repeated push keeps the message that the first one added. */
function withId<T extends { readonly id?: string }>({
  id = crypto.randomUUID(),
  ...rest
}: T): Omit<T, 'id'> & { id: string } {
  return { id, ...rest }
}

function orNull(error: unknown): null {
  if (error instanceof ProblemError && ['message-not-found', 'topic-not-found'].includes(error.code)) return null
  throw error
}
