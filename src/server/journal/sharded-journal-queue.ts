import { InternalError, RedelayedError, type ShardedReliableQueue } from 'redelayed'
import { OPEN_STATES } from '../database/tables.js'
import type { AcceptItem } from './accept-item.js'
import type { Accepted } from './accepter.js'
import type { FlowEntry, JournalMessage, JournalQueue } from './journal-queue.js'
import { drawId } from './message-id.js'
import type { RestoreOptions } from './restore.js'
import { NOTHING_RESTORED, sumOf, type RestoreResult } from './restore-result.js'
import type { Difference, VerifyOptions } from './verify.js'

/** Databases limit the parameters of a statement. */
const MOST_ASKED = 500

/** A sharded queue through its journal, where each shard is a queue of its own. */
export class ShardedJournalQueue<T> {
  readonly name: string
  readonly #queue: ShardedReliableQueue<T>
  readonly #shards: ReadonlyMap<string, JournalQueue<T>>

  /** @internal */
  constructor(queue: ShardedReliableQueue<T>, shards: readonly JournalQueue<T>[]) {
    this.name = queue.name
    this.#queue = queue
    this.#shards = new Map(shards.map((shard) => [shard.name, shard]))
  }

  /** The shards through the journal. */
  get shards(): readonly JournalQueue<T>[] {
    return [...this.#shards.values()]
  }

  /**
   * As `JournalQueue.add`, in the shard of the id.
   *
   * @throws as `JournalQueue.add`
   *
   * @example
   * ```ts
   * const { outcome, dueAt } = await journalledShards.add({ to: 'ada' }, { id: 'welcome:ada', delay: 60_000 })
   * console.log(outcome, dueAt)
   * ```
   */
  async add(payload: T, options: Omit<AcceptItem<T>, 'payload'> = {}): Promise<Accepted> {
    const [result] = await this.addMany([{ ...options, payload }])
    if (result === undefined || result instanceof RedelayedError)
      throw result ?? new InternalError('sharded-journal', 'there is no result')
    return result
  }

  /**
   * As `JournalQueue.addMany`; the shards share one commit.
   *
   * @throws as `JournalQueue.addMany`; messages of other shards may have been accepted then
   *
   * @example
   * ```ts
   * const results = await journalledShards.addMany([{ payload: { to: 'ada' } }, { payload: { to: 'bob' }, delay: 60_000 }])
   * console.log(results.filter((result) => result instanceof Error))
   * ```
   */
  async addMany(items: Iterable<AcceptItem<T>>): Promise<(Accepted | RedelayedError)[]> {
    const given = [...items]
    const elsewhere = await this.#elsewhere(given.flatMap(({ id }) => id ?? []))
    const list = given.map((item) => ({ ...item, id: item.id ?? drawId() }))
    const byShard = new Map<JournalQueue<T>, number[]>()
    for (const [at, { id }] of list.entries()) {
      const shard = elsewhere.get(id) ?? this.#of(id)[0]
      const own = byShard.get(shard)
      if (own === undefined) byShard.set(shard, [at])
      else own.push(at)
    }
    const results: (Accepted | RedelayedError)[] = []
    const added = await Promise.allSettled(
      Array.from(byShard, async ([shard, own]) => {
        const some = await shard.addMany(own.flatMap((at) => list[at] ?? []))
        own.forEach((at, n) => (results[at] = some[n] as Accepted | RedelayedError))
      }),
    )
    for (const each of added) if (each.status === 'rejected') throw each.reason
    return results
  }

  /**
   * As `JournalQueue.cancel`, in the shards where the id can be.
   *
   * @throws JournalError as there
   *
   * @example
   * ```ts
   * console.log(await journalledShards.cancel('welcome:ada'))
   * ```
   */
  async cancel(id: string): Promise<boolean> {
    for (const shard of this.#of(id)) if (await shard.cancel(id)) return true
    return false
  }

  /**
   * As `JournalQueue.get`; if several shards have the id, the message that is not final, else that of the first shard.
   *
   * @throws JournalError
   *
   * @example
   * ```ts
   * console.log((await journalledShards.get('welcome:ada'))?.state)
   * ```
   */
  async get(id: string): Promise<JournalMessage | null> {
    const found: JournalMessage[] = []
    for (const shard of this.#of(id)) {
      const message = await shard.get(id)
      if (message !== null && OPEN_STATES.includes(message.state)) return message
      if (message !== null) found.push(message)
    }
    return found[0] ?? null
  }

  /**
   * As `JournalQueue.idsWithBizKey`, for all shards.
   *
   * @throws JournalError
   *
   * @example
   * ```ts
   * console.log(await journalledShards.idsWithBizKey('order:7', null, 100))
   * ```
   */
  async idsWithBizKey(bizKey: string, after: string | null, most: number): Promise<string[]> {
    const found = await Promise.all(this.shards.map((shard) => shard.idsWithBizKey(bizKey, after, most)))
    const ids = found.flat().map((id) => Buffer.from(id))
    return ids
      .sort((a, b) => a.compare(b))
      .slice(0, most)
      .map(String)
  }

  /**
   * As `JournalQueue.flow`.
   *
   * @throws JournalError
   *
   * @example
   * ```ts
   * for (const { change, at } of await journalledShards.flow('welcome:ada')) console.log(change, at)
   * ```
   */
  async flow(id: string): Promise<FlowEntry[]> {
    const flows = await Promise.all(this.#of(id).map((shard) => shard.flow(id)))
    return flows.flat().sort((a, b) => a.at - b.at)
  }

  /**
   * As `JournalQueue.drain`, for all shards.
   *
   * @throws JournalError, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * console.log(await journalledShards.drain(), 'changes')
   * ```
   */
  async drain(): Promise<number> {
    const counts = await Promise.all(this.shards.map((shard) => shard.drain()))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  /**
   * As `JournalQueue.size`, for all shards.
   *
   * @throws JournalError
   *
   * @example
   * ```ts
   * console.log(await journalledShards.size(), 'open messages')
   * ```
   */
  async size(options: Pick<RestoreOptions, 'expired'> = {}): Promise<number> {
    const sizes = await Promise.all(this.shards.map((shard) => shard.size(options)))
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  /**
   * As `JournalQueue.dropAccepted`, for all shards.
   *
   * @throws JournalError
   *
   * @example
   * ```ts
   * console.log(await journalledShards.dropAccepted())
   * ```
   */
  async dropAccepted(): Promise<number> {
    const dropped = await Promise.all(this.shards.map((shard) => shard.dropAccepted()))
    return dropped.reduce((sum, count) => sum + count, 0)
  }

  /**
   * As `JournalQueue.restore`, shard by shard.
   *
   * @throws JournalError, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * console.log((await journalledShards.restore({ dryRun: true })).restored)
   * ```
   */
  async restore({ ids, onProgress, ...options }: RestoreOptions = {}): Promise<RestoreResult> {
    let total = NOTHING_RESTORED
    const onPage: RestoreOptions['onProgress'] = (own) => onProgress?.(sumOf(total, own))
    for (const shard of this.shards) {
      const own = ids?.filter((id) => this.#of(id).includes(shard))
      if (own?.length === 0) continue
      const result = await shard.restore({ ...options, onProgress: onPage, ...(own !== undefined && { ids: own }) })
      total = sumOf(total, result)
    }
    return total
  }

  /**
   * As `JournalQueue.verify`, shard by shard.
   *
   * @throws JournalError, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * for await (const { id, what } of journalledShards.verify()) console.log(id, what)
   * ```
   */
  async *verify(options: VerifyOptions = {}): AsyncGenerator<Difference, void> {
    for (const shard of this.shards) yield* shard.verify(options)
  }

  /** Finds messages that are still in a shard of an earlier number of shards: adding them again must not create a second one. */
  async #elsewhere(ids: readonly string[]): Promise<ReadonlyMap<string, JournalQueue<T>>> {
    const found = new Map<string, JournalQueue<T>>()
    const places = Array.from(new Set(ids), (id) => ({ id, others: this.#of(id).slice(1) }))
    for (const shard of this.shards) {
      const asked = places.flatMap(({ id, others }) => (others.includes(shard) ? [id] : []))
      for (let from = 0; from < asked.length; from += MOST_ASKED) {
        const open = await shard.openOf(asked.slice(from, from + MOST_ASKED))
        for (const id of open) found.set(id, shard)
      }
    }
    return found
  }

  #of(id: string): [JournalQueue<T>, ...JournalQueue<T>[]] {
    const [first, ...others] = this.#queue.shardsOf(id).flatMap(({ name }) => this.#shards.get(name) ?? [])
    if (first === undefined) throw new InternalError('sharded-journal', 'the shard is not attached')
    return [first, ...others]
  }
}
