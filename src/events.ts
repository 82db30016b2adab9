import { EventEmitter } from 'node:events'
import { RedelayedError, toError } from './errors.js'

/** A transfer moved due messages to their destination. */
export interface TransferredEvent {
  readonly queue: string
  /** How many messages the script moved. */
  readonly count: number
  /** By how many milliseconds, by the Redis clock, the most overdue of them was late. */
  readonly maxLatenessMs: number
}

/** Something unreadable was set aside; the bytes are in the queue's quarantine list. */
export interface QuarantinedEvent {
  readonly queue: string
  /**
   * `malformed`: a pending entry without a readable header; `negative-due`: an entry whose due time is negative and would
   * block the head for ever; `undecodable`: an element whose bytes the codec refused.
   */
  readonly reason: 'malformed' | 'negative-due' | 'undecodable'
  readonly count: number
  readonly error?: Error | undefined
}

/** The queue's channel is subscribed (again), as acknowledged by the server. */
export interface SubscribedEvent {
  readonly queue: string
}

/** A connection was lost and is being opened again. */
export interface ReconnectingEvent {
  readonly connection: 'commands' | 'subscriber' | 'blocking' | 'durable'
  /** How many attempts failed in a row. */
  readonly attempt: number
  /** The wait before the next attempt. */
  readonly delayMs: number
  readonly error?: Error | undefined
}

/** What `client.on` and `delayedQueue.on` can listen to. */
export interface RedelayedEvents {
  error: RedelayedError
  transferred: TransferredEvent
  quarantined: QuarantinedEvent
  subscribed: SubscribedEvent
  reconnecting: ReconnectingEvent
}

export type EventName = keyof RedelayedEvents
export type Listener<K extends EventName> = (event: RedelayedEvents[K]) => void

/** Emits into code of the user's: what a listener throws never reaches our loops. */
export type Emit = <K extends EventName>(name: K, event: RedelayedEvents[K]) => void

/** A typed event source. */
export class Events<M extends object = RedelayedEvents> {
  readonly #emitter = new EventEmitter().setMaxListeners(0)

  on<K extends keyof M & string>(name: K, listener: (event: M[K]) => void): void {
    this.#emitter.on(name, listener)
  }

  once<K extends keyof M & string>(name: K, listener: (event: M[K]) => void): void {
    this.#emitter.once(name, listener)
  }

  off<K extends keyof M & string>(name: K, listener: (event: M[K]) => void): void {
    this.#emitter.off(name, listener)
  }

  removeAll(): void {
    this.#emitter.removeAllListeners()
  }

  /** Whether anybody listened. What a listener throws is given to `onThrow`. */
  emit<K extends keyof M & string>(name: K, event: M[K], onThrow: (thrown: unknown) => void): boolean {
    const listeners = this.#emitter.rawListeners(name)
    for (const listener of listeners) {
      try {
        listener.call(this.#emitter, event)
      } catch (thrown) {
        onThrow(thrown)
      }
    }
    return listeners.length > 0
  }
}

/** How many different unheard errors are told about. */
const MAX_WARNINGS = 100

/** The events of a client, and those of its queue objects, which hear what concerns their queue. */
export class EventHub {
  readonly client = new Events()
  readonly #byQueue = new Map<string, Set<Events>>()
  readonly #warned = new Set<string>()

  /** A source for one queue object, and the function that ends it. */
  forQueue(queue: string): { events: Events; end: () => void } {
    const events = new Events()
    const sources = this.#byQueue.get(queue) ?? new Set()
    this.#byQueue.set(queue, sources.add(events))
    const end = (): void => {
      events.removeAll()
      sources.delete(events)
      if (sources.size === 0 && this.#byQueue.get(queue) === sources) this.#byQueue.delete(queue)
    }
    return { events, end }
  }

  readonly emit: Emit = (name, event) => {
    let heard = this.client.emit(name, event, this.#onThrow)
    const queue = 'queue' in event ? event.queue : undefined
    if (queue !== undefined) {
      for (const source of this.#byQueue.get(queue) ?? []) heard = source.emit(name, event, this.#onThrow) || heard
    }
    if (!heard && event instanceof RedelayedError) this.#warn(event)
  }

  readonly #onThrow = (thrown: unknown): void => {
    this.#warn(new RedelayedError('ERR_LISTENER', 'a listener threw', { cause: toError(thrown) }))
  }

  /** An error that nobody listens to becomes a warning, once per code and queue: an outage must not fill the log. */
  #warn(error: RedelayedError): void {
    const key = `${error.code} ${error.queue ?? ''}`
    if (this.#warned.has(key) || this.#warned.size >= MAX_WARNINGS) return
    this.#warned.add(key)
    const cause = error.cause instanceof Error ? ` (${error.cause.message})` : ''
    process.emitWarning(`${error.message}${cause}; listen to 'error' to see every one`, 'RedelayedWarning', error.code)
  }
}
