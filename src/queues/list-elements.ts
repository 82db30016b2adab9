import { ListStore, type End } from '../store/list-store.js'
import type { QueueContext, QueueIdentity } from './context.js'
import { Quarantine } from './quarantine.js'
import { QueueHandle } from './queue-handle.js'

/** Takes the elements of one list, without waiting. */
export class ListElements<T> {
  readonly identity: QueueIdentity<T>
  readonly handle: QueueHandle<T>
  readonly store: ListStore
  readonly quarantine: Quarantine<T>

  constructor(context: QueueContext, identity: QueueIdentity<T>) {
    this.identity = identity
    this.handle = new QueueHandle(context, identity)
    this.store = new ListStore(this.handle, identity.keys)
    this.quarantine = new Quarantine(this.handle, identity.keys)
  }

  get key(): string {
    return this.identity.keys.destination
  }

  /** Takes the first readable element at an end; `null` also if the time of a call ends before one is found. */
  async pop(end: End): Promise<T | null> {
    const until = this.#until
    for (;;) {
      const bytes = await this.store.pop(end)
      if (bytes === null) return null
      const [value] = await this.quarantine.accept([bytes])
      if (value !== undefined) return value
      if (performance.now() >= until) return null
    }
  }

  /**
   * Takes up to `max` elements at an end, the nearest to it first; none if no readable one is found before `until`, by the monotonic clock
   * (default: the end of the call's time).
   */
  drain(end: End, max: number, until: number = this.#until): Promise<T[]> {
    return this.handle.trackOperation(() => this.drainWithin(end, max, until))
  }

  /** `drain` as a part of an operation that a shutdown already waits for. */
  async drainWithin(end: End, max: number, until: number = this.#until): Promise<T[]> {
    const values: T[] = []
    for (let isLast = false; !isLast && values.length < max;) {
      const page = await this.store.drain(end, max - values.length).catch((error: unknown) => {
        if (values.length === 0) throw error
        return { elements: [], isLast: true } // the elements taken before must reach the caller
      })
      values.push(...(await this.quarantine.accept(page.elements)))
      isLast = page.isLast || (values.length === 0 && performance.now() >= until)
    }
    return values
  }

  /** Unreadable elements of other programs are set aside one by one, and there can be any number of them. */
  get #until(): number {
    return performance.now() + this.handle.context.settings.commandTimeout
  }
}
