import type { Static } from 'typebox'
import type * as schemas from '../api/schemas.js'
import { pagesOf } from './pages.js'
import type { CallOptions, Requests } from './requests.js'

export type Endpoint = Static<typeof schemas.EndpointOutput>
export type EndpointMade = Static<typeof schemas.EndpointMade>
export type Secret = Static<typeof schemas.SecretOutput>
export type DeliveryOfAll = Static<typeof schemas.DeliveryOfAll>
export type LoggedDelivery = Static<typeof schemas.DeliveryPage>['deliveries'][number]

/** The endpoints of webhooks. */
export class Endpoints {
  readonly #requests: Requests

  constructor(requests: Requests) {
    this.#requests = requests
  }

  /**
   * Creates an endpoint; the answer has its secret.
   *
   * @throws ProblemError `invalid-request` or `too-many-endpoints`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const { id, secret } = await service.endpoints.create({ url: 'https://example.com/hook' })
   * console.log(id, secret)
   * ```
   */
  create(endpoint: Static<typeof schemas.EndpointInput>, { signal }: CallOptions = {}): Promise<EndpointMade> {
    return this.#requests.json('POST', '/v1/endpoints', { body: endpoint, signal })
  }

  /**
   * All endpoints, without their secrets.
   *
   * @throws ProblemError, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * for await (const { id, url } of service.endpoints.list()) console.log(id, url)
   * ```
   */
  list(options: CallOptions = {}): AsyncGenerator<Endpoint, void> {
    return pagesOf(this.#requests, '/v1/endpoints', 'endpoints', options)
  }

  /**
   * One endpoint, with its topics.
   *
   * @throws ProblemError `endpoint-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const { id } = await service.endpoints.create({ url: 'https://example.com/hook' })
   * console.log((await service.endpoints.get(id)).enabled)
   * ```
   */
  get(id: string, { signal }: CallOptions = {}): Promise<Endpoint> {
    return this.#requests.json('GET', pathOf(id), { signal, isRepeatable: true })
  }

  /**
   * Changes the given properties; the others stay.
   *
   * @throws ProblemError `endpoint-not-found` or `invalid-request`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const { id } = await service.endpoints.create({ url: 'https://example.com/hook' })
   * await service.endpoints.change(id, { perSecond: 10 })
   * ```
   */
  change(id: string, change: Static<typeof schemas.EndpointChange>, { signal }: CallOptions = {}): Promise<Endpoint> {
    return this.#requests.json('PATCH', pathOf(id), { body: change, signal, isRepeatable: true })
  }

  /**
   * Deletes an endpoint, with `force` also one that topics use.
   *
   * @throws ProblemError `endpoint-not-found` or `endpoint-in-use`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const { id } = await service.endpoints.create({ url: 'https://example.com/hook' })
   * await service.endpoints.delete(id)
   * ```
   */
  async delete(id: string, { signal, force }: CallOptions & { readonly force?: boolean } = {}): Promise<void> {
    await this.#requests.json('DELETE', pathOf(id), { signal, query: { force } })
  }

  /**
   * The secret that its webhooks are signed with.
   *
   * @throws ProblemError `endpoint-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const { id } = await service.endpoints.create({ url: 'https://example.com/hook' })
   * console.log((await service.endpoints.secret(id)).secret)
   * ```
   */
  secret(id: string, { signal }: CallOptions = {}): Promise<Secret> {
    return this.#requests.json('GET', `${pathOf(id)}/secret`, { signal, isRepeatable: true })
  }

  /**
   * Gives an endpoint a new secret. The previous one signs too, for a day or for `keepPrevious`.
   *
   * @throws ProblemError `endpoint-not-found` or `invalid-request`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const { id } = await service.endpoints.create({ url: 'https://example.com/hook' })
   * await service.endpoints.rotateSecret(id, { keepPrevious: 0 }) // after a leak
   * ```
   */
  rotateSecret(
    id: string,
    { signal, ...options }: Static<typeof schemas.RotateInput> & CallOptions = {},
  ): Promise<Secret> {
    return this.#requests.json('POST', `${pathOf(id)}/rotate-secret`, { body: options, signal })
  }

  /**
   * Sends one webhook now; resolves with the answer.
   *
   * @throws ProblemError `endpoint-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const { id } = await service.endpoints.create({ url: 'https://example.com/hook' })
   * console.log(await service.endpoints.test(id))
   * ```
   */
  test(id: string, { signal }: CallOptions = {}): Promise<Static<typeof schemas.TestOutput>> {
    return this.#requests.json('POST', `${pathOf(id)}/test`, { body: {}, signal, wait: MOST_TIMEOUT_MS })
  }

  /**
   * Enables an endpoint and moves the dead letters of its topics back.
   *
   * @throws ProblemError `endpoint-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const { id } = await service.endpoints.create({ url: 'https://example.com/hook' })
   * console.log((await service.endpoints.recover(id)).redriven)
   * ```
   */
  recover(id: string, { signal }: CallOptions = {}): Promise<Static<typeof schemas.RecoverOutput>> {
    return this.#requests.json('POST', `${pathOf(id)}/recover`, { body: {}, signal })
  }

  /**
   * The last webhooks with their answers, the newest first.
   *
   * @throws ProblemError `endpoint-not-found`, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * const { id } = await service.endpoints.create({ url: 'https://example.com/hook' })
   * for await (const { outcome, status } of service.endpoints.deliveries(id)) console.log(outcome, status)
   * ```
   */
  deliveries(id: string, options: CallOptions = {}): AsyncGenerator<LoggedDelivery, void> {
    return pagesOf(this.#requests, `${pathOf(id)}/deliveries`, 'deliveries', options)
  }

  /**
   * The last webhooks of all endpoints together, the newest first.
   *
   * @throws ProblemError, NoAnswerError, or the reason of `signal`
   *
   * @example
   * ```ts
   * for await (const { endpoint, outcome } of service.endpoints.allDeliveries()) console.log(endpoint, outcome)
   * ```
   */
  allDeliveries(options: CallOptions = {}): AsyncGenerator<DeliveryOfAll, void> {
    return pagesOf(this.#requests, '/v1/deliveries', 'deliveries', options)
  }
}

/** The longest that an endpoint may take to answer. */
const MOST_TIMEOUT_MS = 120_000

function pathOf(id: string): string {
  return `/v1/endpoints/${encodeURIComponent(id)}`
}
