import { InvalidArgumentError } from '../errors.js'
import { integer, onlyKnown } from '../options.js'
import { MOST_PAUSED_TASKS, type ReliableGroupStore } from '../store/reliable-group-store.js'
import type { ReliableStore } from '../store/reliable-store.js'
import { groupBytes } from './add-options.js'
import { CONFIG_NAMES, readConfig, type StoredRateLimit } from './config.js'

/** The numbers of messages of a group by their state, and the group's limits. */
export interface GroupCounts {
  readonly group: string
  /** Visible messages; in a paused group, those whose time has come. */
  readonly visible: number
  readonly delayed: number
  /** Messages that consumers have, which `groupConcurrency` limits. */
  readonly inFlight: number
  /** Deliveries in the last `perMs` of `groupRateLimit`; 0 without one. */
  readonly delivered: number
  readonly paused: boolean
  /** The `groupConcurrency`; `null` for no limit. */
  readonly concurrency: number | null
  readonly rateLimit: StoredRateLimit | null
}

/** The messages that a limit or a pause holds back, what is paused, and the numbers of groups, batches and kept completed messages. */
export interface QueueTotals {
  /** Visible messages that no consumer could get now. */
  readonly heldBack: {
    /** The queue, the group or the task is paused; for a task, only messages that polls have set aside. */
    readonly byPause: number
    /** The queue or the group has reached its `concurrency` or its rate limit. */
    readonly byLimit: number
  }
  readonly groups: {
    /** Groups with a message that can be delivered now. */
    readonly ready: number
    /** Groups whose next message can be delivered later: it is delayed, or the group's rate is used up. */
    readonly later: number
    readonly paused: number
  }
  readonly tasks: { readonly paused: number }
  readonly batches: {
    /** Open or closed batches. */
    readonly unfinished: number
    /** Finished batches that are not forgotten yet. */
    readonly finished: number
  }
  /** The operations of the queue that `disableOperation` has paused. */
  readonly paused: { readonly add: boolean; readonly poll: boolean }
  /** The completed messages that `getCompleted` and `listCompleted` can read. */
  readonly completed: { readonly kept: number }
}

const LIMITS = ['groupConcurrency', 'groupRateLimit']

/** Pauses and counts the groups and the tasks of a queue's messages. */
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

  async pauseTask(task: string): Promise<void> {
    const outcome = await this.#store.pauseTask(groupBytes('task', task), true)
    if (outcome < 0) throw new InvalidArgumentError('task', `at most ${MOST_PAUSED_TASKS} paused at once`, task)
  }

  async resumeTask(task: string): Promise<void> {
    await this.#store.pauseTask(groupBytes('task', task), false)
  }

  async pausedTasks(): Promise<string[]> {
    return (await this.#store.pausedTasks()).map(String).sort()
  }

  /** Applies settings (names and values in turn) at once, also to groups that are full or wait for their rate. */
  async apply(settings: readonly string[]): Promise<void> {
    if (LIMITS.some((name) => settings.includes(name))) await this.#store.refresh()
  }

  async paused(): Promise<string[]> {
    const names: string[] = []
    for await (const page of this.#store.paused()) for (const name of page) names.push(name.toString())
    return names
  }

  async totals(): Promise<QueueTotals> {
    const { paused, limited, groups, batches, pausedTasks, addPaused, pollPaused, completed } =
      await this.#store.queueTotals()
    return {
      heldBack: { byPause: paused, byLimit: limited },
      groups,
      tasks: { paused: pausedTasks },
      batches,
      paused: { add: addPaused, poll: pollPaused },
      completed: { kept: completed },
    }
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
