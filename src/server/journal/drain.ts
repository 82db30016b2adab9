import type { JournalDatabase } from '../database/database.js'
import { toText } from '../database/tables.js'
import { applyChange, type ChangeTime, type Draft } from './apply-change.js'
import { JOURNAL_GROUP, type AttachedQueue } from './attached-queue.js'
import { clearDrafts, removeClearedRows } from './cleared.js'
import { DraftRows } from './draft-rows.js'
import { flowOf, idsOf, timeOf, upToClear, withoutRestored } from './journal-batches.js'
import type { ChangeReading, JournalBatch, JournalChange } from './journalled-queue.js'
import { withoutKnown } from './known-content.js'
import { idParts, type Position, type Positions } from './positions.js'
import { QueueConfigs } from './queue-configs.js'
import { Reread } from './reread.js'
import type { Row, Writers } from './rows.js'
import { bySize, type LargeMessage } from './too-large.js'
import { takeIn, unrecorded } from './unrecorded.js'

/** The most entries read and written together. */
const PAGE = 200
/** The clock of a Redis that takes over can be ahead of its predecessor's, but by less than this. */
const AHEAD_MS = 86_400_000

/** An entry of a stream. */
type End = Pick<Position, 'epoch' | 'id' | 'digest'>

/** How a drain ended: at the end of the stream, or because Redis has forgotten something. */
export type Drained = { readonly changes: number; readonly hasForgotten: boolean }

/** Events of any drain: a watch, an addition or a cancel can be the first to see them. */
export interface DrainEvents {
  readonly forgotten: (queue: string) => void
  /** SQL does not have the message, or its new payload. */
  readonly tooLarge: (queue: string, message: LargeMessage) => void
  /** About `count` messages of a queue that began anew were not read: SQL may lack them. */
  readonly leftOut: (queue: string, count: number) => void
}

/** `until`: the time of the first entry that waits for another queue; all older entries are written. */
type RunResult = Drained & { readonly until: number }

/**
 * Writes the changes of a queue's stream into SQL, in order. One transaction writes the rows and moves the position from its known value:
 * of two instances that drain at once only one succeeds, so each change is written once. The stream is released after the commit.
 */
export class Drain {
  readonly #database: JournalDatabase
  readonly #positions: Positions
  readonly #writers: Writers
  readonly #reread: Reread
  readonly #rows: DraftRows
  readonly #queues = new Map<string, AttachedQueue>()
  readonly #configs: QueueConfigs
  readonly #events: DrainEvents
  /**
   * The newest position in SQL that this process knows of each stream: an older one would hide that Redis went back to a time between the
   * two.
   */
  readonly #ends = new Map<string, End>()

  constructor(
    database: JournalDatabase,
    positions: Positions,
    writers: Writers,
    configs = new QueueConfigs(database),
    events: Partial<DrainEvents> = {},
  ) {
    this.#configs = configs
    this.#events = { forgotten: () => undefined, tooLarge: () => undefined, leftOut: () => undefined, ...events }
    this.#reread = new Reread()
    this.#database = database
    this.#positions = positions
    this.#writers = writers
    this.#rows = new DraftRows(database, writers)
  }

  /** From now on, a move from another queue to this one is written only after this queue was drained. */
  add(attached: AttachedQueue): void {
    this.#queues.set(attached.queue.name, attached)
  }

  remove({ queue }: AttachedQueue): void {
    this.#queues.delete(queue.name)
    this.#ends.delete(queue.name)
  }

  /** Whether the stream has entries after the end that this process knows, or was reset; asks only Redis. */
  async hasNews({ queue }: AttachedQueue): Promise<boolean> {
    const end = this.#ends.get(queue.name)
    if (end === undefined) return true
    const { status, epoch, batches } = await queue.readChanges(end, 1)
    return status !== 'ok' || epoch !== end.epoch || batches.length > 0
  }

  /**
   * Drains up to the end that the stream has at the call, as others may keep writing, or at most `pages` pages. @throws the reason of
   * `signal`
   */
  async run(
    attached: AttachedQueue,
    { pages = Infinity, signal }: { readonly pages?: number; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<Drained> {
    const { changes, hasForgotten } = await this.#run(attached, pages, new Map(), signal)
    return { changes, hasForgotten }
  }

  /** `waiting`: the queues that wait for this drain, each with the time of its first entry that SQL lacks. */
  async #run(
    attached: AttachedQueue,
    pages: number,
    waiting: ReadonlyMap<AttachedQueue, number>,
    signal: AbortSignal | undefined,
  ): Promise<RunResult> {
    let changes = 0
    let last: string | null = null
    for (let page = 0; page < pages; page++) {
      signal?.throwIfAborted()
      const position = await this.#positions.load(attached.key)
      this.#know(attached, position)
      if (last !== null && !isAfter(last, position.id)) break
      const { status, epoch, batches: read, last: newest } = await attached.queue.readChanges(position, PAGE)
      last = status === 'ok' ? (last ?? newest) : null
      if (status !== 'ok') {
        if (!(await this.#begin(attached, position, status))) continue
        this.#events.forgotten(attached.queue.name)
        return { changes, hasForgotten: true, until: -Infinity }
      }
      const cut = await this.#followMoves(attached, { epoch, batches: read }, waiting, signal)
      if (cut === 'again') continue
      const batches = upToClear(read.slice(0, cut))
      if (read.length > 0 && batches.length === 0) return { changes, hasForgotten: false, until: timeOf(read[0]) }
      const { id, digest = null } = batches.at(-1)?.position ?? {}
      // This is the queue's epoch when the page was read: later entries belong to it, or another epoch has begun.
      if (id === undefined && position.epoch === epoch) break
      await removeClearedRows(this.#database, attached, position.generation, batches[0], signal)
      const end = id === undefined ? { ...position, epoch } : { epoch, id, digest }
      if (await this.#write(attached, position, end, batches)) {
        this.#know(attached, end)
        changes += batches.reduce((sum, batch) => sum + batch.changes.length, 0)
        if (id !== undefined) await attached.queue.releaseChanges(JOURNAL_GROUP, id)
      }
    }
    return { changes, hasForgotten: false, until: Infinity }
  }

  #know({ queue, isDetached }: AttachedQueue, end: End): void {
    // after a new beginning only the drain can find out whether there are entries
    if (end.epoch === null || isDetached) this.#ends.delete(queue.name)
    else this.#ends.set(queue.name, end)
  }

  /**
   * A message that goes to another queue becomes final here. Before that is written, SQL has to know the message there: otherwise, if Redis
   * loses it in between, neither queue would put it back. Resolves with the number of entries of the page that may be written.
   *
   * Redis can lose data between the read of the page and the drain of the other queue, and another drain may already have handled that: the
   * other queue then looks intact, without the message. So Redis must still have the page after that drain.
   */
  async #followMoves(
    attached: AttachedQueue,
    { epoch, batches }: Pick<ChangeReading, 'epoch' | 'batches'>,
    waiting: ReadonlyMap<AttachedQueue, number>,
    signal: AbortSignal | undefined,
  ): Promise<number | 'again'> {
    const targets = batches.map(({ changes }) => new Set(changes.flatMap((change) => this.#targetOf(attached, change))))
    const others = new Set(targets.flatMap((some) => [...some]))
    const last = batches.at(-1)
    if (last === undefined || others.size === 0) return batches.length
    const until = new Map(waiting)
    const nested = new Map(waiting).set(attached, timeOf(batches[0]))
    for (const target of others) {
      if (nested.has(target)) continue
      const drained = await this.#run(target, Infinity, nested, signal)
      // the other queue has begun anew: this page can be from before
      if (drained.hasForgotten) return 'again'
      until.set(target, drained.until)
    }
    const { status } = await attached.queue.readChanges({ ...last.position, epoch }, 1)
    if (status !== 'ok') return 'again'
    const isWritten = (batch: JournalBatch, target: AttachedQueue): boolean =>
      timeOf(batch) < (until.get(target) ?? Infinity)
    const end = batches.findIndex((batch, at) => [...(targets[at] ?? [])].some((target) => !isWritten(batch, target)))
    // When queues wait for each other's entry of the same millisecond, the outermost queue writes one entry and so breaks the cycle.
    if (end === 0 && waiting.size === 0) return 1
    return end < 0 ? batches.length : end
  }

  #targetOf({ queue }: AttachedQueue, { change, to }: JournalChange): AttachedQueue[] {
    const name = change === 'dead' ? queue.deadLettersName : to
    const target = name === undefined ? undefined : this.#queues.get(name)
    return target === undefined ? [] : [target]
  }

  /** Begins a new generation if Redis has forgotten something; resolves with whether it did. */
  async #begin(attached: AttachedQueue, position: Position, status: ChangeReading['status']): Promise<boolean> {
    // first the dead letters: no message may die before its dead letter is recorded
    const { deadLetters } = attached
    if (deadLetters) await deadLetters.queue.keepChanges(JOURNAL_GROUP, await this.#configs.load(deadLetters.key))
    await attached.queue.keepChanges(JOURNAL_GROUP, await this.#configs.load(attached.key))
    const isNew = status === 'off' && position.epoch === null && position.id === '0-0'
    if (isNew && !(await this.#knowsAny(attached))) return false
    const beganAnew = status === 'off' || status === 'epoch'
    const { messages, leftOut } = beganAnew ? await unrecorded(attached) : { messages: [], leftOut: 0 }
    const { fitting, large } = bySize(messages, this.#database.mostBytes)
    const hasBegun = await this.#database.transaction(async (sql) => {
      if (!(await this.#positions.begin(sql, attached.key, position))) return false
      await takeIn(sql, this.#database, this.#writers, attached, position.generation + 1, fitting)
      return true
    })
    if (!hasBegun) return false
    for (const { id, payload } of large)
      this.#events.tooLarge(attached.queue.name, { id, bytes: payload.length, most: this.#database.mostBytes })
    if (leftOut > 0) this.#events.leftOut(attached.queue.name, leftOut)
    return true
  }

  async #knowsAny({ key }: AttachedQueue): Promise<boolean> {
    const row = await this.#database.run((sql) =>
      sql.selectFrom('redelayed_messages').select('state').where('queue', '=', key).limit(1).executeTakeFirst(),
    )
    return row !== undefined
  }

  async #write(attached: AttachedQueue, position: Position, end: End, page: readonly JournalBatch[]): Promise<boolean> {
    let large: readonly Row[] = []
    const isWritten = await this.#database.transaction(async (sql) => {
      // first, so that another instance waits here and then finds the position moved
      if (!(await this.#positions.advance(sql, attached.key, position, end))) return false
      const batches = await this.#reread.news(sql, attached.key, position.rereadUntil, page.flatMap(withoutRestored))
      const { rows: known, accepted } = await this.#rows.read(sql, attached, [...idsOf(batches)])
      const drafts = new Map<string, Draft>()
      for (const [id, row] of known) drafts.set(id, { row, write: 'state-only' })
      for (const batch of batches) this.#apply(attached, position.generation, withoutKnown(batch, accepted), drafts)
      const touched = [...drafts].filter(([id, { row }]) => row !== known.get(id))
      large = await this.#rows.write(sql, attached, known, touched)
      await this.#writers.flow.write(sql, flowOf(attached, batches))
      return true
    })
    if (isWritten)
      for (const { id, payload } of large)
        this.#events.tooLarge(attached.queue.name, {
          id: toText(id),
          bytes: payload.length,
          most: this.#database.mostBytes,
        })
    return isWritten
  }

  #apply(
    attached: AttachedQueue,
    generation: number,
    { position, at, changes }: JournalBatch,
    drafts: Map<string, Draft>,
  ): void {
    // a foreign entry can have any time, and a row changed in the future would never be pruned
    const latest = attached.clock.now() + AHEAD_MS
    const time: ChangeTime = { ...idParts(position.id), generation, at: Math.min(at, latest) }
    for (const change of changes) {
      if (change.change === 'cleared') {
        clearDrafts(drafts, time)
        continue
      }
      const draft = applyChange(attached, drafts.get(change.id), change, time)
      if (draft !== undefined) drafts.set(change.id, draft)
    }
  }
}

function isAfter(id: string, other: string): boolean {
  const [a, b] = [idParts(id), idParts(other)]
  return a.ms === b.ms ? a.seq > b.seq : a.ms > b.ms
}
