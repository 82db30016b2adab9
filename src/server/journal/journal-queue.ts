import { InvalidArgumentError, RedelayedError, type AddItem } from 'redelayed'
import type { JournalMode } from '../config/journal-options.js'
import { bizKeyDigest } from '../database/biz-key.js'
import type { JournalDatabase } from '../database/database.js'
import { OPEN_STATES, toBytes, toText, type RowState } from '../database/tables.js'
import { JournalError } from '../errors.js'
import { addEach, markedOnce } from './add-each.js'
import type { AcceptItem } from './accept-item.js'
import type { Accepted, Accepter } from './accepter.js'
import type { AttachedQueue } from './attached-queue.js'
import type { RawMessage } from './journalled-queue.js'
import { restoreByHand, type RestoreOptions, type RestoreParts } from './restore.js'
import type { RestoreResult } from './restore-result.js'
import { messageOf, STATE_COLUMNS, type Row } from './rows.js'
import { SharedRun } from './shared-run.js'
import { verify, type Difference, type VerifyOptions } from './verify.js'

/** A message as SQL knows it. */
export interface JournalMessage extends RawMessage {
  readonly state: RowState
  readonly acceptedAt: number
  readonly updatedAt: number
}

/** One change of a message, as SQL has it. */
export interface FlowEntry {
  readonly change: string
  readonly at: number
  readonly attempt: number | null
  readonly client: string
  readonly error: string | null
}

type StateRow = Omit<Row, 'headers' | 'biz_key' | 'payload'>

interface Parts extends RestoreParts {
  readonly accepter: Accepter
}

/** A queue through its journal. For all that this class does not have, such as polling, use the queue itself. */
export class JournalQueue<T> {
  readonly name: string
  readonly #attached: AttachedQueue<T>
  readonly #mode: JournalMode
  readonly #parts: Parts | undefined
  /** Many concurrent cancels share one drain: each alone would read the same changes, and only one could write them. */
  readonly #drained = new SharedRun(() => this.#required.drain.run(this.#attached))

  /** @internal */
  constructor(attached: AttachedQueue<T>, mode: JournalMode, parts: Parts | undefined) {
    this.name = attached.queue.name
    this.#attached = attached
    this.#mode = mode
    this.#parts = parts
  }

  /**
   * Adds a message. In the mode `'sync'` it resolves when SQL and Redis have the message, or, with the outcome `'journalled'`, when SQL has
   * it and Redis could not be reached.
   *
   * @throws JournalError SQL could not write the message, and Redis does not have it; with the `outcome` `'unknown'` it may still be added
   *   later, and adding it again under the same id adds it once
   * @throws what `add` of the queue throws: it was not accepted
   *
   * @example
   * ```ts
   * const { outcome, dueAt } = await journalled.add({ to: 'ada' }, { id: 'welcome:ada', delay: 60_000 })
   * console.log(outcome, dueAt)
   * ```
   */
  async add(payload: T, options: Omit<AcceptItem<T>, 'payload'> = {}): Promise<Accepted> {
    const [result] = await this.addMany([{ ...options, payload }])
    if (result === undefined || result instanceof RedelayedError) throw result ?? new Error('there is no result')
    return result
  }

  /**
   * Adds many messages; resolves with the outcome of each, or the error why it was not accepted, in order.
   *
   * @throws JournalError, InvalidArgumentError `ERR_INVALID_ARGUMENT`: none was accepted
   *
   * @example
   * ```ts
   * const results = await journalled.addMany([{ payload: { to: 'ada' } }, { payload: { to: 'bob' }, delay: 60_000 }])
   * console.log(results.filter((result) => result instanceof Error))
   * ```
   */
  async addMany(items: Iterable<AcceptItem<T>>): Promise<(Accepted | RedelayedError)[]> {
    const list = [...items]
    for (const [at, item] of list.entries()) {
      if ((item as AddItem<T>).deduplicate !== undefined)
        throw new InvalidArgumentError(`items[${at}].deduplicate`, 'none: a journal knows messages by their ids', {})
    }
    if (this.#attached.isDetached)
      throw new JournalError('ERR_JOURNAL_CLOSED', 'the queue was detached from its journal')
    if (this.#mode === 'sync' && this.#parts !== undefined) return this.#parts.accepter.accept(this.#attached, list)
    const { queue, clock, defaults } = this.#attached
    const added = await addEach(
      queue,
      list.map((item) => markedOnce(item)),
      'keep',
    )
    this.#attached.wake()
    return added.map((result, at) => {
      if (result instanceof RedelayedError) return result
      const { id, outcome } = result
      const { date, delay = defaults?.delay ?? 0 } = list[at] ?? {}
      const isKept = outcome === 'kept' || outcome === 'duplicate'
      return { id, outcome: isKept ? 'kept' : 'added', dueAt: date?.getTime() ?? clock.now() + delay }
    })
  }

  /**
   * Removes a message that no consumer has. Once it has resolved with true, SQL knows the message as removed. The message can still come
   * back if a restore has read its row, or an `add` has committed it, and has not yet put it into Redis; see docs/journal.md.
   *
   * @throws JournalError the message may be gone from Redis, and may come back when Redis loses its data
   *
   * @example
   * ```ts
   * console.log(await journalled.cancel('welcome:ada'))
   * ```
   */
  async cancel(id: string): Promise<boolean> {
    const parts = this.#parts
    const { queue } = this.#attached
    if (parts === undefined) return queue.cancel(id)
    const before = await this.#stateOf(id)
    const isRemoved = await queue.cancel(id)
    if (!isRemoved && (await queue.contains(id))) return false // a consumer has it
    // Now SQL knows that it was removed, or, if Redis did not have it, that it was handled.
    await this.#drained.run()
    let isRowRemoved = await this.#removeRow(before)
    if (isRemoved && !isRowRemoved) {
      // The row was claimed meanwhile: the removed message was an older one under the id of the accepted row.
      const now = await this.#stateOf(id)
      if (now?.state === 'accepted' && now.accepted_at === before?.accepted_at)
        isRowRemoved = await this.#removeRow(now)
    }
    if (!isRemoved || !isRowRemoved) return isRemoved || isRowRemoved
    // The stream does not have the removal: a failover has lost it, and Redis has the message again.
    return (await queue.cancel(id)) || !(await queue.contains(id))
  }

  /**
   * Marks a row as removed: its message never came to Redis, or Redis has lost it. The row keeps its place in the order of all changes, so
   * that a change that SQL does not have yet, such as an addition under this id, overwrites it. False when the row has changed meanwhile.
   */
  async #removeRow(before: StateRow | undefined): Promise<boolean> {
    if (before === undefined || !OPEN_STATES.includes(before.state)) return false
    const { queue, id, state, accepted_at, updated_at, generation, change_ms, change_seq } = before
    const { numUpdatedRows } = await this.#database.run((sql) =>
      sql
        .updateTable('redelayed_messages')
        .set({ state: 'removed', updated_at: this.#attached.clock.now() })
        .where('queue', '=', queue)
        .where('id', '=', id)
        .where('state', '=', state)
        .where('accepted_at', '=', accepted_at)
        .where('updated_at', '=', updated_at)
        .where('generation', '=', generation)
        .where('change_ms', '=', change_ms)
        .where('change_seq', '=', change_seq)
        .executeTakeFirst(),
    )
    return numUpdatedRows > 0n
  }

  #stateOf(id: string): Promise<StateRow | undefined> {
    return this.#database.run((sql) =>
      sql
        .selectFrom('redelayed_messages')
        .select(STATE_COLUMNS)
        .where('queue', '=', this.#attached.key)
        .where('id', '=', toBytes(id))
        .executeTakeFirst(),
    )
  }

  /** @internal The ids whose messages are not final: according to SQL, or, where SQL can lag, to Redis. */
  async openOf(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const { key, queue } = this.#attached
    if (this.#mode !== 'sync') {
      const found = await Promise.all(ids.map(async (id) => ((await queue.contains(id)) ? [id] : [])))
      return new Set(found.flat())
    }
    const rows = await this.#database.run((sql) =>
      sql
        .selectFrom('redelayed_messages')
        .select('id')
        .where('queue', '=', key)
        .where('id', 'in', ids.map(toBytes))
        .where('state', 'in', OPEN_STATES)
        .execute(),
    )
    return new Set(rows.map(({ id }) => toText(id)))
  }

  /**
   * The message as SQL knows it, also when it is final; `null` when SQL does not know it, or not any more.
   *
   * @throws JournalError SQL could not be asked
   *
   * @example
   * ```ts
   * console.log((await journalled.get('welcome:ada'))?.state)
   * ```
   */
  async get(id: string): Promise<JournalMessage | null> {
    const row = await this.#database.run((sql) =>
      sql
        .selectFrom('redelayed_messages')
        .selectAll()
        .where('queue', '=', this.#attached.key)
        .where('id', '=', toBytes(id))
        .executeTakeFirst(),
    )
    return row === undefined
      ? null
      : { ...messageOf(row), state: row.state, acceptedAt: row.accepted_at, updatedAt: row.updated_at }
  }

  /**
   * The ids of messages with this business key, open and final ones, in the order of their bytes: at most `most` after `after`.
   * The key is the header `redelayed-biz-key`, which the service sets.
   *
   * @throws JournalError SQL could not be asked
   *
   * @example
   * ```ts
   * console.log(await journalled.idsWithBizKey('order:7', null, 100))
   * ```
   */
  async idsWithBizKey(bizKey: string, after: string | null, most: number): Promise<string[]> {
    const rows = await this.#database.run((sql) => {
      const query = sql
        .selectFrom('redelayed_messages')
        .select('id')
        .where('queue', '=', this.#attached.key)
        .where('biz_key', '=', bizKeyDigest(bizKey))
        .orderBy('id')
        .limit(most)
      return (after === null ? query : query.where('id', '>', toBytes(after))).execute()
    })
    return rows.map(({ id }) => toText(id))
  }

  /**
   * What happened to a message, the oldest first.
   *
   * @throws JournalError SQL could not be asked
   *
   * @example
   * ```ts
   * for (const { change, at } of await journalled.flow('welcome:ada')) console.log(change, at)
   * ```
   */
  async flow(id: string): Promise<FlowEntry[]> {
    const rows = await this.#database.run((sql) =>
      sql
        .selectFrom('redelayed_message_flow')
        .selectAll()
        .where('queue', '=', this.#attached.key)
        .where('id', '=', toBytes(id))
        .orderBy('seq')
        .execute(),
    )
    return rows.map(({ change, at, attempt, client, error }) => ({
      change,
      at,
      attempt,
      client,
      error: error === null ? null : toText(error),
    }))
  }

  /**
   * Reads the change stream to its end: then SQL knows everything that happened before the call. Resolves with the number of changes.
   *
   * @throws JournalError, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * console.log(await journalled.drain(), 'changes')
   * ```
   */
  async drain(): Promise<number> {
    return (await this.#required.drain.run(this.#attached)).changes
  }

  /**
   * The number of messages that a restore checks: those that SQL knows as open, with `expired` also those that expired.
   *
   * @throws JournalError SQL could not be asked
   *
   * @example
   * ```ts
   * console.log(await journalled.size(), 'open messages')
   * ```
   */
  async size({ expired = false }: Pick<RestoreOptions, 'expired'> = {}): Promise<number> {
    const { count } = await this.#database.run((sql) =>
      sql
        .selectFrom('redelayed_messages')
        .select((of) => of.fn.countAll().as('count'))
        .where('queue', '=', this.#attached.key)
        .where('state', 'in', expired ? [...OPEN_STATES, 'expired' as const] : OPEN_STATES)
        .executeTakeFirstOrThrow(),
    )
    return Number(count)
  }

  /**
   * Gives up accepted messages that are not in Redis yet: they are never added. Resolves with their number.
   *
   * @throws JournalError SQL could not be asked
   *
   * @example
   * ```ts
   * console.log(await journalled.dropAccepted())
   * ```
   */
  async dropAccepted(): Promise<number> {
    const { numUpdatedRows } = await this.#database.run((sql) =>
      sql
        .updateTable('redelayed_messages')
        .set({ state: 'removed', updated_at: this.#attached.clock.now() })
        .where('queue', '=', this.#attached.key)
        .where('state', '=', 'accepted')
        .executeTakeFirst(),
    )
    return Number(numUpdatedRows)
  }

  /**
   * Puts messages back by hand; resolves with the counts.
   *
   * @throws JournalError, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * console.log((await journalled.restore({ dryRun: true })).restored)
   * ```
   */
  restore(options: RestoreOptions = {}): Promise<RestoreResult> {
    return restoreByHand(this.#required, this.#attached, options)
  }

  /**
   * Yields the differences between SQL and Redis, message by message.
   *
   * @throws JournalError, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * for await (const { id, what } of journalled.verify()) console.log(id, what)
   * ```
   */
  verify({ onNotSettled }: VerifyOptions = {}): AsyncGenerator<Difference, void> {
    const { database, drain, adoptAfterMs } = this.#required
    return verify(database, drain, this.#attached, { adoptAfterMs, onNotSettled })
  }

  get #database(): JournalDatabase {
    return this.#required.database
  }

  get #required(): Parts {
    if (this.#parts === undefined) throw new JournalError('ERR_JOURNAL_CLOSED', "the mode 'off' has no journal")
    return this.#parts
  }
}
