import { PRIORITIES } from '../keys.js'
import { integer, scriptTime } from '../options.js'
import { CodedObject } from '../queues/coded-object.js'
import { dueKeys, type DueKeys, type ReliableContext, type ReliableIdentity } from './context.js'

/** What the parts of a reliable queue do alike. */
export abstract class ReliableObject<T> extends CodedObject<T> {
  /** @internal */
  readonly identity: ReliableIdentity<T>
  /** @internal */
  readonly reliable: ReliableContext
  /** The schedules as the scripts name them. */
  protected readonly due: DueKeys

  /** @internal */
  constructor(reliable: ReliableContext, identity: ReliableIdentity<T>) {
    super(reliable.queues, identity)
    this.reliable = reliable
    this.identity = identity
    this.due = dueKeys(identity.keys)
  }

  /** The scripts' argument of that name. */
  protected get now(): number {
    return scriptTime(this.context.settings)
  }
}

export function priorityOf(priority: unknown): number {
  return integer('priority', priority, 0, PRIORITIES - 1)
}
