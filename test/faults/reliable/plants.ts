import { begin, replace, sources, type Fault } from '../../simulation/plant.js'

/** A fault that a change could bring into sharded reliable queues, and the check that must show it. */
export interface Plant extends Fault {
  /** Runs also in the short form, because it is found soon and each time. */
  readonly isShort?: true
  /** The name of a scenario begins with this. */
  readonly shownBy: string
  /** Matches the expected finding: other findings could have another cause. */
  readonly foundAs: RegExp
  /** The fault shows as missing messages, for which the bench waits less long than usual. */
  readonly isStuck?: true
}

const MORE = 'CLUSTER FAILOVER of each master of a sharded queue, whose processes come back with more'
const FEWER = 'CLUSTER FAILOVER of each master of a sharded queue, whose processes come back with fewer'

export const PLANTS: readonly Plant[] = [
  {
    what: 'a message is looked for only in the shard where its id would be added now',
    isShort: true,
    shownBy: 'SIGKILL of all processes of a sharded queue, which come back with more',
    foundAs: /by their ids went wrong: contains of/,
    changes: [begin('placesOf', 'return [shardOfKey(id, shards)]')],
  },
  {
    what: 'a shard is not asked to wait for its replicas',
    isShort: true,
    shownBy: 'SIGKILL of a master of a sharded queue, whose replica has lost it',
    foundAs: /^\d+ (lost|dropped),/,
    changes: [
      replace(
        'ShardedAddRoute.send',
        '$shard.addPrepared(own, how)',
        '$shard.addPrepared(own, { ...how, wait: undefined })',
      ),
    ],
  },
  {
    what: 'the shards of the larger number from before are not polled',
    shownBy: FEWER,
    isStuck: true,
    foundAs: /messages are neither acknowledged nor dead letters/,
    changes: [replace('resolveShardedReliableOptions', 'Math.max(shards, former)', 'shards')],
  },
  {
    what: 'dead letters of shards beyond the present number are not redriven',
    shownBy: FEWER,
    foundAs: /redrive moved/,
    changes: [
      replace(
        'ShardedReliableQueue.redrive',
        '[...this.shards.slice(first), ...this.shards.slice(0, first)]',
        'this.shards.slice(0, this.shardCount)',
      ),
    ],
  },
  {
    what: 'an answer goes to the shard where the id would be added now',
    shownBy: MORE,
    isStuck: true,
    foundAs: /^\d+ (denied|spoilt|again|lost),|messages are neither acknowledged nor dead letters/,
    changes: [begin('ShardAnswers.queueOf', 'return this.#shards.at(placesOf(message.id, this.#shards)[0])')],
  },
  {
    what: 'a removed schedule goes on in the shards from before',
    shownBy: MORE,
    isStuck: true,
    foundAs: /still has the schedules|messages are neither acknowledged nor dead letters/,
    changes: [
      replace('ShardSchedules.upsert', 'removeFrom(others, name)', 'Promise.resolve(false)'),
      replace(
        'ShardSchedules.remove',
        'this.#placesOf(name)',
        'this.#placesOf(name).filter((queue) => queue === this.#shards.at(shardOfKey(name, this.#shards.shards)))',
      ),
    ],
  },
  {
    what: 'messages lose their priority',
    shownBy: MORE,
    foundAs: /^\d+ disordered,/,
    changes: [replace('Adder.#prepare', 'prepare(options, $$rest)', 'prepare({ ...options, priority: 0 }, $$rest)')],
  },
]

/** The places in the source where a fault can be planted. */
export function shardSources(): ReturnType<typeof sources> {
  return sources().filter(({ fileName }) => /^(sharding|reliable)\//.test(fileName))
}
