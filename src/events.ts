import { EventEmitter } from 'node:events'
import { cleanError } from './clean-error.js'
import { RedelayedError, toError } from './errors.js'
import { ProcessWarnings, type WarningCode } from './process-warnings.js'
import { quoted } from './text.js'

/** A transfer moved due messages to their destination. */
export interface TransferredEvent {
  readonly queue: string
  /** How many messages the script moved. */
  readonly count: number
  /** By how many milliseconds, by the Redis clock, the most overdue of them was late. */
  readonly maxLatenessMs: number
}

/** Unreadable bytes were set aside in the queue's quarantine list. */
export interface QuarantinedEvent {
  readonly queue: string
  /**
   * `malformed`: a pending entry without a readable header; `negative-due`: an entry whose negative due time would
   * block the head for ever; `order-orphan`: an element at the head of the order list that is not pending, such as one left
   * behind in a long list when its entry was set aside; `undecodable`: an element whose bytes the codec refused.
   */
  readonly reason: 'malformed' | 'negative-due' | 'order-orphan' | 'undecodable'
  readonly count: number
  readonly error?: Error | undefined
}

/** The queue's channel is subscribed (again), as acknowledged by the server. */
export interface SubscribedEvent {
  readonly queue: string
}

/** A setup or a call that is accepted but most likely loses messages or never delivers them. */
export interface WarningEvent {
  /**
   * `REDELAYED_EVICTION`: at its memory limit the server deletes keys, and so queues; `REDELAYED_SERVERS`: connections to one address reach
   * different servers in turns, the addresses of a cluster lead to another one, or connections lead elsewhere than the sentinels name;
   * `REDELAYED_TIMESTAMP_DELAY`: a delay that looks like a point in time.
   */
  readonly code: Extract<WarningCode, 'REDELAYED_EVICTION' | 'REDELAYED_SERVERS' | 'REDELAYED_TIMESTAMP_DELAY'>
  readonly message: string
  /** The queue, where the warning is about one. */
  readonly queue?: string | undefined
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

/** This client, or, while `allEvents` is on, any client, changed the state of messages of a reliable queue. */
export interface MessagesEvent {
  readonly queue: string
  readonly count: number
  /** The known ids: messages that a poll found expired or delivered too often are only counted. */
  readonly ids: readonly string[]
}

/** A consumer reported progress of a message through this client, or, while `allEvents` is on, through any. */
export interface ProgressEvent {
  readonly queue: string
  readonly id: string
  /** The value as the queue's codec decodes it. */
  readonly progress: unknown
}

/** The outcome of a message in a worker. */
export type SettledOutcome = 'completed' | 'deferred' | 'failed' | 'rejected' | 'released' | 'lost'

/** A worker is done with a message. */
export interface SettledEvent {
  readonly queue: string
  readonly id: string
  /** The name of its task, if it has one. */
  readonly task?: string | undefined
  /** The number of this delivery, from 1. */
  readonly attempt: number
  /** The time from the call of the handler until Redis knew the outcome, in milliseconds. */
  readonly ms: number
  /** The time that the message was visible before it was handed out, by the Redis clock, in milliseconds. */
  readonly lateMs: number
  readonly outcome: SettledOutcome
  /** The error of a message that failed, was rejected or lost. */
  readonly error?: Error | undefined
}

/** The events of `client.on`, `delayedQueue.on` and `reliableQueue.on`. */
export interface RedelayedEvents {
  error: RedelayedError
  warning: WarningEvent
  transferred: TransferredEvent
  quarantined: QuarantinedEvent
  subscribed: SubscribedEvent
  reconnecting: ReconnectingEvent
  /** Messages were added by `add` or `addMany`, or replaced others. */
  added: MessagesEvent
  /** Messages were not added, because of `maxSize`. */
  full: MessagesEvent
  polled: MessagesEvent
  acknowledged: MessagesEvent
  /** Messages were given back; they will be delivered again. */
  failed: MessagesEvent
  /** Messages left the queue unhandled: to the dead letters, where the queue keeps them. */
  rejected: MessagesEvent
  /** Messages were removed because their time to live was over. */
  expired: MessagesEvent
  removed: MessagesEvent
  progress: ProgressEvent
  settled: SettledEvent
}

/** The events of reliable queues' messages. */
export type MessagesEventName = {
  [K in keyof RedelayedEvents]: RedelayedEvents[K] extends MessagesEvent ? K : never
}[keyof RedelayedEvents]

/** An event of one queue, made from a change of its messages. */
export type QueueEvent =
  | readonly [name: MessagesEventName, ids: readonly string[]]
  | readonly [name: 'progress', given: Omit<ProgressEvent, 'queue'>]

export type EventName = keyof RedelayedEvents
export type Listener<K extends EventName> = (event: RedelayedEvents[K]) => void

/** Emits an event to the user's listeners; an error that a listener throws never reaches the emitter. */
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

  hasListener(name: keyof M & string): boolean {
    return this.#emitter.listenerCount(name) > 0
  }

  get isEmpty(): boolean {
    return this.#emitter.eventNames().length === 0
  }

  removeAll(): void {
    this.#emitter.removeAllListeners()
  }

  /** Calls the listeners, and `onThrow` with an error that one throws. Returns whether there was a listener. */
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

/** Cleans errors of servers and codecs; an error that a handler threw is the user's own and stays as it is. */
function withCleanError<K extends EventName>(name: K, event: RedelayedEvents[K]): RedelayedEvents[K] {
  if (name === 'settled' || event instanceof RedelayedError) return event
  if (!('error' in event) || event.error === undefined) return event
  return Object.assign({}, event, { error: cleanError(event.error) })
}

/** The position of an event's change in the change stream of its queue. */
interface EventPosition {
  readonly epoch: string
  readonly id: string
}

/** The events of a client, and of its queue objects, each of which gets the events of its queue. */
export class EventHub {
  readonly client = new Events()
  readonly #byQueue = new Map<string, Set<Events>>()
  readonly #warnings: ProcessWarnings
  /** By queue, how many sources give the events of all processes, and the last change from any of them. */
  readonly #fromAll = new Map<string, { sources: number; rewinds: number; last: EventPosition | undefined }>()

  /** `warns`: important events without a listener become process warnings. */
  constructor(warns = true) {
    this.#warnings = new ProcessWarnings(warns)
  }

  /** The events for one queue object, which may consist of several queues, and the function that ends them. */
  forQueue(...queues: readonly string[]): { events: Events; end: () => void } {
    const events = new Events()
    for (const queue of queues) this.#byQueue.set(queue, (this.#byQueue.get(queue) ?? new Set()).add(events))
    const end = (): void => {
      events.removeAll()
      for (const queue of queues) {
        const sources = this.#byQueue.get(queue)
        if (sources?.delete(events) === true && sources.size === 0) this.#byQueue.delete(queue)
      }
    }
    return { events, end }
  }

  hasListener(name: EventName, queue: string): boolean {
    if (this.client.hasListener(name)) return true
    for (const source of this.#byQueue.get(queue) ?? []) if (source.hasListener(name)) return true
    return false
  }

  /** Emits what this client did, unless `fromAll` gives the queue's events of all processes. */
  messages(name: MessagesEventName, queue: string, ids: readonly string[], count: number = ids.length): void {
    if (name !== 'full' && this.#fromAll.has(queue)) return
    if (count > 0 && this.hasListener(name, queue)) this.emit(name, { queue, count, ids })
  }

  /** As `messages`, for a progress. */
  progress(queue: string, id: string, progress: unknown): void {
    if (!this.#fromAll.has(queue) && this.hasListener('progress', queue)) this.emit('progress', { queue, id, progress })
  }

  /**
   * From now on the events of a queue's messages come from this source, until `end`. Several sources give the same events, one earlier than
   * the other: each event is emitted once. A source that goes back follows a stream that began anew, and its events are emitted from there
   * on.
   */
  fromAll(queue: string): {
    emit: (position: EventPosition, events: readonly QueueEvent[]) => void
    end: () => void
  } {
    const given = this.#fromAll.get(queue) ?? { sources: 0, rewinds: 0, last: undefined }
    this.#fromAll.set(queue, given)
    given.sources++
    let { rewinds } = given
    let own: EventPosition | undefined
    return {
      emit: (position, events) => {
        if (!isAfter(position, own)) rewinds++
        own = position
        if (rewinds <= given.rewinds && !isAfter(position, given.last)) return
        given.rewinds = Math.max(rewinds, given.rewinds)
        given.last = position
        for (const [name, given] of events) {
          if (!this.hasListener(name, queue)) continue
          if (name === 'progress') this.emit(name, { queue, ...given })
          else this.emit(name, { queue, count: given.length, ids: given })
        }
      },
      end: () => {
        given.sources--
        if (given.sources === 0) this.#fromAll.delete(queue)
      },
    }
  }

  readonly emit: Emit = (name, given) => {
    const event = withCleanError(name, given)
    let handled = this.client.emit(name, event, this.#onThrow)
    const queue = 'queue' in event ? event.queue : undefined
    if (queue !== undefined) {
      for (const source of this.#byQueue.get(queue) ?? []) handled = source.emit(name, event, this.#onThrow) || handled
    }
    if (!handled) this.#warn(name, event)
  }

  readonly #onThrow = (thrown: unknown): void => {
    this.#warnings.error(new RedelayedError('ERR_LISTENER', 'a listener threw', { cause: toError(thrown) }))
  }

  /** Warns of an event without a listener that must not stay unseen. */
  #warn(name: EventName, event: RedelayedEvents[EventName]): void {
    if (event instanceof RedelayedError) this.#warnings.error(event)
    else if ('message' in event) this.#warnings.once(event.code, event.message, name)
    else if ('reason' in event && event.reason === 'undecodable') {
      const why = event.error === undefined ? `queue ${quoted(event.queue)}: unreadable` : event.error.message
      const text = `${why}; what cannot be read is set aside or redelivered, see docs/quarantine.md`
      this.#warnings.once('REDELAYED_UNREADABLE', text, name)
    } else if ('outcome' in event && event.outcome === 'failed') {
      const which = event.task === undefined ? 'a handler' : `the handler of task ${quoted(event.task)}`
      const text = `queue ${quoted(event.queue)}: ${which} failed at attempt ${event.attempt}`
      this.#warnings.once('REDELAYED_HANDLER_FAILED', text, name, event.error)
    }
  }
}

/** Whether a position is later; in another epoch the ids begin anew. */
function isAfter(position: EventPosition, last: EventPosition | undefined): boolean {
  if (last?.epoch !== position.epoch) return true
  const [ms = 0, n = 0] = position.id.split('-').map(Number)
  const [lastMs = 0, lastN = 0] = last.id.split('-').map(Number)
  return ms > lastMs || (ms === lastMs && n > lastN)
}
