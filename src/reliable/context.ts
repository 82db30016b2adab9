import type { Codec } from '../codecs/codec.js'
import type { Instrumentation } from '../instrumentation.js'
import { deadLettersOf, reliableKeys, type ReliableKeys } from '../keys.js'
import type { QueueContext } from '../queues/context.js'
import type { QueueRegistry } from '../scheduler/queue-registry.js'
import type { EndWaits } from './end-waits.js'
import type { Poller } from './poller.js'

/** The parts that the reliable queues of one client share. */
export interface ReliableContext {
  readonly queues: QueueContext
  readonly polls: QueueRegistry<Poller>
  readonly endWaits: QueueRegistry<EndWaits>
  readonly instrumentation: Instrumentation | undefined
  /** The random name of this client in change streams. */
  readonly client: string
  /** The keys of the queue with this public name. */
  readonly keysOf: (name: string) => ReliableKeys
}

export interface ReliableIdentity<T> {
  /** The public name. */
  readonly name: string
  /** The name in Redis. */
  readonly rawName: string
  readonly keys: ReliableKeys
  readonly dead: ReliableKeys
  readonly codec: Codec<T>
}

/**
 * The identity of a queue. Its dead letters are named after the name in Redis, so that they are in the queue's slot whatever a mapper does.
 */
export function identify<T>(name: string, rawName: string, codec: Codec<T>): ReliableIdentity<T> {
  return { name, rawName, codec, keys: reliableKeys(rawName), dead: reliableKeys(deadLettersOf(rawName)) }
}
