import { moveWith, type End } from '../redis/blocking/blocking-commands.js'
import { InvalidArgumentError } from '../errors.js'
import { asBytesOrNull, asInteger } from '../store/replies.js'
import { integer, oneOf, onlyKnown } from '../options.js'
import type { QueueMove } from './list-queue.js'
import { Queue } from './queue.js'

/** Which element to move, and where: Redisson's `DequeMoveArgs`. */
export interface DequeMove {
  readonly from: 'first' | 'last'
  /** The name of the other deque. */
  readonly to: string
  readonly at: 'first' | 'last'
}

/** Redisson's `RDeque`: a queue that can be used at both ends. */
export class Deque<T = unknown> extends Queue<T> {
  /** Puts values in front, one after the other: the last one given comes to stand first. */
  async addFirst(...values: [T, ...T[]]): Promise<void> {
    await this.#push('LPUSH', values)
  }

  /** Appends values, in their order. */
  async addLast(...values: [T, ...T[]]): Promise<void> {
    await this.#push('RPUSH', values)
  }

  /** As `addFirst`, if the deque is not empty; resolves with its new size, 0 when it was empty. */
  async addFirstIfExists(...values: [T, ...T[]]): Promise<number> {
    return this.#push('LPUSHX', values)
  }

  /** As `addLast`, if the deque is not empty; resolves with its new size, 0 when it was empty. */
  async addLastIfExists(...values: [T, ...T[]]): Promise<number> {
    return this.#push('RPUSHX', values)
  }

  /** Puts a value in front. Always true, as in Java. */
  async offerFirst(value: T): Promise<boolean> {
    await this.addFirst(value)
    return true
  }

  /** Appends a value. Always true, as in Java. */
  async offerLast(value: T): Promise<boolean> {
    await this.addLast(value)
    return true
  }

  /** Puts a value in front, as onto a stack. */
  push(value: T): Promise<void> {
    return this.addFirst(value)
  }

  /** Takes the first element, as from a stack; rejects with `NoSuchElementError` when there is none. */
  pop(): Promise<T> {
    return this.removeFirst()
  }

  /** Takes the first element; rejects with `NoSuchElementError` when there is none. */
  async removeFirst(): Promise<T> {
    return this.handle.orThrow(await this.pollNow('left'))
  }

  /** Takes the last element; rejects with `NoSuchElementError` when there is none. */
  async removeLast(): Promise<T> {
    return this.handle.orThrow(await this.pollNow('right'))
  }

  /** Takes the first element, or `null` when there is none. */
  pollFirst(): Promise<T | null>
  /** Takes up to `limit` elements from the front. */
  pollFirst(limit: number): Promise<T[]>
  async pollFirst(limit?: number): Promise<T | null | T[]> {
    return this.#poll('left', limit)
  }

  /** Takes the last element, or `null` when there is none. */
  pollLast(): Promise<T | null>
  /** Takes up to `limit` elements from the end, the last one first. */
  pollLast(limit: number): Promise<T[]>
  async pollLast(limit?: number): Promise<T | null | T[]> {
    return this.#poll('right', limit)
  }

  /** The first element without taking it, or `null`. */
  peekFirst(): Promise<T | null> {
    return this.peek()
  }

  /** The last element without taking it, or `null`. */
  async peekLast(): Promise<T | null> {
    const bytes = asBytesOrNull(await this.handle.call('LINDEX', [this.key, '-1'], { idempotent: true }))
    return bytes === null ? null : this.handle.decode(bytes)
  }

  /** As `peekFirst`, but rejects with `NoSuchElementError` when there is none. */
  getFirst(): Promise<T> {
    return this.element()
  }

  /** As `peekLast`, but rejects with `NoSuchElementError` when there is none. */
  async getLast(): Promise<T> {
    return this.handle.orThrow(await this.peekLast())
  }

  /** Removes the first element with the same encoded bytes as `value`; resolves with whether there was one. */
  removeFirstOccurrence(value: T): Promise<boolean> {
    return this.remove(value)
  }

  /** Removes the last element with the same encoded bytes as `value`; resolves with whether there was one. */
  async removeLastOccurrence(value: T): Promise<boolean> {
    return asInteger(await this.handle.call('LREM', [this.key, '-1', this.handle.encode(value)])) > 0
  }

  /** As `iterate`, from the last element to the first. */
  async *descendingIterator({ pageSize = 100 }: { pageSize?: number } = {}): AsyncGenerator<T, void> {
    const fetch = async (first: number, last: number): Promise<unknown[]> => {
      const page = await this.handle.call('LRANGE', [this.key, String(-last - 1), String(-first - 1)], {
        idempotent: true,
      })
      return (page as unknown[]).reverse()
    }
    for await (const page of this.pages(pageSize, fetch)) yield* this.handle.decodeAll(page)
  }

  /** Moves the first elements to the end of another queue; resolves with those that were moved. */
  override move(options: QueueMove): Promise<T[]>
  /** Moves one element from an end to an end of another deque, in one step at the server; `null` when there is none. */
  override move(options: DequeMove): Promise<T | null>
  override async move(options: QueueMove | DequeMove): Promise<T[] | T | null> {
    if (!('from' in options)) return super.move(options)
    const { from, to, name } = this.handle.checked(() => parseMove(options))
    const target = this.handle.checked(() => this.context.keysOf(name).destination)
    const move = { source: this.key, target, from, to }
    const bytes = asBytesOrNull(await moveWith(move, (command, args) => this.handle.call(command, args)))
    return bytes === null ? null : this.handle.decode(bytes)
  }

  async #push(command: 'LPUSH' | 'RPUSH' | 'LPUSHX' | 'RPUSHX', values: readonly T[]): Promise<number> {
    if (values.length === 0) throw this.handle.withQueueName(new InvalidArgumentError('values', 'at least one', values))
    const encoded = values.map((value, index) => this.handle.encode(value, `values[${index}]`))
    return asInteger(await this.handle.call(command, [this.key, ...encoded]))
  }

  async #poll(end: End, limit: number | undefined): Promise<T | null | T[]> {
    if (limit === undefined) return this.pollNow(end)
    return this.takeNow(
      end,
      this.handle.checked(() => integer('limit', limit, 0, Number.MAX_SAFE_INTEGER)),
    )
  }
}

/** The ends of a move in Redis's words. */
export function parseMove(options: DequeMove): { from: End; to: End; name: string } {
  onlyKnown('options', options, ['from', 'to', 'at'])
  const from = oneOf('from', options.from, ['first', 'last'])
  const at = oneOf('at', options.at, ['first', 'last'])
  return { from: from === 'first' ? 'left' : 'right', to: at === 'first' ? 'left' : 'right', name: options.to }
}
