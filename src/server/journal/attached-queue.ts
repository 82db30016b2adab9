import type { Bytes } from '../database/tables.js'
import { toBytes } from '../database/tables.js'
import type { JournalledQueue } from './journalled-queue.js'
import { QueueClock } from './queue-clock.js'

/** The group of the journal in each queue's change stream. */
export const JOURNAL_GROUP = 'journal'

/** A queue whose messages the journal has. */
export class AttachedQueue<T = unknown> {
  readonly queue: JournalledQueue<T>
  /** Its name as the tables have it. */
  readonly key: Bytes
  readonly clock: QueueClock
  #defaults: { readonly delay: number; readonly timeToLive: number | undefined } = { delay: 0, timeToLive: undefined }

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

  /** What messages get that say nothing of their own. */
  get defaults(): { readonly delay: number; readonly timeToLive: number | undefined } {
    return this.#defaults
  }

  /** Has the queue keep what the journal needs, where it keeps its changes otherwise. Where it keeps none, the drain turns them on. */
  async prepare(): Promise<void> {
    const { changes } = await this.queue.getConfig()
    if (changes) await this.queue.keepChanges(JOURNAL_GROUP)
  }

  /** Asks Redis for its clock and the queue's configuration. */
  async refresh(): Promise<void> {
    await this.clock.refresh()
    const { delay, timeToLive } = await this.queue.getConfig()
    this.#defaults = { delay: delay ?? 0, timeToLive: timeToLive ?? undefined }
  }
}
