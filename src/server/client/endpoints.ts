import type { Static } from 'typebox'
import type * as schemas from '../api/schemas.js'
import { pagesOf } from './pages.js'
import type { CallOptions, Requests } from './requests.js'

export type Endpoint = Static<typeof schemas.EndpointOutput>
export type EndpointMade = Static<typeof schemas.EndpointMade>
export type Secret = Static<typeof schemas.SecretOutput>
export type DeliveryOfAll = Static<typeof schemas.DeliveryOfAll>
export type LoggedDelivery = Static<typeof schemas.DeliveryPage>['deliveries'][number]

/** Where webhooks go. */
export class Endpoints {
  readonly #requests: Requests

  constructor(requests: Requests) {
    this.#requests = requests
  }

  create(endpoint: Static<typeof schemas.EndpointInput>, { signal }: CallOptions = {}): Promise<EndpointMade> {
    return this.#requests.json('POST', '/v1/endpoints', { body: endpoint, signal })
  }

  list(options: CallOptions = {}): AsyncGenerator<Endpoint, void> {
    return pagesOf(this.#requests, '/v1/endpoints', 'endpoints', options)
  }

  get(id: string, { signal }: CallOptions = {}): Promise<Endpoint> {
    return this.#requests.json('GET', pathOf(id), { signal, isRepeatable: true })
  }

  change(id: string, change: Static<typeof schemas.EndpointChange>, { signal }: CallOptions = {}): Promise<Endpoint> {
    return this.#requests.json('PATCH', pathOf(id), { body: change, signal, isRepeatable: true })
  }

  /** With `force` also one that topics have. */
  async delete(id: string, { signal, force }: CallOptions & { readonly force?: boolean } = {}): Promise<void> {
    await this.#requests.json('DELETE', pathOf(id), { signal, query: { force } })
  }

  secret(id: string, { signal }: CallOptions = {}): Promise<Secret> {
    return this.#requests.json('GET', `${pathOf(id)}/secret`, { signal, isRepeatable: true })
  }

  rotateSecret(
    id: string,
    { signal, ...options }: Static<typeof schemas.RotateInput> & CallOptions = {},
  ): Promise<Secret> {
    return this.#requests.json('POST', `${pathOf(id)}/rotate-secret`, { body: options, signal })
  }

  /** Sends one webhook now. */
  test(id: string, { signal }: CallOptions = {}): Promise<Static<typeof schemas.TestOutput>> {
    return this.#requests.json('POST', `${pathOf(id)}/test`, { body: {}, signal, wait: MOST_TIMEOUT_MS })
  }

  /** Enables it, and moves the dead letters of its topics back. */
  recover(id: string, { signal }: CallOptions = {}): Promise<Static<typeof schemas.RecoverOutput>> {
    return this.#requests.json('POST', `${pathOf(id)}/recover`, { body: {}, signal })
  }

  /** The last webhooks with their answers, the newest first. */
  deliveries(id: string, options: CallOptions = {}): AsyncGenerator<LoggedDelivery, void> {
    return pagesOf(this.#requests, `${pathOf(id)}/deliveries`, 'deliveries', options)
  }

  /** Those of all endpoints together. */
  allDeliveries(options: CallOptions = {}): AsyncGenerator<DeliveryOfAll, void> {
    return pagesOf(this.#requests, '/v1/deliveries', 'deliveries', options)
  }
}

/** So long an endpoint may take for an answer. */
const MOST_TIMEOUT_MS = 120_000

function pathOf(id: string): string {
  return `/v1/endpoints/${encodeURIComponent(id)}`
}
