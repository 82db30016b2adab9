import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { ServerSettings } from '../config/server-settings.js'
import type { DeliveryLog } from '../delivery/delivery-log.js'
import type { Dispatcher } from '../delivery/dispatcher.js'
import type { EndpointGate } from '../delivery/endpoint-gate.js'
import type { Endpoints } from '../delivery/endpoints.js'
import type { Topics } from '../topics/topics.js'
import type { Answers } from './answers.js'
import type { Metrics } from './metrics.js'
import type { Restores } from './restores.js'

/** The parts that routes use. */
export interface Context {
  readonly topics: Topics
  readonly endpoints: Endpoints
  readonly dispatcher: Dispatcher
  readonly gate: EndpointGate
  readonly deliveryLog: DeliveryLog
  readonly settings: ServerSettings
  readonly metrics: Metrics
  readonly restores: Restores
  readonly answers: Answers
  /** Waits that end when the service stops. */
  readonly waits: Waits
}

export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

/** The waiting requests: a stop ends all of them, so that each is answered. */
export class Waits {
  readonly #waiting = new Set<AbortController>()
  #isStopping = false
  #isLeaving = false

  get size(): number {
    return this.#waiting.size
  }

  /** Whether the service is about to stop, so that proxies should send no more requests. */
  get isLeaving(): boolean {
    return this.#isLeaving || this.#isStopping
  }

  leave(): void {
    this.#isLeaving = true
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  begin(): AbortController {
    const wait = new AbortController()
    if (this.#isStopping) wait.abort()
    this.#waiting.add(wait)
    return wait
  }

  end(wait: AbortController): void {
    this.#waiting.delete(wait)
  }

  stop(): void {
    this.#isStopping = true
    for (const wait of this.#waiting) wait.abort()
  }
}
