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

  /** Takes the first readable element at an end. */
  async pop(end: End): Promise<T | null> {
    for (;;) {
      const bytes = await this.store.pop(end)
      if (bytes === null) return null
      const [value] = await this.quarantine.accept([bytes])
      if (value !== undefined) return value
    }
  }

  /** Takes up to `max` elements at an end, the nearest to it first. */
  drain(end: End, max: number): Promise<T[]> {
    return this.handle.trackOperation(async () => {
      const values: T[] = []
      for (let isLast = false; !isLast && values.length < max;) {
        const page = await this.store.drain(end, max - values.length).catch((error: unknown) => {
          if (values.length === 0) throw error
          return { elements: [], isLast: true } // what was taken before must reach the caller
        })
        values.push(...(await this.quarantine.accept(page.elements)))
        isLast = page.isLast
      }
      return values
    })
  }
}
