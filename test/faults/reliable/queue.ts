import { codecs, type RedelayedClient, type WorkerQueue } from '../../../src/index.js'
import { shardName } from '../../../src/sharding/shard-names.js'
import type { Entry, Job, Payload } from './job.js'
import { watch } from './watch.js'

/** A queue of the bench, plain or sharded. */
export type BenchQueue = WorkerQueue<Payload>

/** The queue of a job, which notes what becomes of its messages. A message of a sharded one goes through its shard each time. */
export function queueOf(
  { queue, shards, formerShards }: Pick<Job, 'queue' | 'shards' | 'formerShards'>,
  client: RedelayedClient,
  note: (entry: Entry) => void,
): BenchQueue {
  const codec = codecs.json<Payload>()
  if (shards === undefined) return watch(client.getReliableQueue<Payload>(queue, { codec }), note)
  const sharded = client.getShardedReliableQueue<Payload>(queue, { shards, formerShards, codec })
  for (const shard of sharded.shards) watch(shard, note)
  return sharded
}

/** The names of the queues whose keys hold its messages. */
export function partsOf(queue: string, shards: number | undefined): readonly string[] {
  if (shards === undefined) return [queue]
  return Array.from({ length: shards }, (_, shard) => shardName(queue, shard, (name) => name))
}
