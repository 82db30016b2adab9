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

/** A queue whose messages the journal has. */
export class AttachedQueue<T = unknown> {
  readonly queue: JournalledQueue<T>
  /** Its name as the tables have it. */
  readonly key: Bytes
  readonly clock: QueueClock
  /** Has the queue's changes looked for soon. */
  wake: () => void = () => undefined
  /** Its journal has let go of it. */
  isDetached = false
  #defaults: Defaults | undefined

  /** Whether messages come here with the failures of another queue, which the change stream does not say. */
  readonly isForDeadLetters: boolean
  /** Where its messages go that die, as the journal has it. */
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

  /** What messages get that say nothing of their own; `undefined` while neither Redis nor SQL has said it. */
  get defaults(): Defaults | undefined {
    return this.#defaults
  }

  /** Has the queue keep what the journal needs, where it keeps its changes otherwise. Where it keeps none, the drain turns them on. */
  async prepare(): Promise<void> {
    const { changes } = await this.queue.getConfig()
    if (changes) await this.queue.keepChanges(JOURNAL_GROUP)
  }

  /** Asks Redis for its clock and the queue's configuration, which it resolves with. */
  async refresh(): Promise<StoredQueueConfig> {
    await this.clock.refresh()
    const config = await this.queue.getConfig()
    // a Redis that has lost everything has lost this, too, until the journal has seen it
    if (config.changes || this.#defaults === undefined) this.configured(config)
    return config
  }

  configured({ delay, timeToLive }: StoredQueueConfig): void {
    this.#defaults = { delay: delay ?? 0, timeToLive: timeToLive ?? undefined }
  }
}
