import type { StoredQueueConfig } from 'redelayed'
import type { Bytes } from '../database/tables.js'
import { toBytes } from '../database/tables.js'
import type { JournalledQueue } from './journalled-queue.js'
import { QueueClock } from './queue-clock.js'

/** The group of the journal in each queue's change stream. */
export const JOURNAL_GROUP = 'journal'

interface Defaults {
  readonly delay: number
  readonly timeToLive: number | undefined
}

/** A queue that is attached to the journal. */
export class AttachedQueue<T = unknown> {
  readonly queue: JournalledQueue<T>
  /** Its name as the tables have it. */
  readonly key: Bytes
  readonly clock: QueueClock
  /** Makes the journal look for changes of the queue soon. */
  wake: () => void = () => undefined
  /** The journal has detached the queue. */
  isDetached = false
  #defaults: Defaults | undefined

  /** Whether messages come here with the failures of another queue, which the change stream does not have. */
  readonly isForDeadLetters: boolean
  /** The queue of its dead letters, which is attached too. */
  readonly deadLetters: AttachedQueue | undefined

  constructor(
    queue: JournalledQueue<T>,
    how: { readonly isForDeadLetters?: boolean; readonly deadLetters?: AttachedQueue | undefined } = {},
  ) {
    this.isForDeadLetters = how.isForDeadLetters ?? false
    this.deadLetters = how.deadLetters
    this.queue = queue
    this.key = toBytes(queue.name)
    this.clock = new QueueClock(() => queue.now())
  }

  /** The delay and time to live of messages that have none of their own; `undefined` until Redis or SQL has answered. */
  get defaults(): Defaults | undefined {
    return this.#defaults
  }

  /** Makes a queue that already keeps changes keep what the journal needs. If it keeps none, the drain turns them on. */
  async prepare(): Promise<void> {
    const { changes } = await this.queue.getConfig()
    if (changes) await this.queue.keepChanges(JOURNAL_GROUP)
  }

  /** Asks Redis for its clock and the queue's configuration; resolves with the configuration. */
  async refresh(): Promise<StoredQueueConfig> {
    await this.clock.refresh()
    const config = await this.queue.getConfig()
    // a Redis that has lost everything has lost the configuration too, until the journal restores it
    if (config.changes || this.#defaults === undefined) this.configured(config)
    return config
  }

  configured({ delay, timeToLive }: StoredQueueConfig): void {
    this.#defaults = { delay: delay ?? 0, timeToLive: timeToLive ?? undefined }
  }
}
