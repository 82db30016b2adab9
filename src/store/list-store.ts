import { randomBytes } from 'node:crypto'
import type { QueueKeys } from '../keys.js'
import { asBytesArray, asBytesOrNull, asInteger } from './replies.js'
import { run } from './run.js'
import { contains, drain, filterList, move, type FilterListReply, type IndexReply } from './scripts.js'
import type { CommandArg, Sender } from './sender.js'

/** The most elements that one command or script moves or examines, so that none blocks the server for long. */
export const LIST_PAGE = 1_000
/** The size of a page of elements in bytes. */
const PAGE_BYTES = 2 ** 20
/** The length of the random mark of each call, which no element equals. */
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

  /** Pushes elements; resolves with the new size, or with 0 for an X command on an empty list. */
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

  /** Takes up to `count` elements with one script, fewer if they are large. */
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

  /** The element at an index; a negative one counts from the right end. */
  async at(index: number): Promise<Buffer | null> {
    return asBytesOrNull(await this.#read('LINDEX', String(index)))
  }

  async size(): Promise<number> {
    return asInteger(await this.#read('LLEN'))
  }

  async range(first: number, last: number): Promise<Buffer[]> {
    return asBytesArray(await this.#read('LRANGE', String(first), String(last)))
  }

  /** The index of an element, -1 if there is none; walks page by page. */
  async indexOf(element: Buffer): Promise<number> {
    let from: number | null = 0
    while (from !== null) {
      const args = { element, from, page: LIST_PAGE, bytes: PAGE_BYTES }
      const keys = { destination: this.#key }
      const reply: IndexReply = await run(this.#sender, contains, keys, args, { resend: 'reads' })
      if (reply.index !== null) return reply.index
      from = reply.next
    }
    return -1
  }

  /** Removes equal elements: with `count` 1 the first, with -1 the last, with 0 all. Resolves with how many. */
  async remove(element: Buffer, count: 0 | 1 | -1): Promise<number> {
    return asInteger(await this.#sender.call('LREM', [this.#key, String(count), element]))
  }

  /** Whether the list has each of these different elements. */
  async containsAll(elements: readonly Buffer[]): Promise<boolean> {
    for (let i = 0; i < elements.length; i += LIST_PAGE) {
      if ((await this.#filter(elements.slice(i, i + LIST_PAGE), false)).missing > 0) return false
    }
    return true
  }

  /** Removes all other elements than these; resolves with how many. */
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
      const reply: FilterListReply = await run(this.#sender, filterList, keys, args, {
        resend: retain ? undefined : 'reads',
      })
      for (const position of reply.found) missing.delete(position)
      removed += reply.removed
      skip = reply.next
    }
    return { missing: missing.size, removed }
  }

  #read(command: string, ...args: CommandArg[]): Promise<unknown> {
    return this.#sender.call(command, [this.#key, ...args], { resend: 'reads' })
  }
}

function bytesOf(elements: readonly Buffer[]): number {
  return elements.reduce((sum, element) => sum + element.length, 0)
}
