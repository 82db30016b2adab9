import type { JournalSettings } from '../config/journal-options.js'
import type { JournalDatabase } from '../database/database.js'
import type { Accepter } from './accepter.js'
import { adopt } from './adopt.js'
import type { AttachedQueue } from './attached-queue.js'
import type { Drain } from './drain.js'
import type { Positions } from './positions.js'
import type { QueueConfigs } from './queue-configs.js'
import type { Repair, RestoreProgress } from './repair.js'
import type { OnBadRow } from './restore-rows.js'
import type { Writers } from './rows.js'
import type { Found } from './watch.js'

/** What following a queue needs. */
export interface FollowParts {
  readonly database: JournalDatabase
  readonly positions: Positions
  readonly configs: QueueConfigs
  readonly drain: Drain
  readonly accepter: Accepter
  readonly repair: Repair
  readonly writers: Writers
}

/** Receives the findings. */
export interface FollowEvents {
  readonly restoring: (progress: RestoreProgress) => void
  readonly restored: (queue: string) => void
  readonly adopted: (queue: string, count: number) => void
  readonly badRow: OnBadRow
}

/** Follows one queue: writes its changes into SQL, puts back what Redis has forgotten, and adds what an instance that died left behind. */
export class Follow {
  readonly #attached: AttachedQueue
  readonly #parts: FollowParts
  readonly #settings: Pick<JournalSettings, 'sweepMs' | 'adoptAfterMs'>
  readonly #events: FollowEvents
  #isPrepared = false
  #sweptAt = -Infinity
  /** A restore may be under way, here or in another instance: only SQL knows. */
  #mustLook = true

  constructor(
    attached: AttachedQueue,
    parts: FollowParts,
    settings: Pick<JournalSettings, 'sweepMs' | 'adoptAfterMs'>,
    events: FollowEvents,
  ) {
    this.#attached = attached
    this.#parts = parts
    this.#settings = settings
    this.#events = events
  }

  /** Makes the queue keep its changes. */
  async prepare(signal: AbortSignal): Promise<void> {
    await this.#attached.refresh()
    await this.#attached.prepare()
    await this.#parts.drain.run(this.#attached, { pages: 2, signal }) // turning the changes on takes two
    await this.#refresh()
    this.#isPrepared = true
  }

  /** While the queue does not change, it asks SQL only once per sweep. */
  async step(signal: AbortSignal): Promise<Found> {
    if (!this.#isPrepared) await this.prepare(signal)
    const isSweep = performance.now() - this.#sweptAt >= this.#settings.sweepMs
    if (!isSweep && !this.#mustLook && !(await this.#parts.drain.hasNews(this.#attached))) return 'nothing'
    const found = await this.#catchUp(signal)
    if (isSweep) {
      await this.#sweep(signal)
      this.#sweptAt = performance.now()
    }
    return found
  }

  /** Reads the change stream, and puts back what Redis has forgotten. */
  async #catchUp(signal: AbortSignal): Promise<Found> {
    this.#mustLook = true
    const { changes } = await this.#parts.drain.run(this.#attached, { signal })
    const { isRepairing } = await this.#parts.positions.load(this.#attached.key)
    if (isRepairing) {
      const isDone = await this.#parts.repair.run(this.#attached, { signal, onProgress: this.#events.restoring })
      if (isDone) this.#events.restored(this.#attached.queue.name)
      return 'work'
    }
    this.#mustLook = false
    return changes > 0 ? 'work' : 'nothing'
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    const { database, writers, drain, accepter } = this.#parts
    await accepter.retryRefusals()
    await this.#refresh()
    const how = { olderThanMs: this.#settings.adoptAfterMs, onBadRow: this.#events.badRow, signal }
    const count = await adopt(database, writers, drain, this.#attached, how)
    if (count > 0) this.#events.adopted(this.#attached.queue.name, count)
  }

  /** A Redis that has lost its data has no configuration either: then SQL keeps the one that it has. */
  async #refresh(): Promise<void> {
    const config = await this.#attached.refresh()
    if (config.changes) await this.#parts.configs.save(this.#attached.key, config)
  }
}
