import { InvalidArgumentError, inWords } from '../errors.js'
import { integer, onlyKnown } from '../options.js'
import type { ReliableContext } from '../reliable/context.js'
import { ReliableQueue } from '../reliable/reliable-queue.js'
import { ShardedReliableQueue } from '../sharding/sharded-reliable-queue.js'

/** A queue that a worker can poll. */
export type WorkerQueue<T = unknown> = ReliableQueue<T> | ShardedReliableQueue<T>

/** A queue and its share of a worker. */
export interface WorkerSource<T = unknown> {
  readonly queue: WorkerQueue<T>
  /** How often the worker asks this queue first, relative to the others. 1 to 1,000; default 1. Not together with `strict`. */
  readonly weight?: number | undefined
}

/** One queue, or several of one client, also with different payloads. */
export type WorkerQueues = WorkerQueue | readonly (WorkerQueue | WorkerSource)[]

/** The payloads that the handlers of these queues get. */
export type PayloadOf<Q> =
  Q extends WorkerQueue<infer T>
    ? T
    : Q extends WorkerSource<infer T>
      ? T
      : Q extends readonly (infer Each)[]
        ? PayloadOf<Each>
        : never

/** Chooses the order in which queues are asked, each time anew, so that no queue starves. */
export class Sources {
  readonly queues: readonly WorkerQueue[]
  readonly #weights: readonly number[]
  readonly #credits: number[]
  readonly #strict: boolean

  /** `strict`: always in the order given, however long the later ones wait. */
  constructor(reliable: ReliableContext, given: WorkerQueues, strict: boolean) {
    const list = (Array.isArray(given) ? given : [given]) as readonly unknown[]
    if (list.length === 0) throw new InvalidArgumentError('queues', 'at least one', list)
    const sources = list.map((source, at) => sourceOf(`queues[${at}]`, source, reliable))
    this.queues = sources.map(({ queue }) => queue)
    this.#weights = sources.map(({ weight }) => weight)
    this.#credits = this.#weights.map(() => 0)
    this.#strict = strict
  }

  /** All queues, the one whose turn it is first. */
  next(): readonly WorkerQueue[] {
    if (this.#strict || this.queues.length === 1) return this.queues
    const sum = this.#weights.reduce((a, b) => a + b, 0)
    let first = 0
    this.#weights.forEach((weight, at) => {
      this.#credits[at] = (this.#credits[at] ?? 0) + weight
      if ((this.#credits[at] ?? 0) > (this.#credits[first] ?? 0)) first = at
    })
    this.#credits[first] = (this.#credits[first] ?? 0) - sum
    return [...this.queues.slice(first), ...this.queues.slice(0, first)]
  }
}

function sourceOf(what: string, source: unknown, reliable: ReliableContext): { queue: WorkerQueue; weight: number } {
  if (isQueue(source)) return { queue: ownQueue(what, source, reliable), weight: 1 }
  if (!isPlain(source)) throw new InvalidArgumentError(what, 'a reliable queue, or { queue, weight }', source)
  onlyKnown(what, source, ['queue', 'weight'])
  const { queue, weight = 1 } = source as { queue: unknown; weight?: unknown }
  return { queue: ownQueue(`${what}.queue`, queue, reliable), weight: integer(`${what}.weight`, weight, 1, 1_000) }
}

function ownQueue(what: string, queue: unknown, reliable: ReliableContext): WorkerQueue {
  if (!isQueue(queue)) throw new InvalidArgumentError(what, 'a reliable queue', queue)
  if (queue.reliable !== reliable)
    throw new InvalidArgumentError(what, 'a queue of this client', inWords('one of another client'))
  return queue
}

function isQueue(source: unknown): source is WorkerQueue {
  return source instanceof ReliableQueue || source instanceof ShardedReliableQueue
}

/** Whether it is a plain object, not an instance of a class such as a blocking queue. */
function isPlain(source: unknown): boolean {
  if (typeof source !== 'object' || source === null) return false
  const prototype: unknown = Object.getPrototypeOf(source)
  return prototype === Object.prototype || prototype === null
}
