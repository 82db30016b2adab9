import type { Form } from '../records/record-in.js'
import type { Answer } from './sender.js'
import { StreamLog, type LogCommands, type LogPage } from './stream-log.js'

/** The log entry of a sent webhook. */
export interface LoggedDelivery {
  /** The id of the message. */
  readonly id: string
  readonly topic: string
  readonly attempt: number
  /** Epoch milliseconds. */
  readonly at: number
  readonly outcome: 'delivered' | 'failed' | 'gone'
  /** The status of the answer; `null` if there was none, and `error` says why. */
  readonly status: number | null
  readonly error: string | null
  readonly tookMs: number
  /** The first 4 KiB of the answer. */
  readonly answer: string
}

/** Where a page of several endpoints ends: newer entries were on it, and, of the same place, those of endpoints up to this one. */
export interface DeliveryPlace {
  readonly place: string
  readonly endpoint: string
}

export interface DeliveriesOfAll {
  readonly deliveries: readonly (LoggedDelivery & { readonly endpoint: string })[]
  readonly next: DeliveryPlace | undefined
}

interface PlacedDelivery extends DeliveryPlace {
  readonly delivery: LoggedDelivery
}

const OUTCOMES: readonly unknown[] = ['delivered', 'failed', 'gone'] satisfies LoggedDelivery['outcome'][]
const FORM: Form<LoggedDelivery> = {
  ...{ id: 'text', topic: 'text', attempt: 'number', at: 'number', status: 'number?' },
  ...{ error: 'text?', tookMs: 'number', answer: 'text' },
  outcome: (value) => OUTCOMES.includes(value),
}

/** How many of the last webhooks of each endpoint are kept, and how long. */
const BOUNDS = { count: 500, ms: 7 * 86_400_000 }
const ANSWER_BYTES = 4_096

/** The last webhooks of each endpoint with their answers. */
export class DeliveryLog {
  readonly #log: StreamLog<LoggedDelivery>

  constructor(redis: LogCommands) {
    this.#log = new StreamLog(redis, FORM, BOUNDS)
  }

  add(endpoint: string, delivery: LoggedDelivery): Promise<void> {
    return this.#log.add(keyOf(endpoint), delivery)
  }

  /** The newest first, before a place in the log. */
  list(endpoint: string, count: number, before?: string): Promise<LogPage<LoggedDelivery>> {
    return this.#log.list(keyOf(endpoint), count, before)
  }

  /**
   * Lists the webhooks of several endpoints together, the newest first, after a place. It reads the first entry of each log, and more only
   * of logs that are new enough, some at a time: a page of a thousand endpoints holds the entries of a few in memory.
   */
  async listOf(endpoints: readonly string[], count: number, after?: DeliveryPlace): Promise<DeliveriesOfAll> {
    const heads = new Map<string, string>()
    await inChunks(endpoints, async (endpoint) => {
      const { entries, next } = await this.#log.places(keyOf(endpoint), 1, beginOf(endpoint, after))
      const head = entries[0]?.place ?? next // a foreign entry must not hide the entries after it
      if (head !== undefined) heads.set(endpoint, head)
    })
    const found: PlacedDelivery[] = []
    const byHead = [...heads].sort(([a, placeA], [b, placeB]) => byPlace(placeA, placeB) || (a < b ? -1 : 1))
    for (let from = 0; from < byHead.length; from += READ_AT_ONCE) {
      const last = found[count]
      const some = byHead.slice(from, from + READ_AT_ONCE)
      if (last !== undefined && some.every(([, place]) => byPlace(last.place, place) < 0)) break
      await Promise.all(
        some.map(async ([endpoint]) => {
          found.push(...(await this.#some(endpoint, count + 1, beginOf(endpoint, after))))
        }),
      )
      found.sort((a, b) => byPlace(a.place, b.place) || (a.endpoint < b.endpoint ? -1 : 1))
      found.splice(count + 1)
    }
    const page = found.slice(0, count)
    const last = page.at(-1)
    return {
      deliveries: page.map(({ endpoint, delivery }) => ({ endpoint, ...delivery })),
      next: found.length > count && last !== undefined ? { place: last.place, endpoint: last.endpoint } : undefined,
    }
  }

  /** Reads several pages of a log if needed: a page with large entries ends early. */
  async #some(endpoint: string, count: number, before: string | undefined): Promise<PlacedDelivery[]> {
    const found: PlacedDelivery[] = []
    for (let from = before; found.length < count;) {
      const { entries, next } = await this.#log.places(keyOf(endpoint), count - found.length, from)
      found.push(...entries.map(({ place, entry }) => ({ place, endpoint, delivery: entry })))
      if (next === undefined) break
      from = next
    }
    return found
  }

  forget(endpoint: string): Promise<void> {
    return this.#log.forget(keyOf(endpoint))
  }
}

export function loggedAnswer(answer: Answer): Pick<LoggedDelivery, 'status' | 'error' | 'tookMs' | 'answer'> {
  return answer.is === 'answer'
    ? { status: answer.status, error: null, tookMs: answer.tookMs, answer: shownText(answer.body) }
    : { status: null, error: answer.reason, tookMs: answer.tookMs, answer: '' }
}

/** Replaces control characters, which JSON would make six times as long, so that an entry has at most about twice these bytes. */
function shownText(body: Buffer): string {
  // eslint-disable-next-line no-control-regex -- these are what JSON makes long
  const text = body.toString().replaceAll(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g, '?')
  const bytes = Buffer.from(text)
  // drops an incomplete character at the end
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, ANSWER_BYTES), { stream: true })
}

/** The most logs read at once. */
const READ_AT_ONCE = 8

async function inChunks(all: readonly string[], work: (each: string) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += READ_AT_ONCE)
    await Promise.all(all.slice(from, from + READ_AT_ONCE).map(work))
}

/** The later place first. */
function byPlace(a: string, b: string): number {
  const [[msA = 0, nA = 0], [msB = 0, nB = 0]] = [a, b].map((place) => place.split('-').map(Number)) as [
    number[],
    number[],
  ]
  return msB - msA || nB - nA
}

/** The place to read before. Another endpoint's log can have an entry of the same place, which a later endpoint still has to show. */
function beginOf(endpoint: string, after: DeliveryPlace | undefined): string | undefined {
  if (after === undefined || endpoint <= after.endpoint) return after?.place
  const [ms = '0', n = '0'] = after.place.split('-')
  return `${ms}-${BigInt(n) + 1n}`
}

function keyOf(endpoint: string): string {
  return `redelayed:service:deliveries:{${endpoint}}`
}
