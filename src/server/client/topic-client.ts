import type { Static } from 'typebox'
import type * as schemas from '../api/schemas.js'
import { ProblemError } from './errors.js'
import { pagesOf } from './pages.js'
import { pause } from '../pause.js'
import { isPassing, pauseAfter, type CallOptions, type Requests } from './requests.js'

type Of<T, K> = Omit<K, 'body'> & { readonly body?: T }

/** What is pushed. Without an `id` the client draws one, so that the push can be repeated. */
export type Push<T> = Of<T, Static<typeof schemas.MessageInput>>
export type Pushed = Static<typeof schemas.PushedOutput>
export type Change<T> = Of<T, Static<typeof schemas.MessageChange>>
/** A message with the lease of this consumer. */
export type Received<T> = Of<T, Static<typeof schemas.ReceiveOutput>['messages'][number]>
/** A message as `get` shows it. */
export type Shown<T> = Of<T, Static<typeof schemas.MessageOutput>>
export type ReceiveOptions = Static<typeof schemas.ReceiveInput>
export type TopicSettings = Static<typeof schemas.TopicInput>
export type TopicInfo = Static<typeof schemas.TopicOutput>

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

  /** Resolves when the service has accepted the message. It is repeated until there is an answer, as often as `retries` says. */
  push(
    message: Push<T>,
    { signal, idempotencyKey }: CallOptions & { readonly idempotencyKey?: string } = {},
  ): Promise<Pushed> {
    const hasKey = idempotencyKey !== undefined
    return this.#requests.json('POST', `${this.#path}/messages`, {
      // under an idempotency key each attempt has to be the same, also those of another call
      body: hasKey ? message : withId(message),
      ...(hasKey && { headers: { 'idempotency-key': idempotencyKey } }),
      ...{ signal, isRepeatable: true },
    })
  }

  /** Of each message what became of it, in their order. */
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

  /** Due messages; with `wait` it waits for the first ones. An abort gives back what was on its way. */
  async receive({ signal, ...options }: ReceiveOptions & CallOptions = {}): Promise<Received<T>[]> {
    const call = { body: options, signal, wait: options.wait }
    const { messages } = await this.#requests.json<{ messages: Received<T>[] }>('POST', `${this.#path}/receive`, call)
    return messages
  }

  /**
   * The messages as they become due, until the signal aborts. Acknowledge each of them. It asks for one at a time unless `max` is given; those
   * of one answer are leased together. While the service does not answer, or with a 502, 503 or 504, it asks again and again.
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

  /** `null` where there is no such message. */
  get(id: string, { signal }: CallOptions = {}): Promise<Shown<T> | null> {
    const shown = this.#requests.json<Shown<T>>('GET', this.#message(id), { signal, isRepeatable: true })
    return shown.catch(orNull)
  }

  /** Gives a message that no consumer has another time, priority or body. */
  change(id: string, change: Change<T>, { signal }: CallOptions = {}): Promise<Shown<T>> {
    return this.#requests.json('PATCH', this.#message(id), { body: change, signal, isRepeatable: true })
  }

  /** False where there is no such message. */
  async remove(id: string, { signal, force }: CallOptions & { readonly force?: boolean } = {}): Promise<boolean> {
    const removed = this.#requests.json('DELETE', this.#message(id), { signal, query: { force } })
    return (await removed.catch(orNull)) !== null
  }

  /** All messages but dead letters, or those of a state. While others push and receive, some can be missing or come twice. */
  list({
    state,
    ...options
  }: CallOptions & { readonly state?: 'visible' | 'delayed' | 'inFlight' } = {}): AsyncGenerator<Shown<T>, void> {
    return pagesOf(this.#requests, `${this.#path}/messages`, 'messages', { ...options, query: { state } })
  }

  deadLetters(options: CallOptions = {}): AsyncGenerator<Shown<T>, void> {
    return pagesOf(this.#requests, `${this.#path}/dead-letters`, 'messages', options)
  }

  /** Moves dead letters back: those of some ids, or the oldest. Resolves with how many. */
  async redrive({ signal, ...which }: Static<typeof schemas.RedriveInput> & CallOptions = {}): Promise<number> {
    return (await this.#do<Static<typeof schemas.RedriveOutput>>('dead-letters/redrive', which, signal)).redriven
  }

  /** Makes the topic, or gives it all settings: what is left out gets its default. */
  put(settings: TopicSettings = {}, { signal }: CallOptions = {}): Promise<TopicInfo> {
    return this.#requests.json('PUT', this.#path, { body: settings, signal, isRepeatable: true })
  }

  /** The settings and counts; `null` where there is no such topic. */
  info({ signal }: CallOptions = {}): Promise<TopicInfo | null> {
    return this.#requests.json<TopicInfo>('GET', this.#path, { signal, isRepeatable: true }).catch(orNull)
  }

  /** Deletes the topic, with `force` also its messages. */
  async delete({ signal, force }: CallOptions & { readonly force?: boolean } = {}): Promise<void> {
    await this.#requests.json('DELETE', this.#path, { signal, query: { force } })
  }

  async pause(what: 'push' | 'receive' = 'receive', { signal }: CallOptions = {}): Promise<void> {
    await this.#do('pause', { what }, signal)
  }

  async resume(what: 'push' | 'receive' = 'receive', { signal }: CallOptions = {}): Promise<void> {
    await this.#do('resume', { what }, signal)
  }

  /** Removes all messages, or all dead letters, or those of some ids. Resolves with about how many. */
  async purge(
    what: 'messages' | 'dead-letters' = 'messages',
    { signal, ids }: CallOptions & { readonly ids?: readonly string[] } = {},
  ): Promise<number> {
    const which = { what, ...(ids && { ids }) }
    return (await this.#do<Static<typeof schemas.PurgeOutput>>('purge', which, signal)).purged
  }

  #do<R>(what: string, body: object, signal: AbortSignal | undefined): Promise<R> {
    return this.#requests.json('POST', `${this.#path}/${what}`, { body, signal })
  }

  #message(id: string): string {
    return `${this.#path}/messages/${encodeURIComponent(id)}`
  }
}

/** A message with an id of its own that is there already is kept when the client repeats the push. */
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
