import { CONFIG_NAMES, readConfig } from '../reliable/config.js'
import type { EndReply } from '../store/reliable-scripts.js'
import type { ReliableStore } from '../store/reliable-store.js'
import { asArray, asBytes, asNumber } from '../store/replies.js'
import type { Sender } from '../store/sender.js'
import { byNumber, reliableStoreOf } from './next-messages.js'
import { MOST_BYTES } from './within-bytes.js'

/** A completed message that a queue keeps, with its encoded result. */
export interface KeptMessage {
  /** The name of the shard, or of the queue. */
  readonly queue: string
  readonly id: string
  /** Epoch milliseconds. */
  readonly completedAt: number
  readonly attempts: number
  /** `null` for none. */
  readonly result: Buffer | null
}

/** The completed messages of a queue, of all its shards together. */
export interface KeptCompleted {
  readonly now: number
  /** How many the queue keeps. */
  readonly kept: number
  /** The bounds of the queue, or of its first shard; `null` for none. */
  readonly keepCompleted: number | null
  readonly keepCompletedFor: number | null
  readonly messages: readonly KeptMessage[]
}

/** The ids of the first command: few, because those of another program can have any size; the next reads more if these were small. */
const FIRST_PAGE = 4
const MOST_PAGE = 64
const SMALL = 4_096

/**
 * Reads `limit` completed messages, the latest first, after the first `skip`. About 8 MiB of results at most, except for a larger first
 * one.
 */
export async function keptCompleted(
  sender: Sender,
  names: readonly string[],
  { skip, limit }: { readonly skip: number; readonly limit: number },
): Promise<KeptCompleted> {
  const parts = await Promise.all(
    names.map(async (queue) => {
      const store = reliableStoreOf(sender, queue)
      const [now, settings] = await Promise.all([store.now(), store.settings(CONFIG_NAMES)])
      const config = readConfig(settings)
      const age = config.keepCompletedFor
      return { queue, store, kept: await store.countCompleted(age ? now - age : undefined), now, config }
    }),
  )
  // where there are several shards, the first of each may be among those to skip
  const skipped = parts.length === 1 ? skip : 0
  const walks = parts.map((part) => new IdsByTime(sender, part, skipped))
  const [places, config] = [await firstOf(walks, skip - skipped, limit), parts[0]?.config]
  return {
    now: Math.max(0, ...parts.map(({ now }) => now)),
    kept: parts.reduce((sum, { kept }) => sum + kept, 0),
    keepCompleted: config?.keepCompleted ?? null,
    keepCompletedFor: config?.keepCompletedFor ?? null,
    messages: await endsOf(places),
  }
}

/** The kept completed message of an id; `null` for none. */
export async function keptMessage(store: ReliableStore, queue: string, id: string): Promise<KeptMessage | null> {
  const bytes = Buffer.from(id)
  const [end] = await store.completed([bytes])
  return end === undefined ? null : kept(queue, bytes, end)
}

/** One shard, or the queue. */
interface Part {
  readonly queue: string
  readonly store: ReliableStore
  readonly kept: number
}

interface Place extends Pick<Part, 'queue' | 'store'> {
  /** Bytes, because an id of another program need not be text. */
  readonly id: Buffer
  readonly at: number
}

/** The ids of one queue's completed messages, the latest first. */
class IdsByTime {
  readonly #sender: Sender
  readonly #part: Part
  #from: number
  #page = FIRST_PAGE
  #read: Place[] = []
  /** Each message that is completed meanwhile moves the others to a later place, so some come again. */
  readonly #seen = new Set<string>()

  constructor(sender: Sender, part: Part, from: number) {
    this.#sender = sender
    this.#part = part
    this.#from = from
  }

  /** The next one, which stays until `take`. */
  async next(): Promise<Place | undefined> {
    while (this.#read.length === 0 && (await this.#fill()));
    return this.#read[0]
  }

  /** The next one, if it was read before. */
  get peeked(): Place | undefined {
    return this.#read[0]
  }

  take(): void {
    this.#read.shift()
  }

  /** False at the end. Messages that are too old to be kept are after the others. */
  async #fill(): Promise<boolean> {
    const { queue, store, kept: last } = this.#part
    const most = Math.min(this.#page, last - this.#from)
    if (most <= 0) return false
    const args = [store.keys.completedAt, String(this.#from), String(this.#from + most - 1), 'WITHSCORES']
    const flat = asArray(await this.#sender.call('ZREVRANGE', args, { resend: 'reads' }))
    let largest = 0
    for (let at = 0; at < flat.length; at += 2) {
      const id = asBytes(flat[at])
      const name = id.toString('latin1')
      largest = Math.max(largest, id.length)
      if (!this.#seen.has(name)) this.#read.push({ queue, store, id, at: asNumber(flat[at + 1]) })
      if (id.length <= SMALL) this.#seen.add(name)
    }
    this.#from += most
    this.#page = largest <= SMALL ? Math.min(2 * this.#page, MOST_PAGE) : FIRST_PAGE
    return true
  }
}

/** Merges the walks: `limit` places after the first `skip`. */
async function firstOf(walks: readonly IdsByTime[], skip: number, limit: number): Promise<Place[]> {
  const places: Place[] = []
  for (let passed = 0; places.length < limit; passed++) {
    let latest: { readonly walk: IdsByTime; readonly place: Place } | undefined
    for (const walk of walks) {
      const place = walk.peeked ?? (await walk.next()) // 256 shards and a large `skip` would wait hundreds of millions of times
      if (place !== undefined && (latest === undefined || byNumber(place.at, latest.place.at) > 0))
        latest = { walk, place }
    }
    if (latest === undefined) break
    latest.walk.take()
    if (passed >= skip) places.push(latest.place)
  }
  return places
}

/** Reads the results in the order of the places, with one script for places of one shard that follow each other. */
async function endsOf(places: readonly Place[]): Promise<KeptMessage[]> {
  const messages: KeptMessage[] = []
  let bytes = 0
  for (let at = 0; at < places.length;) {
    const { queue, store } = places[at] as Place
    const other = places.findIndex((place, index) => index > at && place.queue !== queue)
    const ids = places.slice(at, other < 0 ? undefined : other).map(({ id }) => id)
    const ends = await store.completed(ids)
    for (const [n, end] of ends.entries()) {
      const message = kept(queue, ids[n] as Buffer, end)
      if (message === null) continue // it is not kept any more
      bytes += message.result?.length ?? 0
      if (messages.length > 0 && bytes > MOST_BYTES) return messages
      messages.push(message)
    }
    at += ends.length // fewer than requested if results are large
  }
  return messages
}

function kept(queue: string, id: Buffer, end: EndReply): KeptMessage | null {
  if (end.is !== 'completed') return null
  return { queue, id: id.toString(), completedAt: end.at, attempts: end.attempts, result: end.result }
}
