import type { Codec } from '../codecs/codec.js'
import type { EventName, Events, Listener } from '../events.js'
import { PRIORITIES } from '../keys.js'
import { integer, scriptTime } from '../options.js'
import type { QueueContext } from '../queues/context.js'
import { QueueHandle } from '../queues/queue-handle.js'
import { dueKeys, type DueKeys, type ReliableContext, type ReliableIdentity } from './context.js'

/** What the parts of a reliable queue do alike. */
export abstract class ReliableObject<T> {
  /** The queue's name as the application knows it. */
  readonly name: string
  readonly codec: Codec<T>
  /** @internal */
  readonly context: QueueContext
  /** @internal */
  readonly handle: QueueHandle<T>
  #events: { readonly events: Events; readonly end: () => void } | undefined
  /** @internal */
  readonly identity: ReliableIdentity<T>
  /** @internal */
  readonly reliable: ReliableContext
  /** The schedules as the scripts name them. */
  protected readonly due: DueKeys

  /** @internal */
  constructor(reliable: ReliableContext, identity: ReliableIdentity<T>) {
    this.name = identity.name
    this.codec = identity.codec
    this.context = reliable.queues
    this.handle = new QueueHandle(reliable.queues, identity)
    this.reliable = reliable
    this.identity = identity
    this.due = dueKeys(identity.keys)
  }

  /** Listens to what happens to this queue through this client. */
  on<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#source.on(name, listener)
    return this
  }

  once<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#source.once(name, listener)
    return this
  }

  off<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#events?.events.off(name, listener)
    if (this.#events?.events.isEmpty === true) {
      this.#events.end()
      this.#events = undefined
    }
    return this
  }

  /** Made by the first listener, so that a queue object without any costs the client nothing. */
  get #source(): Events {
    this.#events ??= this.context.hub.forQueue(this.name)
    return this.#events.events
  }

  /** The scripts' argument of that name. */
  protected get now(): number {
    return scriptTime(this.context.settings)
  }
}

export function priorityOf(priority: unknown): number {
  return integer('priority', priority, 0, PRIORITIES - 1)
}
