import { EventEmitter } from 'node:events'
import type { ReliableQueue, ShardedReliableQueue } from 'redelayed'
import {
  resolveJournalOptions,
  type JournalMode,
  type JournalOptions,
  type JournalSettings,
} from '../config/journal-options.js'
import { JournalDatabase } from '../database/database.js'
import { Accepter, type AcceptPoints } from './accepter.js'
import { adopt } from './adopt.js'
import { AttachedQueue } from './attached-queue.js'
import { Drain } from './drain.js'
import { JournalQueue } from './journal-queue.js'
import type { JournalledQueue } from './journalled-queue.js'
import { Positions } from './positions.js'
import { prune, type Pruned } from './prune.js'
import { asJournalled } from './reliable.js'
import { Repair, type RepairPoints, type RestoreProgress } from './repair.js'
import type { OnBadRow } from './restore-rows.js'
import { writersOf, type Writers } from './rows.js'
import { ShardedJournalQueue } from './sharded-journal-queue.js'
import { Watch } from './watch.js'

export interface JournalEvents {
  /** Something in the background failed; it is tried again. */
  error: [error: unknown, queue: string]
  /** Redis has lost data, or went back in time: what it lacks is put back. */
  forgotten: [queue: string]
  /** After each page of a restore. */
  restoring: [progress: RestoreProgress]
  /** Redis has everything again. */
  restored: [queue: string]
  /** Messages that were accepted and never came to Redis were added. */
  adopted: [queue: string, count: number]
}

/** Where the fault bench stops a process. */
export type FaultPoints = AcceptPoints & RepairPoints

/** How long after a look at the change stream the next one comes. */
const DRAIN_MS = 100
const PRUNE_MS = 60_000

/** The parts that need a database. */
interface Parts {
  readonly database: JournalDatabase
  readonly drain: Drain
  readonly accepter: Accepter
  readonly repair: Repair
  readonly writers: Writers
}

/**
 * A SQL database that has every message of the queues that are attached to it, so that Redis can lose everything. See docs/journal.md.
 */
export class Journal extends EventEmitter<JournalEvents> {
  readonly mode: JournalMode
  readonly #settings: JournalSettings
  readonly #parts: Parts | undefined
  readonly #queues = new Map<string, Promise<JournalQueue<never>>>()
  readonly #watches: Watch[] = []
  readonly #pruning: Watch | undefined

  /** @internal */
  constructor(settings: JournalSettings, database: JournalDatabase | undefined, points: FaultPoints) {
    super()
    this.mode = settings.mode
    this.#settings = settings
    if (database === undefined) return
    const positions = new Positions(database)
    const writers = writersOf(database)
    const drain = new Drain(database, positions, writers)
    this.#parts = {
      database,
      drain,
      accepter: new Accepter(database, writers, drain, { ...settings, points }),
      repair: new Repair(database, positions, drain, {
        rate: settings.restoreRate,
        adoptAfterMs: settings.adoptAfterMs,
        onBadRow: this.#onBadRow,
        points,
      }),
      writers,
    }
    this.#pruning = new Watch(
      async () => void (await this.prune()),
      PRUNE_MS,
      (error) => this.#report(error, ''),
    )
  }

  /**
   * Attaches a queue and the queue of its dead letters: from now on their changes are written into SQL, and what Redis loses is put back.
   * Messages are to be added through what it resolves with; others reach SQL only by the change stream. A sharded queue is attached shard by
   * shard. While Redis does not answer, it resolves, too.
   */
  attach<T>(queue: ShardedReliableQueue<T>): Promise<ShardedJournalQueue<T>>
  attach<T>(queue: ReliableQueue<T> | JournalledQueue<T>): Promise<JournalQueue<T>>
  async attach<T>(
    queue: ReliableQueue<T> | JournalledQueue<T> | ShardedReliableQueue<T>,
  ): Promise<JournalQueue<T> | ShardedJournalQueue<T>> {
    if ('shardCount' in queue) {
      return new ShardedJournalQueue(queue, await Promise.all(queue.shards.map((shard) => this.attach(shard))))
    }
    const known = this.#queues.get(queue.name)
    if (known !== undefined) return known as Promise<JournalQueue<unknown>> as Promise<JournalQueue<T>>
    if (!('deadLetters' in queue)) return this.#add(new AttachedQueue(queue))
    const deadLetters = new AttachedQueue(asJournalled(queue.deadLetters), { isForDeadLetters: true })
    const attached = new AttachedQueue(asJournalled(queue), { deadLetters })
    const [handle] = await Promise.all([this.#add(attached), this.#add(deadLetters)])
    return handle
  }

  /** Removes what became final longer ago than the retention, and the changes of that time. */
  async prune(olderThanMs = this.#settings.retentionMs): Promise<Pruned> {
    if (this.#parts === undefined) return { messages: 0, flow: 0 }
    return prune(this.#parts.database, Date.now() - olderThanMs)
  }

  /** Ends what runs in the background and closes the database. The queues stay open. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#queues.values())
    await Promise.all([this.#pruning?.stop(), ...this.#watches.map((watch) => watch.stop())])
    await this.#parts?.accepter.idle()
    await this.#parts?.database.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #add<T>(attached: AttachedQueue<T>): Promise<JournalQueue<T>> {
    const handle = this.#attach(attached)
    this.#queues.set(attached.queue.name, handle as Promise<JournalQueue<never>>)
    return handle
  }

  async #attach<T>(attached: AttachedQueue<T>): Promise<JournalQueue<T>> {
    const { queue } = attached
    const parts = this.#parts
    const handle = new JournalQueue(attached, this.mode, parts)
    if (parts === undefined) return handle
    parts.drain.add(attached)
    let sweptAt = -Infinity
    let isPrepared = false
    const prepare = async (): Promise<void> => {
      await attached.refresh()
      await attached.prepare()
      await this.#drain(attached, parts, 2) // as many as turning the changes on takes
      isPrepared = true
    }
    const step = async (): Promise<void> => {
      if (!isPrepared) await prepare()
      await this.#catchUp(attached, parts)
      if (performance.now() - sweptAt < this.#settings.sweepMs) return
      await this.#sweep(attached, parts)
      sweptAt = performance.now()
    }
    if (!this.#settings.background) {
      await attached.refresh()
      return handle
    }
    await prepare().catch((error: unknown) => this.#report(error, queue.name))
    this.#watches.push(new Watch(step, DRAIN_MS, (error) => this.#report(error, queue.name)))
    return handle
  }

  /** Reads the change stream, and puts back what Redis has forgotten. */
  async #catchUp<T>(attached: AttachedQueue<T>, parts: Parts): Promise<void> {
    const { repair, database } = parts
    const one = attached as AttachedQueue
    const { name } = attached.queue
    await this.#drain(attached, parts)
    if (!(await new Positions(database).load(attached.key)).isRepairing) return
    const isDone = await repair.run(one, { onProgress: (progress) => this.emit('restoring', progress) })
    if (isDone) this.emit('restored', name)
  }

  async #drain<T>(attached: AttachedQueue<T>, { drain }: Parts, pages?: number): Promise<void> {
    const { hasForgotten } = await drain.run(attached, pages)
    if (hasForgotten) this.emit('forgotten', attached.queue.name)
  }

  async #sweep<T>(attached: AttachedQueue<T>, { database, writers, drain, accepter }: Parts): Promise<void> {
    await accepter.retryRefusals()
    await attached.refresh()
    const how = { olderThanMs: this.#settings.adoptAfterMs, onBadRow: this.#onBadRow }
    const count = await adopt(database, writers, drain, attached, how)
    if (count > 0) this.emit('adopted', attached.queue.name, count)
  }

  readonly #onBadRow: OnBadRow = (error, queue) => this.#report(error, queue)

  /** Without a listener an error in the background is no reason to end the process. */
  #report(error: unknown, queue: string): void {
    if (this.listenerCount('error') > 0) this.emit('error', error, queue)
  }
}

/**
 * Opens a journal: connects to its database and makes its tables.
 *
 * @throws InvalidArgumentError an option is not what it should be
 * @throws JournalError its `code` says what is wrong with the database; nothing is left open
 *
 * @example
 * ```ts
 * const journal = await createJournal({ url: 'sqlite:./journal.db' })
 * const mails = await journal.attach(client.getReliableQueue('mails'))
 * await mails.add({ to: 'ada' }, { delay: 60_000 })
 * ```
 */
export async function createJournal(options: JournalOptions, points: FaultPoints = {}): Promise<Journal> {
  const settings = resolveJournalOptions(options)
  const { target, migrate } = settings
  const database = target && (await JournalDatabase.open(target, { migrate }))
  return new Journal(settings, database, points)
}
