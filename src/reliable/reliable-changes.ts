import { run } from '../store/run.js'
import { InvalidArgumentError, PayloadTooLargeError } from '../errors.js'
import type { ReliableKeys } from '../keys.js'
import { asInteger } from '../store/replies.js'
import { move, remove, reschedule, update } from '../store/reliable-scripts.js'
import { integer, onlyKnown } from '../options.js'
import { toMillis } from '../timing/units.js'
import { assertKnownId } from './message-id.js'
import { ReliableContents } from './reliable-contents.js'
import { priorityOf } from './reliable-object.js'

export interface MoveMessages {
  /** The name of the other queue; in a cluster it must be in the same slot. */
  readonly to: string
  /** Those of these ids; without it the first `count`. */
  readonly ids?: readonly string[] | undefined
  /** 1 to 1,000; default 100. */
  readonly count?: number | undefined
  /** Of which priority. Default 0. */
  readonly priority?: number | undefined
}

const PAGE = 500
/** What the script takes for "the one it has". */
const UNSAID = -1

/** Changing what lies in a reliable queue, without taking it. */
export abstract class ReliableChanges<T> extends ReliableContents<T> {
  /** Removes a message that no consumer has. False when there is none of this id, or a consumer has it. */
  async cancel(id: string): Promise<boolean> {
    return (await this.removeIds([id], false)) === 1
  }

  /** Removes messages, also those that a consumer has: its acknowledgement will be too late. Resolves with how many. */
  remove(...ids: readonly string[]): Promise<number> {
    return this.removeIds(ids, true)
  }

  /**
   * Gives a message that no consumer has a new time, `delay` milliseconds from now, and perhaps a new priority. False when there is
   * none of this id, or a consumer has it.
   */
  async reschedule(id: string, delay: number, options: { priority?: number } = {}): Promise<boolean> {
    const args = this.handle.checked(() => {
      onlyKnown('options', options, ['priority'])
      return {
        id: Buffer.from(assertKnownId('id', id)),
        delayMs: toMillis('delay', delay),
        priority: options.priority === undefined ? UNSAID : priorityOf(options.priority),
      }
    })
    const { keys } = this.identity
    const visibleAt = await run(
      this.handle,
      reschedule,
      { ...this.due, messages: keys.messages, inFlight: keys.inFlight, ticks: keys.ticks },
      { channel: keys.channel, nowMs: this.now, ...args },
    )
    if (visibleAt !== null && visibleAt < 0) {
      throw this.handle.withQueueName(new InvalidArgumentError('delay', 'a time of at most 2^53-1 ms', delay))
    }
    return visibleAt !== null
  }

  /** Gives a message that no consumer has another payload. False when there is none of this id, or a consumer has it. */
  async updatePayload(id: string, payload: T): Promise<boolean> {
    const args = this.handle.checked(() => ({
      id: Buffer.from(assertKnownId('id', id)),
      payload: this.handle.encode(payload, 'payload'),
    }))
    const { messages, config, inFlight } = this.identity.keys
    const keys = { ...this.due, messages, config, inFlight }
    const result = await run(this.handle, update, keys, { nowMs: this.now, ...args }, { idempotent: true })
    if (result < 0)
      throw this.handle.withQueueName(new PayloadTooLargeError(args.payload.length, 'what the queue allows'))
    return result === 1
  }

  /**
   * Moves messages that no consumer has to another queue, where they are visible at once and begin anew. Those whose ids are there
   * already stay here. Resolves with how many were moved.
   */
  async move(options: MoveMessages): Promise<number> {
    const { target, ids, count, priority } = this.handle.checked(() => {
      onlyKnown('options', options, ['to', 'ids', 'count', 'priority'])
      return {
        target: this.reliable.keysOf(options.to),
        ids: (options.ids ?? []).map((id, at) => Buffer.from(assertKnownId(`ids[${at}]`, id))),
        count: integer('count', options.count ?? 100, 1, 1_000),
        priority: priorityOf(options.priority ?? 0),
      }
    })
    if (options.ids === undefined) return this.moveTo(target, { ids, count, priority })
    let moved = 0
    for (let from = 0; from < ids.length; from += PAGE) {
      moved += await this.moveTo(target, { ids: ids.slice(from, from + PAGE), count, priority })
    }
    return moved
  }

  /** Removes all messages, also those that consumers have, and what is known of duplicates. Dead letters and the configuration stay. */
  async clear(): Promise<boolean> {
    const { messages, deliveries, failures, once, inFlight, due } = this.identity.keys
    const keys = [messages, deliveries, failures, once, inFlight, ...due]
    return asInteger(await this.handle.call('UNLINK', keys, { idempotent: true })) > 0
  }

  protected async moveTo(
    target: ReliableKeys,
    { ids, count, priority }: { ids: readonly Buffer[]; count: number; priority: number },
  ): Promise<number> {
    const { messages, deliveries, failures, due } = this.identity.keys
    const keys = {
      messages,
      deliveries,
      failures,
      due: due[priority] ?? '',
      targetMessages: target.messages,
      targetDue: target.due[priority] ?? '',
    }
    let moved = 0
    for (;;) {
      const args = { targetChannel: target.channel, nowMs: this.now, count: count - moved, ids }
      const reply: ReturnType<typeof move.decode> = await run(this.handle, move, keys, args)
      moved += reply.moved
      // behind what is no message there may be some
      if (ids.length > 0 || reply.gone === 0 || moved >= count) return moved
    }
  }

  protected async removeIds(ids: readonly string[], alsoHeld: boolean): Promise<number> {
    this.handle.checked(() => ids.forEach((id, at) => assertKnownId(`ids[${at}]`, id)))
    const { keys } = this.identity
    const { messages, deliveries, failures, inFlight } = keys
    let removed = 0
    for (let from = 0; from < ids.length; from += PAGE) {
      const page = ids.slice(from, from + PAGE)
      const results = await run(
        this.handle,
        remove,
        { ...this.due, messages, deliveries, failures, inFlight },
        { nowMs: this.now, alsoHeld, ids: page },
      )
      const gone = page.filter((_, at) => results[at])
      removed += gone.length
      this.context.hub.messages('removed', this.name, gone)
    }
    return removed
  }
}
