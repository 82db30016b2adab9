import { randomBytes } from 'node:crypto'
import type { QueueKeys } from '../keys.js'
import { asBytesArray, asBytesOrNull, asInteger } from './replies.js'
import { run } from './run.js'
import { contains, drain, filterList, move, type FilterListReply, type IndexReply } from './scripts.js'
import type { CommandArg, Sender } from './sender.js'

/** How many elements one command or script moves or examines, so that none of them blocks the server for long. */
export const LIST_PAGE = 1_000
/** A page of elements ends after so many bytes, too. */
const PAGE_BYTES = 2 ** 20
/** No element consists of these bytes, which are drawn for each call. */
const MARK_BYTES = 20

/** An end of a list: elements are pushed at the right one and taken at the left one, unless a deque does otherwise. */
export type End = 'left' | 'right'

/** The list of one queue in Redis: one method per script, and the plain commands. */
export class ListStore {
  readonly #sender: Sender
  readonly #key: string

  constructor(sender: Sender, { destination }: Pick<QueueKeys, 'destination'>) {
    this.#sender = sender
    this.#key = destination
  }

  /** The new size; with the X commands 0 where the list is empty. */
  async push(command: 'LPUSH' | 'RPUSH' | 'LPUSHX' | 'RPUSHX', elements: readonly Buffer[]): Promise<number> {
    return asInteger(await this.#sender.call(command, [this.#key, ...elements]))
  }

  async pop(end: End): Promise<Buffer | null> {
    return asBytesOrNull(await this.#sender.call(end === 'left' ? 'LPOP' : 'RPOP', [this.#key]))
  }

  /** Takes up to `limit` elements at an end, at most a page, the nearest to the end first. */
  async drain(end: End, limit: number): Promise<{ elements: Buffer[]; isLast: boolean }> {
    const count = Math.min(LIST_PAGE, limit)
    const elements = await this.drainPage(end, count)
    return { elements, isLast: elements.length < count && bytesOf(elements) < PAGE_BYTES }
  }

  /** Takes up to `count` elements by one script, fewer where they are large. */
  drainPage(end: End, count: number): Promise<Buffer[]> {
    const args = { count, bytes: PAGE_BYTES, right: end === 'right' }
    return run(this.#sender, drain, { destination: this.#key }, args)
  }

  /** Moves the first elements to the end of the list `target`. */
  move(target: string, how: { readonly count: number; readonly exactly: boolean }): Promise<Buffer[]> {
    return run(this.#sender, move, { source: this.#key, target }, how)
  }

  /** Moves the last element to the front of the list `target`. */
  async moveLastToFront(target: string): Promise<Buffer | null> {
    return asBytesOrNull(await this.#sender.call('RPOPLPUSH', [this.#key, target]))
  }

  /** A negative index counts from the right end. */
  async at(index: number): Promise<Buffer | null> {
    return asBytesOrNull(await this.#read('LINDEX', String(index)))
  }

  async size(): Promise<number> {
    return asInteger(await this.#read('LLEN'))
  }

  async range(first: number, last: number): Promise<Buffer[]> {
    return asBytesArray(await this.#read('LRANGE', String(first), String(last)))
  }

  /** -1 where there is none; walks page by page. */
  async indexOf(element: Buffer): Promise<number> {
    let from: number | null = 0
    while (from !== null) {
      const args = { element, from, page: LIST_PAGE, bytes: PAGE_BYTES }
      const keys = { destination: this.#key }
      const reply: IndexReply = await run(this.#sender, contains, keys, args, { idempotent: true })
      if (reply.index !== null) return reply.index
      from = reply.next
    }
    return -1
  }

  /** Removes equal elements: with `count` 1 the first, with -1 the last, with 0 all. Resolves with how many. */
  async remove(element: Buffer, count: 0 | 1 | -1): Promise<number> {
    return asInteger(await this.#sender.call('LREM', [this.#key, String(count), element]))
  }

  /** Whether each of some different elements is there. */
  async containsAll(elements: readonly Buffer[]): Promise<boolean> {
    for (let i = 0; i < elements.length; i += LIST_PAGE) {
      if ((await this.#filter(elements.slice(i, i + LIST_PAGE), false)).missing > 0) return false
    }
    return true
  }

  /** Removes what equals none of some different elements; resolves with how many. */
  async retainAll(elements: readonly Buffer[]): Promise<number> {
    return (await this.#filter(elements, true)).removed
  }

  async #filter(elements: readonly Buffer[], retain: boolean): Promise<{ missing: number; removed: number }> {
    const mark = randomBytes(MARK_BYTES)
    const missing = new Set(elements.keys())
    let removed = 0
    let skip: number | null = 0
    while (skip !== null && (retain || missing.size > 0)) {
      const args = { skip, page: LIST_PAGE, bytes: PAGE_BYTES, retain, mark, elements }
      const keys = { destination: this.#key }
      const reply: FilterListReply = await run(this.#sender, filterList, keys, args, { idempotent: !retain })
      for (const position of reply.found) missing.delete(position)
      removed += reply.removed
      skip = reply.next
    }
    return { missing: missing.size, removed }
  }

  #read(command: string, ...args: CommandArg[]): Promise<unknown> {
    return this.#sender.call(command, [this.#key, ...args], { idempotent: true })
  }
}

function bytesOf(elements: readonly Buffer[]): number {
  return elements.reduce((sum, element) => sum + element.length, 0)
}
