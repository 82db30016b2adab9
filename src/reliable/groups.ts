import { integer, onlyKnown } from '../options.js'
import type { ReliableGroupStore } from '../store/reliable-group-store.js'
import type { ReliableStore } from '../store/reliable-store.js'
import { groupBytes } from './add-options.js'
import { CONFIG_NAMES, readConfig, type StoredRateLimit } from './config.js'

/** How many messages of a group there are, by what becomes of them next, and its limits. */
export interface GroupCounts {
  readonly group: string
  /** Those of a paused group count as visible when their time has come. */
  readonly visible: number
  readonly delayed: number
  /** How many messages consumers have: what `groupConcurrency` counts. */
  readonly inFlight: number
  /** How many deliveries there were in the last `perMs` of `groupRateLimit`; 0 without one. */
  readonly delivered: number
  readonly paused: boolean
  /** Of each group; `null` for no limit. */
  readonly concurrency: number | null
  readonly rateLimit: StoredRateLimit | null
}

/** What waits for a limit or a pause, and how many groups and batches there are. */
export interface QueueTotals {
  /** Visible messages that no consumer could get now. */
  readonly heldBack: {
    /** Because the queue or their group is paused. */
    readonly byPause: number
    /** Because the queue, or their group, has as many messages with consumers as it may, or as many deliveries. */
    readonly byLimit: number
  }
  readonly groups: {
    /** Of which a message can be delivered. */
    readonly ready: number
    /** Of which one can be delivered later: it is delayed, or the rate of the group is used up. */
    readonly later: number
    readonly paused: number
  }
  readonly batches: {
    /** Open or closed. */
    readonly unfinished: number
    /** Finished, and not forgotten yet. */
    readonly finished: number
  }
}

const LIMITS = ['groupConcurrency', 'groupRateLimit']

/** What can be done with the groups of a queue's messages. */
export class Groups {
  readonly #store: ReliableGroupStore
  readonly #queue: ReliableStore

  constructor(store: ReliableGroupStore, queue: ReliableStore) {
    this.#store = store
    this.#queue = queue
  }

  async pause(group: string): Promise<void> {
    await this.#store.pause(groupBytes('group', group), true)
  }

  async resume(group: string): Promise<void> {
    await this.#store.pause(groupBytes('group', group), false)
  }

  /** Lets settings hold at once, names and values in turn, also for groups that are full or wait for their rate. */
  async apply(settings: readonly string[]): Promise<void> {
    if (LIMITS.some((name) => settings.includes(name))) await this.#store.refresh()
  }

  async paused(): Promise<string[]> {
    const names: string[] = []
    for await (const page of this.#store.paused()) for (const name of page) names.push(name.toString())
    return names
  }

  async totals(): Promise<QueueTotals> {
    const { paused, limited, groups, batches } = await this.#store.queueTotals()
    return { heldBack: { byPause: paused, byLimit: limited }, groups, batches }
  }

  async counts(group: string): Promise<GroupCounts> {
    const name = groupBytes('group', group)
    const [[counts], limits] = await Promise.all([this.#store.count([name]), this.#limits()])
    const none = { visible: 0, delayed: 0, inFlight: 0, delivered: 0, paused: false }
    return { group, ...(counts ?? none), ...limits }
  }

  async *list(options: { readonly pageSize?: number }): AsyncGenerator<GroupCounts, void> {
    onlyKnown('options', options, ['pageSize'])
    const pageSize = integer('pageSize', options.pageSize ?? 100, 1, 1_000)
    const limits = await this.#limits()
    for await (const names of this.#store.names(pageSize)) {
      const counts = names.length === 0 ? [] : await this.#store.count(names)
      for (const [at, each] of counts.entries()) yield { group: names[at]?.toString() ?? '', ...each, ...limits }
    }
  }

  async #limits(): Promise<Pick<GroupCounts, 'concurrency' | 'rateLimit'>> {
    const { groupConcurrency, groupRateLimit } = readConfig(await this.#queue.settings(CONFIG_NAMES))
    return { concurrency: groupConcurrency ?? null, rateLimit: groupRateLimit ?? null }
  }
}
