import type { ReliableGroupStore } from '../store/reliable-group-store.js'
import { groupBytes } from './add-options.js'

/** What can be done with the groups of a queue's messages. */
export class Groups {
  readonly #store: ReliableGroupStore

  constructor(store: ReliableGroupStore) {
    this.#store = store
  }

  async pause(group: string): Promise<void> {
    await this.#store.pause(groupBytes('group', group), true)
  }

  async resume(group: string): Promise<void> {
    await this.#store.pause(groupBytes('group', group), false)
  }

  async paused(): Promise<string[]> {
    const names: string[] = []
    for await (const page of this.#store.paused()) for (const name of page) names.push(name.toString())
    return names
  }
}
