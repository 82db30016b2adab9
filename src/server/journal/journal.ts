import { EventEmitter } from 'node:events'
import type { ReliableQueue, ShardedReliableQueue } from 'redelayed'
import {
  resolveJournalOptions,
  type JournalMode,
  type JournalOptions,
  type JournalSettings,
} from '../config/journal-options.js'
import { JournalDatabase } from '../database/database.js'
import { toBytes } from '../database/tables.js'
import { JournalError } from '../errors.js'
import { Accepter, type AcceptPoints } from './accepter.js'
import { AttachedQueue } from './attached-queue.js'
import { Drain } from './drain.js'
import { Follow, type FollowEvents, type FollowParts } from './follow.js'
import { forgetQueue } from './forget-queue.js'
import { JournalQueue } from './journal-queue.js'
import type { JournalledQueue } from './journalled-queue.js'
import { atMost } from '../pause.js'
import { Positions } from './positions.js'
import { prune, type Pruned } from './prune.js'
import { QueueConfigs } from './queue-configs.js'
import { asJournalled } from './reliable.js'
import { Repair, type RepairPoints, type RestoreProgress } from './repair.js'
import type { OnBadRow } from './restore-rows.js'
import { writersOf } from './rows.js'
import { ShardedJournalQueue } from './sharded-journal-queue.js'
import { tooLarge } from './too-large.js'
import { leftOutError } from './unrecorded.js'
import { Watch } from './watch.js'

export interface JournalEvents {
  /** Background work failed; it is retried. */
  error: [error: unknown, queue: string]
  /** Redis has lost data or went back in time: the journal puts back what Redis lacks. */
  forgotten: [queue: string]
  /** After each page of a restore. */
  restoring: [progress: RestoreProgress]
  /** Redis has everything again. */
  restored: [queue: string]
  /** The journal added accepted messages that had never come to Redis. */
  adopted: [queue: string, count: number]
}

/** Where the fault bench stops a process. */
export type FaultPoints = AcceptPoints & RepairPoints

/** The pause between two reads of the change stream. */
const DRAIN_MS = 100
const PRUNE_MS = 60_000
/** The longest that `close` waits for work under way, and then for the connections. */
const CLOSE_MS = 10_000

/** A queue that is attached. */
interface Attachment {
  readonly attached: AttachedQueue
  readonly handle: Promise<JournalQueue<never>>
  watch?: Watch
}

/**
 * A SQL database with every message of its attached queues, so that Redis can lose everything. See docs/journal.md.
 */
export class Journal extends EventEmitter<JournalEvents> {
  readonly mode: JournalMode
  readonly #settings: JournalSettings
  readonly #parts: FollowParts | undefined
  readonly #queues = new Map<string, Attachment>()
  readonly #pruning: Watch | undefined
  readonly #stop = new AbortController()
  #closed: Promise<void> | undefined
  #tooLarge = 0
  #leftOut = 0

  /** @internal */
  constructor(settings: JournalSettings, database: JournalDatabase | undefined, points: FaultPoints) {
    super()
    this.mode = settings.mode
    this.#settings = settings
    if (database === undefined) return
    const positions = new Positions(database)
    const writers = writersOf(database)
    const configs = new QueueConfigs(database)
    const drain = new Drain(database, positions, writers, configs, {
      forgotten: (queue) => this.emit('forgotten', queue),
      tooLarge: (queue, message) => {
        this.#tooLarge++
        this.#report(tooLarge(message, 'Redis alone has it as it is, and the changes after it are in SQL'), queue)
      },
      leftOut: (queue, count) => {
        this.#leftOut += count
        this.#report(leftOutError(count), queue)
      },
    })
    this.#parts = {
      database,
      positions,
      configs,
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
    if (!settings.background) return
    this.#pruning = new Watch(
      async () => {
        await this.prune()
        return 'nothing'
      },
      PRUNE_MS,
      (error) => this.#report(error, ''),
    )
  }

  /**
   * The number of messages or new payloads in the change streams, read by this process, that are too large for the database: only Redis has
   * them.
   */
  get tooLarge(): number {
    return this.#tooLarge
  }

  /** About how many messages this process did not read from queues that began anew: if SQL does not know them, only Redis has them. */
  get leftOut(): number {
    return this.#leftOut
  }

  /** @internal for tests */
  get database(): JournalDatabase | undefined {
    return this.#parts?.database
  }

  /**
   * Attaches a queue and the queue of its dead letters: from now on the journal writes their changes into SQL and puts back what Redis
   * loses. Add messages through the queue that it resolves with; others reach SQL only by the change stream. A sharded queue is attached
   * shard by shard. It resolves even while Redis does not answer.
   *
   * @throws JournalError SQL could not be asked, or the journal was closed
   *
   * @example
   * ```ts
   * const mails = client.getReliableQueue<Mail>('mails')
   * const journalled = await journal.attach(mails)
   * await journalled.add({ to: 'ada' }, { delay: 60_000 })
   * ```
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
    if (known !== undefined) return known.handle as Promise<JournalQueue<unknown>> as Promise<JournalQueue<T>>
    if (!('deadLetters' in queue)) return this.#add(new AttachedQueue(queue))
    const deadLetters = new AttachedQueue(asJournalled(queue.deadLetters, true), { isForDeadLetters: true })
    const attached = new AttachedQueue(asJournalled(queue), { deadLetters })
    const [handle] = await Promise.all([this.#add(attached), this.#add(deadLetters)])
    return handle
  }

  /**
   * Removes messages that became final longer ago than the retention, and the recorded changes of that time.
   *
   * @throws JournalError SQL could not be asked
   *
   * @example
   * ```ts
   * console.log((await journal.prune(30 * 86_400_000)).messages)
   * ```
   */
  async prune(olderThanMs = this.#settings.retentionMs): Promise<Pruned> {
    if (this.#parts === undefined) return { messages: 0, flow: 0 }
    return prune(this.#parts.database, Date.now() - olderThanMs, this.#stop.signal)
  }

  /**
   * Detaches a queue and its dead letters: this process no longer follows them, and the handle from `attach` refuses to add messages. Their
   * rows in SQL stay, unless `forget` says that the queue is gone for good. Redis still keeps the queue's changes, for other processes that
   * have it attached and for the next `attach`; if there will be none, turn them off with `setConfig({ changes: false })`.
   *
   * @throws JournalError with `forget`: the rows could not be removed
   *
   * @example
   * ```ts
   * await journal.detach(client.getReliableQueue('mails'))
   * ```
   */
  async detach<T>(
    queue: ReliableQueue<T> | JournalledQueue<T> | ShardedReliableQueue<T>,
    { forget = false }: { readonly forget?: boolean } = {},
  ): Promise<void> {
    const names =
      'shardCount' in queue
        ? queue.shards.flatMap((shard) => [shard.name, shard.deadLetters.name])
        : [queue.name, ...('deadLetters' in queue ? [queue.deadLetters.name] : [])]
    const found = names.flatMap((name) => this.#queues.get(name) ?? [])
    for (const name of names) this.#queues.delete(name)
    for (const { attached } of found) {
      attached.isDetached = true
      this.#parts?.drain.remove(attached)
    }
    await Promise.allSettled(found.map(({ handle }) => handle))
    await Promise.all(found.map(async ({ watch }) => watch?.stop()))
    if (forget && this.#parts !== undefined)
      for (const name of names) await forgetQueue(this.#parts.database, toBytes(name), this.#stop.signal)
  }

  /**
   * Stops the background work and closes the database. The queues stay open. It waits for work under way, but not for a server that does
   * not answer: the next process continues unfinished work.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * await journal.close()
   * ```
   */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#stop.abort(new JournalError('ERR_JOURNAL_CLOSED', 'the journal was closed'))
    this.#parts?.accepter.close()
    await atMost(CLOSE_MS, this.#ended())
    await atMost(CLOSE_MS, this.#parts?.database.close())
  }

  async #ended(): Promise<void> {
    const all = [...this.#queues.values()]
    await Promise.allSettled(all.map(({ handle }) => handle))
    await Promise.all([this.#pruning?.stop(), ...all.map(({ watch }) => watch?.stop())])
    await this.#parts?.accepter.idle()
  }

  /**
   * As `close`, for `await using`.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * await journal[Symbol.asyncDispose]()
   * ```
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #add<T>(attached: AttachedQueue<T>): Promise<JournalQueue<T>> {
    const handle = this.#attach(attached)
    const one = attached as AttachedQueue
    this.#queues.set(attached.queue.name, { attached: one, handle: handle as Promise<JournalQueue<never>> })
    return handle
  }

  async #attach<T>(attached: AttachedQueue<T>): Promise<JournalQueue<T>> {
    const { queue } = attached
    const parts = this.#parts
    const how = { adoptAfterMs: this.#settings.adoptAfterMs, onBadRow: this.#onBadRow }
    const handle = new JournalQueue(attached, this.mode, parts && { ...parts, ...how })
    if (parts === undefined) return handle
    parts.drain.add(attached)
    const report = (error: unknown): void => this.#report(error, queue.name)
    // SQL has it also after Redis has lost it, or while Redis does not answer
    const known = await parts.configs.load(attached.key).catch(report)
    if (known) attached.configured(known)
    if (!this.#settings.background) {
      await attached.refresh()
      return handle
    }
    const follow = new Follow(attached, parts, this.#settings, this.#said)
    await follow.prepare(this.#stop.signal).catch(report)
    const attachment = this.#queues.get(queue.name)
    if (this.#stop.signal.aborted || attachment?.attached !== attached) return handle
    const watch = new Watch((signal) => follow.step(signal), DRAIN_MS, report)
    attached.wake = () => watch.wake()
    attachment.watch = watch
    return handle
  }

  readonly #onBadRow: OnBadRow = (error, queue) => this.#report(error, queue)

  readonly #said: FollowEvents = {
    restoring: (progress) => this.emit('restoring', progress),
    restored: (queue) => this.emit('restored', queue),
    adopted: (queue, count) => this.emit('adopted', queue, count),
    badRow: this.#onBadRow,
  }

  /** Without a listener, an error in the background must not end the process. */
  #report(error: unknown, queue: string): void {
    if (this.listenerCount('error') > 0) this.emit('error', error, queue)
  }
}

/**
 * Opens a journal: connects to its database and makes its tables.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an option is invalid
 * @throws JournalError its `code` says what is wrong with the database; no connection stays open
 *
 * @example
 * ```ts
 * const journal = await createJournal({ url: 'sqlite:./journal.db' })
 * const mails = await journal.attach(client.getReliableQueue('mails'))
 * await mails.add({ to: 'ada' }, { delay: 60_000 })
 * ```
 */
export function createJournal(options: JournalOptions): Promise<Journal> {
  return openJournal(options)
}

/** `createJournal`, and the points at which the tests plant faults. */
export async function openJournal(options: JournalOptions, points: FaultPoints = {}): Promise<Journal> {
  const settings = resolveJournalOptions(options)
  const { target, migrate } = settings
  const database = target && (await JournalDatabase.open(target, { migrate }))
  return new Journal(settings, database, points)
}
