import { InvalidArgumentError, RedelayedError, UnsupportedOperationError, inWords, toRedelayed } from '../errors.js'
import type { QueueContext } from '../queues/context.js'
import type { How, PendingMessage } from '../reliable/add-options.js'
import type { AddRoute, Added } from '../reliable/adder.js'
import { drawnId } from '../reliable/message-id.js'
import { groupBy, type ReliableShards } from './reliable-shards.js'
import { shardOfKey } from './shard-of-key.js'

/** The first character of a payload's deduplication mark. */
const PAYLOAD_MARK = 'p'
const NO_BATCHES =
  'a sharded queue has no batches, because a batch is counted in one slot: use a reliable queue, or one of the shards'

/** Sends each message to the shard of its id. */
export class ShardedAddRoute<T> implements AddRoute {
  readonly #context: QueueContext
  readonly #shards: ReliableShards<T>
  /** Whether messages with ids of the application may still be in the shards of an earlier number of shards. */
  readonly #isChanging: boolean

  constructor(context: QueueContext, shards: ReliableShards<T>, isChanging: boolean) {
    this.#context = context
    this.#shards = shards
    this.#isChanging = isChanging
  }

  /** Draws an id. Equal payloads are deduplicated in one shard, so their ids must be placed in it. */
  drawId(mark: string): string {
    const { shards } = this.#shards
    const wanted = mark === '' ? undefined : shardOfKey(mark, shards)
    for (;;) {
      const id = drawnId(this.#context.ids)
      if (wanted === undefined || shardOfKey(id, shards) === wanted) return id
    }
  }

  async send(pending: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]> {
    if (how.batch !== '') throw new UnsupportedOperationError(NO_BATCHES)
    pending.forEach(assertOneShard)
    const placeOf = ({ id, isDrawn }: PendingMessage): Promise<number> =>
      this.#shards.placeOf(id, this.#isChanging && !isDrawn)
    const places = await Promise.all(pending.map(placeOf))
    const results = new Array<Added | RedelayedError>(pending.length)
    const sendTo = async (shard: number, indexes: readonly number[]): Promise<void> => {
      const own = indexes.flatMap((at) => pending[at] ?? [])
      const answers = await this.#shards.at(shard).addPrepared(own, how).catch(toRedelayed)
      indexes.forEach((at, position) => {
        results[at] = answers instanceof RedelayedError ? answers : (answers[position] as Added | RedelayedError)
      })
    }
    await Promise.all(
      Array.from(
        groupBy(places, (place) => place),
        ([shard, indexes]) => sendTo(shard, indexes),
      ),
    )
    return results
  }
}

function assertOneShard({ id, mark, isDrawn }: PendingMessage): void {
  if (isDrawn || !mark.startsWith(PAYLOAD_MARK)) return
  const received = inWords(`an id of your own, ${JSON.stringify(id)}`)
  throw new InvalidArgumentError(
    'id',
    "none with deduplicate.by 'payload', which needs an id in the payload's shard",
    received,
  )
}
