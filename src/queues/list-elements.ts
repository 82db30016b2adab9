import { ListStore, type End } from '../store/list-store.js'
import type { QueueContext, QueueIdentity } from './context.js'
import { Quarantine } from './quarantine.js'
import { QueueHandle } from './queue-handle.js'

/** The elements of one list, and how they are taken without waiting. */
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

  /** Takes the first readable element at an end; `null` also where none was met within the time that a call may take. */
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
   * Takes up to `max` elements at an end, the nearest to it first. None where none could be read until then, by the monotonic clock; by default within the
   * time that a call may take.
   */
  drain(end: End, max: number, until: number = this.#until): Promise<T[]> {
    return this.handle.trackOperation(async () => {
      const values: T[] = []
      for (let isLast = false; !isLast && values.length < max;) {
        const page = await this.store.drain(end, max - values.length).catch((error: unknown) => {
          if (values.length === 0) throw error
          return { elements: [], isLast: true } // what was taken before must reach the caller
        })
        values.push(...(await this.quarantine.accept(page.elements)))
        isLast = page.isLast || (values.length === 0 && performance.now() >= until)
      }
      return values
    })
  }

  /** A stranger's elements that cannot be read are set aside one by one, and there can be any number of them. */
  get #until(): number {
    return performance.now() + this.handle.context.settings.commandTimeout
  }
}
