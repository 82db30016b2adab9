/**
 * Every Redis key and channel this package uses. The names are Redisson's (RedissonDelayedQueue and
 * RedissonObject.prefixName at 4.7.1), except the quarantine, the leader and the wheel, which Redisson does not have.
 */
export interface QueueKeys {
  /** LIST of delivered elements; left end is taken first. */
  readonly destination: string
  /** ZSET of pending entries; score = due time in epoch milliseconds. */
  readonly timeouts: string
  /** LIST of the same entries in offer order. */
  readonly order: string
  /** Pub/sub channel on which due times of new heads are announced. */
  readonly channel: string
  /** LIST of unreadable entries and elements: `<reason> <epoch ms> <bytes>`. */
  readonly quarantine: string
  /** STRING: which client leads, and until when. It expires after at most 25 ms. */
  readonly leader: string
  /**
   * ZSET of the minutes for which messages lie in buckets; score = when the bucket is promoted. The scripts compute the keys of the
   * buckets.
   */
  readonly wheel: string
  /** STRING: the last minute whose messages are in the schedule or on their way there. It expires after a day. */
  readonly horizon: string
}

/** The keys of a reliable queue; all of them, and those of its dead letters, are in one cluster slot. */
export interface ReliableKeys {
  /** HASH of the messages by their ids: a record of meta data, headers and payload. */
  readonly messages: string
  /** HASH by id of how often a message was delivered, and while it is in flight the token that identifies the delivery. */
  readonly deliveries: string
  /** HASH by id of the history of failed attempts. */
  readonly failures: string
  /** HASH of the queue's configuration, which applies to all processes. */
  readonly config: string
  /** ZSET of ids and payload digests that must not be added again; score = until when, epoch milliseconds. */
  readonly once: string
  /** ZSET of priority and id of messages that consumers have; score = when the visibility timeout ends, epoch milliseconds. */
  readonly inFlight: string
  /** HASH by name of the repeats: the last tick and the definition. */
  readonly repeats: string
  /** ZSET of the names of the repeats; score = when the next message has to be prepared, epoch milliseconds. */
  readonly ticks: string
  /** ZSETs of ids, one for each priority, then one for the messages with a group; score = when each is visible, epoch milliseconds. */
  readonly due: readonly string[]
  /** STREAM of the changes that scripts made, where the queue keeps changes. */
  readonly changes: string
  /** HASH by id of completed messages: when, the attempts, and the result. */
  readonly completed: string
  /** ZSET of the ids of completed messages; score = when they were completed, epoch milliseconds. */
  readonly completedAt: string
  /** ZSET of group, due time and id of the messages that wait in a group, in the order of their bytes. */
  readonly groupOrder: string
  /** ZSET of the groups with a message that may be claimed; score = the number of the group's turn. */
  readonly groupTurns: string
  /** ZSET of the groups whose next message may be claimed later; score = when, epoch milliseconds. */
  readonly groupWakes: string
  /** HASH by group: its claims, and when they were. */
  readonly groups: string
  /** ZSET of the groups that are paused, in the order of their bytes. */
  readonly groupPauses: string
  /**
   * ZSET of the tasks that are paused; score = the number of each, by which its messages are set aside, 1,000 more while they come back.
   */
  readonly taskPauses: string
  /** HASH of batches: the batch of a message, the counts of a batch, and its last message. */
  readonly batches: string
  /** ZSET of batches that have finished; score = when, epoch milliseconds. */
  readonly batchesAt: string
  /** STRING of the claims of the last `perMs`, where their rate is limited. It expires. */
  readonly rate: string
  /** Pub/sub channel on which the times are announced when messages become visible. */
  readonly channel: string
  /** Pub/sub channel for the ids of messages that have ended, where the queue keeps completed ones. */
  readonly ends: string
  /** Pub/sub channel for the names of batches that have finished. */
  readonly batchEnds: string
}

export const PRIORITIES = 10

/** The prefix of all keys of reliable queues. */
export const RELIABLE_PREFIX = 'redelayed:reliable:'

export function reliableKeys(rawName: string): ReliableKeys {
  const key = (part: string): string => prefixName(`${RELIABLE_PREFIX}${part}`, rawName)
  return Object.freeze({
    messages: key('messages'),
    deliveries: key('deliveries'),
    failures: key('failures'),
    config: key('config'),
    once: key('once'),
    inFlight: key('in-flight'),
    repeats: key('repeats'),
    ticks: key('ticks'),
    changes: key('changes'),
    completed: key('completed'),
    completedAt: key('completed-at'),
    rate: key('rate'),
    groupOrder: key('group-order'),
    groupTurns: key('group-turns'),
    groupWakes: key('group-wakes'),
    groups: key('groups'),
    groupPauses: key('group-pauses'),
    taskPauses: key('task-pauses'),
    batches: key('batches'),
    batchesAt: key('batches-at'),
    due: Object.freeze(Array.from({ length: PRIORITIES + 1 }, (_, priority) => key(`due-${priority}`))),
    channel: key('channel'),
    ends: key('ends'),
    batchEnds: key('batch-ends'),
  })
}

/** All keys and channels of a queue in one list. */
export function listKeys(keys: QueueKeys | ReliableKeys): string[] {
  return Object.values(keys).flatMap((key: string | readonly string[]) => key)
}

/** The name of the queue for the dead letters of a reliable queue, in the same cluster slot. */
export function deadLettersOf(name: string): string {
  return name.includes('{') ? `${name}:dead` : `{${name}}:dead`
}

/** The name of the queue whose dead letters are in the queue `name`; `null` if it is not a queue of dead letters. */
export function queueOfDeadLetters(name: string): string | null {
  if (!name.endsWith(':dead')) return null
  const rest = name.slice(0, -':dead'.length)
  const queue = IN_BRACES.exec(rest)?.[1] ?? rest
  return deadLettersOf(queue) === name ? queue : null
}

/** The keys of the queue whose destination list has the (already mapped) name `rawName`. */
export function queueKeys(rawName: string): QueueKeys {
  return Object.freeze({
    destination: rawName,
    timeouts: prefixName('redisson_delay_queue_timeout', rawName),
    order: prefixName('redisson_delay_queue', rawName),
    channel: prefixName('redisson_delay_queue_channel', rawName),
    quarantine: prefixName('redelayed:quarantine', rawName),
    leader: prefixName('redelayed:leader', rawName),
    wheel: prefixName('redelayed:wheel', rawName),
    horizon: prefixName('redelayed:horizon', rawName),
  })
}

/**
 * Redisson's rule: a name that contains `{` anywhere is used as it is, any other gets braces, so that all keys of a queue
 * share one cluster slot. Names such as `x{y` therefore spread over slots, in Redisson as here.
 */
export function prefixName(prefix: string, rawName: string): string {
  return rawName.includes('{') ? `${prefix}:${rawName}` : `${prefix}:{${rawName}}`
}

/** Prefixes of keys that contain the name of their queue. */
const QUEUE_KEY_PREFIXES = [
  'redisson_delay_queue_timeout:',
  'redisson_delay_queue:',
  'redelayed:quarantine:',
  'redelayed:wheel:',
]

/** A bucket of a wheel; another program can have renamed it, to a name that is no minute. */
const BUCKET = /^redelayed:wheel-([^:]*):(.*)$/s
/** A minute as the scripts write it, no longer than they read it. */
const MINUTE = /^(0|[1-9]\d{0,11})$/

/** Any key of a reliable queue. */
const RELIABLE_KEY = new RegExp(`^${RELIABLE_PREFIX}[a-z0-9-]+:(.*)$`, 's')

/** A name that is enclosed as a whole in the one effective pair of braces. */
const IN_BRACES = /^\{([^{]+)\}$/s

/** A pattern for SCAN that matches all keys whose queue is recognized, and some others. */
export const QUEUE_KEY_PATTERN = 'red[ie][sl]*'

/**
 * The destination's name, from the key of a schedule, an order list or a quarantine; `null` for other keys. For `orders` and
 * `{orders}` these keys are the same, in Redisson too; the result is the first.
 */
export function nameOfKey(key: string): string | null {
  const prefix = QUEUE_KEY_PREFIXES.find((known) => key.startsWith(known))
  return prefix === undefined ? null : nameIn(key.slice(prefix.length))
}

/** A bucket of a wheel: the name of the queue as of `nameOfKey`, and its minute; no minute if the scripts cannot have written the key. */
export function bucketOfKey(key: string): { readonly name: string; readonly minute: number | null } | null {
  const [, minute = '', rest = ''] = BUCKET.exec(key) ?? []
  const name = nameIn(rest)
  return name === null ? null : { name, minute: MINUTE.test(minute) ? Number(minute) : null }
}

/** The name of the reliable queue that a key belongs to; `null` for other keys. */
export function reliableNameOfKey(key: string): string | null {
  const [, rest] = RELIABLE_KEY.exec(key) ?? []
  return rest === undefined ? null : nameIn(rest)
}

function nameIn(rest: string): string | null {
  const inner = IN_BRACES.exec(rest)?.[1]
  if (inner !== undefined) return inner
  return rest.includes('{') && rest !== '{}' ? rest : null
}

/** The other name whose keys are the same, except for the destination: `{orders}` for `orders` and the reverse; `null` if there is none. */
export function twinOf(rawName: string): string | null {
  if (rawName === '') return null
  return rawName.includes('{') ? (IN_BRACES.exec(rawName)?.[1] ?? null) : `{${rawName}}`
}

/** Translates public names to the names used in Redis, as Redisson's `NameMapper`. */
export interface NameMapper {
  /** Returns the name in Redis of a public name. */
  map(name: string): string
  /** Returns the public name of a name in Redis. */
  unmap(rawName: string): string
}

export const identityMapper: NameMapper = Object.freeze({
  map: (name: string) => name,
  unmap: (rawName: string) => rawName,
})
