import { InvalidArgumentError } from '../errors.js'
import { integer, oneOf, onlyKnown } from '../options.js'
import { moveWith } from '../redis/blocking/blocking-commands.js'
import { asBytesOrNull } from '../store/replies.js'
import type { End } from '../store/list-store.js'
import type { ListElements } from './list-elements.js'
import { pages, type IterateOptions } from './paging.js'

/** Which element to move, and where: Redisson's `DequeMoveArgs`. */
export interface DequeMove {
  readonly from: 'first' | 'last'
  /** The name of the other deque. */
  readonly to: string
  readonly at: 'first' | 'last'
}

/** A move in Redis's words. */
export interface EndMove {
  readonly from: End
  readonly to: End
  /** The name of the other deque. */
  readonly name: string
}

/** The operations of deques at both ends, without waiting. */
export class DequeEnds<T> {
  readonly #list: ListElements<T>

  constructor(list: ListElements<T>) {
    this.#list = list
  }

  /** Resolves with the new size; for the X commands 0 when the list is empty. */
  async push(command: 'LPUSH' | 'RPUSH' | 'LPUSHX' | 'RPUSHX', values: readonly T[]): Promise<number> {
    const { handle, store } = this.#list
    if (values.length === 0) throw new InvalidArgumentError('values', 'at least one', values)
    return store.push(
      command,
      values.map((value, index) => handle.encode(value, `values[${index}]`)),
    )
  }

  /** As `push` of one; always true, as in Java. */
  async offer(command: 'LPUSH' | 'RPUSH', value: T): Promise<boolean> {
    await this.push(command, [value])
    return true
  }

  /** Takes one element, or several with a limit. */
  async poll(end: End, limit: number | undefined): Promise<T | null | T[]> {
    if (limit === undefined) return this.#list.pop(end)
    return this.#list.drain(end, integer('limit', limit, 0, Number.MAX_SAFE_INTEGER))
  }

  async remove(end: End): Promise<T> {
    return this.#list.handle.orThrow(await this.#list.pop(end))
  }

  async peekLast(): Promise<T | null> {
    const bytes = await this.#list.store.at(-1)
    return bytes === null ? null : this.#list.handle.decode(bytes)
  }

  async getLast(): Promise<T> {
    return this.#list.handle.orThrow(await this.peekLast())
  }

  async removeLastOccurrence(value: T): Promise<boolean> {
    return (await this.#list.store.remove(this.#list.handle.encode(value), -1)) > 0
  }

  async *descending(options: IterateOptions): AsyncGenerator<T, void> {
    const { handle, store } = this.#list
    const fetch = async (first: number, last: number) => (await store.range(-last - 1, -first - 1)).reverse()
    for await (const page of pages(options, fetch)) yield* await handle.decodeAll(page)
  }

  /** Moves one element in one step at the server; `null` when there is none. */
  async move(options: DequeMove): Promise<T | null> {
    const { handle, key: source } = this.#list
    const { from, to, name } = this.parseMove(options)
    const target = handle.context.keysOf(name).destination
    const reply = await moveWith({ source, target, from, to }, (command, args) => handle.call(command, args))
    const bytes = asBytesOrNull(reply)
    return bytes === null ? null : handle.decode(bytes)
  }

  parseMove(options: DequeMove): EndMove {
    onlyKnown('options', options, ['from', 'to', 'at'])
    const from = oneOf('from', options.from, ['first', 'last'])
    const at = oneOf('at', options.at, ['first', 'last'])
    return { from: from === 'first' ? 'left' : 'right', to: at === 'first' ? 'left' : 'right', name: options.to }
  }
}
