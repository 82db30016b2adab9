import { InvalidArgumentError, ShutdownError, toError } from '../errors.js'
import { integer, nonEmptyString } from '../options.js'
import { onAbort } from '../redis/blocking/abort-signals.js'
import type { ChangeBatch, ChangePosition, ChangeStatus } from '../reliable/change-stream/change.js'
import { assertPosition, howToRead, type ChangesOptions } from '../reliable/change-stream/change-stream.js'
import { merged } from './merged.js'
import { allOf, groupBy, type ReliableShards } from './reliable-shards.js'

/** The place of a reader in the change stream of one shard. */
export interface ShardedChangePosition extends ChangePosition {
  /** The index in the queue's `shards`. */
  readonly shard: number
}

/** The changes of one script call in one shard. */
export interface ShardedChangeBatch extends ChangeBatch {
  readonly position: ShardedChangePosition
}

export interface ShardedChangesOptions extends Omit<ChangesOptions, 'from'> {
  /**
   * Where to begin: as for a reliable queue, in each shard; or after the last of these positions in each shard, and with the first entry in
   * shards without one.
   */
  readonly from?: readonly ShardedChangePosition[] | 'start' | 'end' | undefined
}

type From = ChangesOptions['from']

/** Reads the change streams of all shards together. Each has its own epoch and positions. */
export class ShardedChanges<T> {
  readonly #shards: ReliableShards<T>

  constructor(shards: ReliableShards<T>) {
    this.#shards = shards
  }

  async *read(options: ShardedChangesOptions): AsyncGenerator<ShardedChangeBatch, void> {
    const { from, signal, ...others } = options
    const startOf = this.#startsAt(from)
    howToRead({ ...others, from: startOf(0) })
    const ending = new AbortController()
    if (signal?.aborted === true) ending.abort(signal.reason)
    const unlisten = signal && onAbort(signal, () => ending.abort(signal.reason))
    const readers = this.#shards.queues.map((queue, shard) =>
      withShard(queue.changes({ ...others, from: startOf(shard), signal: ending.signal }), shard),
    )
    try {
      yield* merged(readers)
    } finally {
      unlisten?.()
      ending.abort(new ShutdownError('the iteration has ended'))
      // not awaited: a reader may wait for a master that does not answer
      for (const reader of readers) reader.return().catch(() => undefined)
    }
  }

  async acknowledge(group: string, positions: readonly ShardedChangePosition[]): Promise<number> {
    nonEmptyString('group', group)
    const groups = groupBy(positions, (position, at) => this.#assertPosition(`positions[${at}]`, position).shard)
    const done = Array.from(groups, ([shard, own]) =>
      this.#shards.at(shard).acknowledgeChanges(group, ...own.flatMap((at) => positions[at] ?? [])),
    )
    return (await allOf(done)).reduce((sum, count) => sum + count, 0)
  }

  async removeGroup(group: string): Promise<boolean> {
    nonEmptyString('group', group)
    return (await this.#shards.each((queue) => queue.removeChangeGroup(group))).includes(true)
  }

  status(): Promise<ChangeStatus[]> {
    return this.#shards.each((queue) => queue.changeStatus())
  }

  /** Starts the events of all shards, or of none. */
  async allEvents(): Promise<() => Promise<void>> {
    const started = await Promise.allSettled(this.#shards.queues.map((queue) => queue.allEvents()))
    const ends = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const end = async (): Promise<void> => {
      await Promise.all(ends.map((each) => each()))
    }
    const failed = started.find((one) => one.status === 'rejected')
    if (failed === undefined) return end
    await end()
    throw toError(failed.reason)
  }

  #startsAt(from: ShardedChangesOptions['from']): (shard: number) => From {
    if (!Array.isArray(from)) {
      if (from === undefined || from === 'start' || from === 'end') return () => from
      throw new InvalidArgumentError('from', "'start', 'end' or an array of positions", from)
    }
    const positions = new Map<number, ChangePosition>()
    from.forEach((given, at) => {
      const { shard, ...position } = this.#assertPosition(`from[${at}]`, given)
      if (positions.has(shard)) throw new InvalidArgumentError(`from[${at}]`, 'the only one of its shard', given)
      positions.set(shard, position)
    })
    return (shard) => positions.get(shard) ?? 'start'
  }

  #assertPosition(what: string, given: unknown): ShardedChangePosition {
    const position = assertPosition(what, given)
    const { shard } = given as Partial<ShardedChangePosition>
    return { ...position, shard: integer(`${what}.shard`, shard, 0, this.#shards.covered - 1) }
  }
}

async function* withShard(
  batches: AsyncGenerator<ChangeBatch, void>,
  shard: number,
): AsyncGenerator<ShardedChangeBatch, void> {
  for await (const batch of batches) yield { ...batch, position: { ...batch.position, shard } }
}
