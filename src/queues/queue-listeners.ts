import type { EventHub, EventName, Events, Listener } from '../events.js'

/** The listeners of one queue object. The first listener creates their source, so that an object without any costs the client nothing. */
export class QueueListeners {
  readonly #hub: EventHub
  readonly #queues: readonly string[]
  #source: { readonly events: Events; readonly end: () => void } | undefined

  /** `queues`: the queues whose events the listeners get. */
  constructor(hub: EventHub, queues: readonly string[]) {
    this.#hub = hub
    this.#queues = queues
  }

  on<K extends EventName>(name: K, listener: Listener<K>): void {
    this.#events.on(name, listener)
  }

  once<K extends EventName>(name: K, listener: Listener<K>): void {
    this.#events.once(name, listener)
  }

  off<K extends EventName>(name: K, listener: Listener<K>): void {
    this.#source?.events.off(name, listener)
    if (this.#source?.events.isEmpty !== true) return
    this.#source.end()
    this.#source = undefined
  }

  get #events(): Events {
    this.#source ??= this.#hub.forQueue(...this.#queues)
    return this.#source.events
  }
}
