import { reliablePoll } from '../../../src/store/scripts/generated.js'
import { plantLua } from '../../support/lua-plant.js'
import { begin, replace, sources, type Change, type Fault } from '../../simulation/plant.js'

/** A fault that a change could bring into reliable queues, and the check that must show it. */
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
    foundAs: /by their ids went wrong: .*getAll of/,
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
        '[...all.slice(first), ...all.slice(0, first)]',
        'all.slice(0, this.shardCount)',
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
  {
    what: 'a message is removed only from the shard where its id would be added now',
    shownBy: MORE,
    foundAs: /by their ids went wrong: .*remove of/,
    changes: [
      replace('ShardedReliableQueue.remove', 'placesOf(id, this.#shards)', 'placesOf(id, this.#shards).slice(0, 1)'),
    ],
  },
  {
    what: 'remove leaves what a consumer has',
    shownBy: MORE,
    foundAs: /^\d+ unremoved,/,
    changes: [replace('ReliableQueue.remove', 'alsoHeld: true', 'alsoHeld: false')],
  },
  {
    what: 'messages come in another order than the ids that were asked for',
    shownBy: MORE,
    foundAs: /^\d+ unfound,|by their ids went wrong: .*getAll of/,
    changes: [replace('ShardReads.getAll', 'infos[position]', 'infos[infos.length - 1 - position]')],
  },
  {
    what: 'a message is restored beside the one that another shard has',
    shownBy: MORE,
    foundAs: /by their ids went wrong: .*restoreMany of what is there of/,
    changes: [replace('ShardRestores.restoreMany', 'this.#isChanging || isDerived(id)', 'isDerived(id)')],
  },
  {
    what: 'shards forget the deduplication',
    shownBy: MORE,
    foundAs: /^\d+ revived,|deduplicate by id/,
    changes: [
      replace(
        'ShardedAddRoute.send',
        '$shard.addPrepared(own, how)',
        "$shard.addPrepared(own.map((one) => ({ ...one, mark: '', markMs: '' })), how)",
      ),
    ],
  },
  {
    what: 'another add under the same id keeps what it should replace or postpone',
    shownBy: MORE,
    foundAs: /^\d+ merged,|add with existing/,
    changes: [
      replace(
        'ShardedAddRoute.send',
        '$shard.addPrepared(own, how)',
        "$shard.addPrepared(own, { ...how, existing: 'keep' })",
      ),
    ],
  },
  {
    what: 'the first of the ids is not redriven',
    shownBy: MORE,
    foundAs: /by their ids were redriven/,
    changes: [
      replace(
        'Changes.move',
        'this.#store.moves.moveTo(target, { ids, count, priority, isRedriven: false })',
        'this.#store.moves.moveTo(target, { ids: ids?.slice(1), count, priority, isRedriven: false })',
      ),
    ],
  },
]

const KILLED = 'limits over all processes: SIGKILL of all consumers'

/** Those of groups with limits. */
export const GROUP_PLANTS: readonly Plant[] = [
  {
    what: 'a turn does not heed the rate of a group',
    shownBy: 'groups: event loops of all consumers blocked',
    foundAs: /^\d+ rushed,/,
    changes: [inPoll('if $groups.rate then $most = math.min($most, $groups.rate.max - $state.window.sum) end', '')],
  },
]

/** Those of a queue with limits over all processes. */
export const LIMIT_PLANTS: readonly Plant[] = [
  {
    what: 'a poll does not heed the concurrency of the queue',
    isShort: true,
    shownBy: KILLED,
    foundAs: /^\d+ crowded,/,
    changes: [inPoll('$want = math.min($want, math.max(0, $concurrency - $claims))', '')],
  },
  {
    what: 'a poll does not heed the rate of the queue',
    shownBy: KILLED,
    foundAs: /^\d+ rushed,/,
    changes: [inPoll('$want = math.min($want, math.max(0, $rate.max - $window.sum))', '')],
  },
  {
    what: 'one slot is never free again after a visibility has ended',
    shownBy: KILLED,
    foundAs: /^1 unused,/,
    changes: [
      inPoll(
        'if concurrency then $claims = claimsNow($inFlight, $now)',
        "if concurrency then $claims = claimsNow($inFlight, $now) + math.min(1, redis.call('HINCRBY', config, 'leaked', returned))",
      ),
    ],
  },
]

/** Changes the script that claims messages. */
function inPoll(from: string, to: string): Change {
  const [place, pattern] = ['ReliableStore.poll', 'scripts.poll.source']
  return {
    ...replace(place, pattern, ''),
    edit(node) {
      return replace(place, pattern, JSON.stringify(plantLua(reliablePoll, from, to))).edit(node)
    },
  }
}

/** The places in the source where a fault can be planted. */
export function reliableSources(): ReturnType<typeof sources> {
  return sources().filter(({ fileName }) => /^(sharding|reliable|store)\//.test(fileName))
}
