import type { Static } from 'typebox'
import type * as schemas from '../api/schemas.js'
import { DeadLetters } from './dead-letters.js'
import { Endpoints } from './endpoints.js'
import { watch, type ServiceEvent, type WatchOptions } from './events.js'
import { pagesOf } from './pages.js'
import { Requests, type CallOptions, type ClientOptions } from './requests.js'
import { Restores } from './restores.js'
import { TopicClient, type TopicInfo } from './topic-client.js'

/** A lease, or a message that has one. */
export type Leased = string | { readonly lease: string }
export type LeaseAnswer = Static<typeof schemas.LeaseOutput>['results'][number]
export type NegativeOptions = Omit<Static<typeof schemas.NegativeInput>, 'leases'>

/**
 * A client of the delay service. Only `fetch` keeps connections open.
 *
 * @example
 * ```js
 * import { DelayClient } from 'redelayed-server/client'
 *
 * const delays = new DelayClient({ url: 'http://127.0.0.1:8080', key: process.env.REDELAYED_KEY ?? '' })
 * const orders = delays.topic('orders')
 * await orders.push({ id: 'close:7', delay: 1_800_000, body: { order: 7 } })
 * ```
 */
export class DelayClient {
  readonly deadLetters: DeadLetters
  readonly endpoints: Endpoints
  readonly restores: Restores
  readonly #requests: Requests

  constructor(options: ClientOptions) {
    this.#requests = new Requests(options)
    this.deadLetters = new DeadLetters(this.#requests)
    this.endpoints = new Endpoints(this.#requests)
    this.restores = new Restores(this.#requests)
  }

  /**
   * A handle for one topic. It sends no request.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * const orders = service.topic<{ order: number }>('orders')
   * await orders.push({ delay: 1_800_000, body: { order: 7 } })
   * ```
   */
  topic<T = unknown>(name: string): TopicClient<T> {
    return new TopicClient<T>(this.#requests, name)
  }

  /**
   * The topics of the key, sorted by name.
   *
   * @throws ProblemError, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * for await (const { name, counts } of service.topics()) console.log(name, counts)
   * ```
   */
  topics(options: CallOptions = {}): AsyncGenerator<TopicInfo, void> {
    return pagesOf(this.#requests, '/v1/topics', 'topics', options)
  }

  /**
   * Acknowledges handled messages. `lost`: the lease had ended, and another consumer can have the message; after a repeated request, the
   * first attempt may have arrived.
   *
   * @throws ProblemError `invalid-lease`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const messages = await topic.receive({ max: 10 })
   * console.log(await service.acknowledge(messages))
   * ```
   */
  acknowledge(messages: readonly Leased[], options: CallOptions = {}): Promise<LeaseAnswer[]> {
    return this.#answer('acknowledge', messages, {}, options)
  }

  /**
   * Gives back messages that were not handled: they are redelivered later, or become dead letters.
   *
   * @throws ProblemError `invalid-lease`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const messages = await topic.receive()
   * await service.negativeAcknowledge(messages, { delay: 10_000, error: 'no printer' })
   * ```
   */
  negativeAcknowledge(
    messages: readonly Leased[],
    { signal, ...how }: NegativeOptions & CallOptions = {},
  ): Promise<LeaseAnswer[]> {
    return this.#answer('negative-acknowledge', messages, how, { ...(signal && { signal }) })
  }

  /**
   * Extends the leases of messages: they end `visibilityTimeout` from now, by default that of the topic.
   *
   * @throws ProblemError `invalid-lease`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const messages = await topic.receive()
   * await service.extend(messages, { visibilityTimeout: 60_000 })
   * ```
   */
  extend(
    messages: readonly Leased[],
    { signal, ...how }: { readonly visibilityTimeout?: number } & CallOptions = {},
  ): Promise<LeaseAnswer[]> {
    return this.#answer('extend', messages, how, { ...(signal && { signal }) })
  }

  /**
   * The changes of the messages of some topics, made by any program. It reconnects by itself and resumes where it was.
   *
   * @throws ProblemError `topic-not-found`, `no-events` or `too-many-streams`; `signal` ends it without an error
   *
   * @example
   * ```ts
   * for await (const { event, data } of service.events(['orders'], { signal })) console.log(event, data)
   * ```
   */
  events(topics: readonly string[], options: WatchOptions = {}): AsyncGenerator<ServiceEvent, void> {
    return watch(this.#requests, topics, options)
  }

  async #answer(
    what: string,
    messages: readonly Leased[],
    how: object,
    { signal }: CallOptions,
  ): Promise<LeaseAnswer[]> {
    const leases = messages.map((each) => (typeof each === 'string' ? each : each.lease))
    const call = { body: { leases, ...how }, signal, isRepeatable: true }
    const { results } = await this.#requests.json<Static<typeof schemas.LeaseOutput>>(
      'POST',
      `/v1/leases/${what}`,
      call,
    )
    return results
  }
}
