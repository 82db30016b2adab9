/** The keys of some queues as plain arrays. Bytes are latin1 text here, which compares and sorts as the bytes do. */
import { lengthOf, raw, readable } from '../support.js'

export const HOUR = 3_600_000

export interface Pending {
  readonly entry: string
  readonly score: number
}

/** Redis gives a key one type; here the field of the other type stays empty. */
interface Key {
  list: string[]
  schedule: Pending[]
  /** In whole hours, so that the milliseconds a test takes do not matter. */
  expiresIn: number | null
}

/** The content of a key, in a form that a failed test can print; an empty key does not exist. */
export interface Content {
  readonly holds: string[]
  readonly expiresIn: number | null
}

export class Keyspace {
  readonly #keys = new Map<string, Key>()
  #published: (readonly [channel: string, message: string])[] = []
  /** Leases by their keys. They have an expiry that is not compared. */
  readonly leases = new Map<string, { readonly client: string; readonly until: number }>()
  /** The subscribers of every channel. */
  subscribers = 1

  list(key: string): string[] {
    return this.#key(key).list
  }

  /** In the order of Redis: by score, and by bytes where scores are equal. */
  schedule(key: string): readonly Pending[] {
    return this.#key(key).schedule
  }

  scoreOf(key: string, entry: string): number | null {
    return this.schedule(key).find((one) => one.entry === entry)?.score ?? null
  }

  /** As ZADD: a known entry gets another score. */
  put(key: string, entry: string, score: number): void {
    this.drop(key, entry)
    const { schedule } = this.#key(key)
    schedule.push({ entry, score })
    schedule.sort((x, y) => x.score - y.score || (x.entry < y.entry ? -1 : 1))
  }

  /** As ZREM. */
  drop(key: string, entry: string): boolean {
    const { schedule } = this.#key(key)
    const at = schedule.findIndex((one) => one.entry === entry)
    if (at !== -1) schedule.splice(at, 1)
    return at !== -1
  }

  /** As LREM with 1 or -1. */
  pull(key: string, element: string, from: 'left' | 'right' = 'left'): void {
    const list = this.list(key)
    const at = from === 'left' ? list.indexOf(element) : list.lastIndexOf(element)
    if (at !== -1) list.splice(at, 1)
  }

  exists(...keys: string[]): boolean {
    return keys.some((key) => this.list(key).length + this.schedule(key).length > 0)
  }

  rename(key: string, newKey: string): void {
    this.#keys.set(newKey, this.#key(key))
    this.#keys.delete(key)
  }

  copy(key: string, newKey: string): void {
    this.#keys.set(newKey, structuredClone(this.#key(key)))
  }

  expiryOf(key: string): number | null {
    return this.#key(key).expiresIn
  }

  /** A time that has passed deletes the key. */
  setExpiry(key: string, hours: number | null): void {
    if (hours !== null && hours <= 0) this.#keys.delete(key)
    else if (this.exists(key)) this.#key(key).expiresIn = hours
  }

  publish(channel: string, dueTime: number): void {
    this.#published.push([channel, String(dueTime)])
  }

  /** The first that is delivered: what has a negative due time never is. */
  headOf(schedule: string): Pending | undefined {
    return this.schedule(schedule).find(({ score }) => score >= 0)
  }

  announceHead(channel: string, schedule: string): void {
    const head = this.headOf(schedule)
    if (head !== undefined) this.publish(channel, head.score)
  }

  /** The messages published on one channel since the last call. */
  takePublished(channel: string): string[] {
    const taken = this.#published.filter(([on]) => on === channel)
    this.#published = this.#published.filter(([on]) => on !== channel)
    return taken.map(([, message]) => message)
  }

  /** After each script: with its last element a key goes, and its expiry with it. */
  forgetEmptyKeys(): void {
    for (const key of this.#keys.keys()) if (!this.exists(key)) this.#keys.delete(key)
  }

  content(key: string): Content {
    const { list, schedule, expiresIn } = this.#key(key)
    const holds = [...list.map(shown), ...schedule.map(({ entry, score }) => `${shown(entry)} at ${score}`)]
    return { holds, expiresIn }
  }

  #key(name: string): Key {
    let key = this.#keys.get(name)
    if (key === undefined) this.#keys.set(name, (key = { list: [], schedule: [], expiresIn: null }))
    return key
  }
}

/** As text to compare; poll-last.lua and inspect-order.lua ask the server for the time, which no model knows. */
export function shown(bytes: string | Buffer): string {
  return readable(bytes).replace(/^(malformed|order-orphan) \d{13} /, '$1 <server time> ')
}

export function text(bytes: Uint8Array | string): string {
  return Buffer.from(bytes).toString('latin1')
}

export interface Parsed {
  /** The part of an entry in its ticket: its first bytes. */
  readonly prefix: string
  readonly payload: string
  /** Whether such an entry is in the order list. */
  readonly inOrder: boolean
}

/** Reads an entry of either format by putting its parts together again; `null` for other bytes. */
export function parse(entry: string): Parsed | null {
  for (const length of [1 + entry.charCodeAt(0), 8]) {
    const [prefix, payload] = [entry.slice(0, length), entry.slice(length + 8)]
    // 9 and 17 bytes are an id of 8 or 16 with its length, 8 bytes are the old format
    if (entry === prefix + text(lengthOf(raw(payload))) + payload)
      return { prefix, payload, inOrder: [8, 9, 17].includes(length) }
  }
  return null
}

/** The first elements, up to the one that brings them to so many bytes. */
export function upToBytes(elements: readonly string[], most: number): string[] {
  let bytes = 0
  const end = elements.findIndex((element) => (bytes += element.length) >= most)
  return end === -1 ? [...elements] : elements.slice(0, end + 1)
}

export function isFull(elements: readonly string[], most: number): boolean {
  return elements.reduce((sum, element) => sum + element.length, 0) >= most
}
