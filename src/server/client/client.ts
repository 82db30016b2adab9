import type { Static } from 'typebox'
import type * as schemas from '../api/schemas.js'
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
 * A client of the delay service. It keeps nothing open but the connections of `fetch`.
 *
 * @example
 * const client = new DelayClient({ url: 'http://127.0.0.1:8080', key: process.env.REDELAYED_KEY ?? '' })
 * const orders = client.topic<{ order: number }>('orders')
 * await orders.push({ id: 'close:7', delay: 1_800_000, body: { order: 7 } })
 */
export class DelayClient {
  readonly endpoints: Endpoints
  readonly restores: Restores
  readonly #requests: Requests

  constructor(options: ClientOptions) {
    this.#requests = new Requests(options)
    this.endpoints = new Endpoints(this.#requests)
    this.restores = new Restores(this.#requests)
  }

  /** @typeParam T the body of its messages; nothing checks what others push */
  topic<T = unknown>(name: string): TopicClient<T> {
    return new TopicClient<T>(this.#requests, name)
  }

  /** The topics of the key by name. */
  topics(options: CallOptions = {}): AsyncGenerator<TopicInfo, void> {
    return pagesOf(this.#requests, '/v1/topics', 'topics', options)
  }

  /** The messages were handled. `lost`: it was not yours any more; after a repeat it can also be that the first attempt arrived. */
  acknowledge(messages: readonly Leased[], options: CallOptions = {}): Promise<LeaseAnswer[]> {
    return this.#answer('acknowledge', messages, {}, options)
  }

  /** The messages were not handled: they are redelivered later, or become dead letters. */
  negativeAcknowledge(
    messages: readonly Leased[],
    { signal, ...how }: NegativeOptions & CallOptions = {},
  ): Promise<LeaseAnswer[]> {
    return this.#answer('negative-acknowledge', messages, how, { ...(signal && { signal }) })
  }

  /** The messages take longer: so long from now, else as long as the topic says. */
  extend(
    messages: readonly Leased[],
    { signal, ...how }: { readonly visibilityTimeout?: number } & CallOptions = {},
  ): Promise<LeaseAnswer[]> {
    return this.#answer('extend', messages, how, { ...(signal && { signal }) })
  }

  /** What happens to the messages of some topics, by whoever. It connects again by itself, and goes on where it was. */
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
