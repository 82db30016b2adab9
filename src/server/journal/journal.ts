import { EventEmitter } from 'node:events'
import { UnsupportedOperationError, type ReliableQueue } from 'redelayed'
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
import { writersOf } from './rows.js'
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
}

interface Attached {
  readonly attached: AttachedQueue
  readonly handle: JournalQueue<unknown>
  readonly watch: Watch | undefined
}

/**
 * A SQL database that has every message of the queues that are attached to it, so that Redis can lose everything. See docs/journal.md.
 */
export class Journal extends EventEmitter<JournalEvents> {
  readonly mode: JournalMode
  readonly #settings: JournalSettings
  readonly #parts: Parts | undefined
  readonly #queues = new Map<string, Attached>()
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
      accepter: new Accepter(database, writers, { ...settings, points }),
      repair: new Repair(database, positions, drain, { rate: settings.restoreRate, points }),
    }
    this.#pruning = new Watch(
      async () => void (await this.prune()),
      PRUNE_MS,
      (error) => this.#report(error, ''),
    )
  }

  /**
   * Attaches a queue and the queue of its dead letters: from now on their changes are written into SQL, and what Redis loses is put back.
   * Messages are to be added through what it resolves with; others reach SQL only by the change stream.
   *
   * @throws UnsupportedOperationError this version of `redelayed` cannot read the change stream by pages
   */
  async attach<T>(queue: ReliableQueue<T> | JournalledQueue<T>): Promise<JournalQueue<T>> {
    const known = this.#queues.get(queue.name)
    if (known !== undefined) return known.handle as JournalQueue<T>
    if (this.#parts !== undefined) assertReadable(queue)
    const handle = await this.#attach('deadLetters' in queue ? asJournalled(queue) : queue)
    if ('deadLetters' in queue) await this.#attach(asJournalled(queue.deadLetters))
    return handle
  }

  /** Removes what became final longer ago than the retention, and the changes of that time. */
  async prune(olderThanMs = this.#settings.retentionMs): Promise<Pruned> {
    if (this.#parts === undefined) return { messages: 0, flow: 0 }
    return prune(this.#parts.database, Date.now() - olderThanMs)
  }

  /** Ends what runs in the background and closes the database. The queues stay open. */
  async close(): Promise<void> {
    await Promise.all([this.#pruning?.stop(), ...[...this.#queues.values()].map(({ watch }) => watch?.stop())])
    await this.#parts?.accepter.idle()
    await this.#parts?.database.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #attach<T>(queue: JournalledQueue<T>): Promise<JournalQueue<T>> {
    const attached = new AttachedQueue(queue)
    const parts = this.#parts
    const handle = new JournalQueue(attached, this.mode, parts)
    let sweptAt = -Infinity
    const step = async (): Promise<void> => {
      if (parts === undefined) return
      await this.#catchUp(attached, parts)
      if (performance.now() - sweptAt < this.#settings.sweepMs) return
      await this.#sweep(attached, parts)
      sweptAt = performance.now()
    }
    if (parts !== undefined) await attached.refresh().catch((error: unknown) => this.#report(error, queue.name))
    const watch = parts && new Watch(step, DRAIN_MS, (error) => this.#report(error, queue.name))
    this.#queues.set(queue.name, {
      attached: attached,
      handle: handle,
      watch,
    })
    return handle
  }

  /** Reads the change stream, and puts back what Redis has forgotten. */
  async #catchUp<T>(attached: AttachedQueue<T>, { drain, repair, database }: Parts): Promise<void> {
    const one = attached as AttachedQueue
    const { name } = attached.queue
    const { hasForgotten } = await drain.run(one)
    if (hasForgotten) this.emit('forgotten', name)
    if (!(await new Positions(database).load(attached.key)).isRepairing) return
    const isDone = await repair.run(one, { onProgress: (progress) => this.emit('restoring', progress) })
    if (isDone) this.emit('restored', name)
  }

  async #sweep<T>(attached: AttachedQueue<T>, { database, drain }: Parts): Promise<void> {
    await attached.refresh()
    const count = await adopt(database, drain, attached, this.#settings.adoptAfterMs)
    if (count > 0) this.emit('adopted', attached.queue.name, count)
  }

  /** Without a listener an error in the background is no reason to end the process. */
  #report(error: unknown, queue: string): void {
    if (this.listenerCount('error') > 0) this.emit('error', error, queue)
  }
}

function assertReadable(queue: object): void {
  const has = queue as Partial<JournalledQueue>
  if (typeof has.readChanges === 'function' && typeof has.releaseChanges === 'function') return
  throw new UnsupportedOperationError(
    'the journal needs readChanges and releaseChanges of the queue, which this version of redelayed lacks',
  )
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
