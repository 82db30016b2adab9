/**
 * Every Redis key and channel this package uses. The names are Redisson's (RedissonDelayedQueue and
 * RedissonObject.prefixName at 4.7.1), except the quarantine and the leader, which Redisson does not have.
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
  /** LIST of what could not be read: `<reason> <epoch ms> <bytes>`. */
  readonly quarantine: string
  /** STRING: which client leads, and until when. It exists for 25 ms at most. */
  readonly leader: string
}

/** The keys of a reliable queue; all of them, and those of its dead letters, are in one cluster slot. */
export interface ReliableKeys {
  /** HASH of the messages by their ids: a record of meta data, headers and payload. */
  readonly messages: string
  /** HASH by id of how often a message was delivered, and while it is in flight the token that identifies the delivery. */
  readonly deliveries: string
  /** HASH by id of what is known of failed attempts. */
  readonly failures: string
  /** HASH of what holds for the queue in all processes. */
  readonly config: string
  /** ZSET of what must not be added again; score = until when, epoch milliseconds. */
  readonly once: string
  /** ZSET of priority and id of what a consumer has; score = when its visibility ends, epoch milliseconds. */
  readonly inFlight: string
  /** HASH by name of what is repeated: its last tick and how it goes on. */
  readonly repeats: string
  /** ZSET of these names; score = when the next message has to be prepared, epoch milliseconds. */
  readonly ticks: string
  /** ZSETs of ids by priority, and after these the one of the messages with a group; score = when each is visible, epoch milliseconds. */
  readonly due: readonly string[]
  /** STREAM of what the scripts have changed, where the queue keeps changes. */
  readonly changes: string
  /** HASH by id of what is kept of completed messages: when, the attempts, and the result. */
  readonly completed: string
  /** ZSET of their ids; score = when they were completed, epoch milliseconds. */
  readonly completedAt: string
  /** ZSET of group, due time and id of what waits in a group, in the order of their bytes. */
  readonly groupOrder: string
  /** ZSET of the groups of which a message may be claimed; score = the number of its turn. */
  readonly groupTurns: string
  /** ZSET of the groups of which one may be claimed later; score = when, epoch milliseconds. */
  readonly groupWakes: string
  /** HASH by group of its claims, and when they were. */
  readonly groups: string
  /** ZSET of the groups that are paused, in the order of their bytes. */
  readonly groupPauses: string
  /** HASH of batches: the batch of a message, the counts of a batch, and its last message. */
  readonly batches: string
  /** ZSET of batches that have finished; score = when, epoch milliseconds. */
  readonly batchesAt: string
  /** STRING of the claims of the last stretch of time, where there is a limit to their rate. It expires. */
  readonly rate: string
  /** Pub/sub channel on which times are announced at which something becomes visible. */
  readonly channel: string
  /** Pub/sub channel on which the ids of messages are published that have ended, where the queue keeps completed ones. */
  readonly ends: string
  /** Pub/sub channel on which the names of batches are published that have finished. */
  readonly batchEnds: string
}

export const PRIORITIES = 10

/** What all keys of reliable queues begin with. */
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
    batches: key('batches'),
    batchesAt: key('batches-at'),
    due: Object.freeze(Array.from({ length: PRIORITIES + 1 }, (_, priority) => key(`due-${priority}`))),
    channel: key('channel'),
    ends: key('ends'),
    batchEnds: key('batch-ends'),
  })
}

/** All of them in one list, the channels too. */
export function listKeys(keys: QueueKeys | ReliableKeys): string[] {
  return Object.values(keys).flatMap((key: string | readonly string[]) => key)
}

/** The name of the queue that gets the dead letters of a reliable queue: one more in the same cluster slot. */
export function deadLettersOf(name: string): string {
  return name.includes('{') ? `${name}:dead` : `{${name}}:dead`
}

/** The queue that has these dead letters; `null` for a name of anything else. */
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
const QUEUE_KEY_PREFIXES = ['redisson_delay_queue_timeout:', 'redisson_delay_queue:', 'redelayed:quarantine:']

/** Of a reliable queue, whatever the part. */
const RELIABLE_KEY = new RegExp(`^${RELIABLE_PREFIX}[a-z0-9-]+:(.*)$`, 's')

/** A whole name in the one pair of braces that has an effect. */
const IN_BRACES = /^\{([^{]+)\}$/s

/** A pattern for SCAN that matches all keys of which `nameOfKey` knows the queue, and some others. */
export const QUEUE_KEY_PATTERN = 'red[ie][sl]*'

/**
 * The destination's name, from the key of a schedule, an order list or a quarantine; `null` for other keys. For `orders` and
 * `{orders}` these keys are the same, in Redisson too; the first is given.
 */
export function nameOfKey(key: string): string | null {
  const prefix = QUEUE_KEY_PREFIXES.find((known) => key.startsWith(known))
  return prefix === undefined ? null : nameIn(key.slice(prefix.length))
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

/** The other name with the same keys, but for the destination: `{orders}` for `orders` and the reverse; `null` if there is none. */
export function twinOf(rawName: string): string | null {
  if (rawName === '') return null
  return rawName.includes('{') ? (IN_BRACES.exec(rawName)?.[1] ?? null) : `{${rawName}}`
}

/** Translates public names to the names used in Redis, as Redisson's `NameMapper`. */
export interface NameMapper {
  /** From the public name to the one in Redis. */
  map(name: string): string
  /** The other way round. */
  unmap(rawName: string): string
}

export const identityMapper: NameMapper = Object.freeze({
  map: (name: string) => name,
  unmap: (rawName: string) => rawName,
})
