import { failureOf, toError } from '../errors.js'
import { integer } from '../options.js'
import { asBytesArray } from '../store/replies.js'
import { MAX_PAGE } from './paging.js'
import type { QueueHandle } from './queue-handle.js'

/** Bytes that could not be read and were set aside. */
export interface QuarantinedEntry {
  /** `'unknown'`, with the time 0, for an entry that no client of this package has written. */
  readonly reason: string
  /** When it was set aside: by the Redis clock for pending entries, by the consumer's for undecodable elements. */
  readonly at: Date
  readonly bytes: Buffer
}

/** How many entries `readQuarantine` returns without a limit. */
export const DEFAULT_QUARANTINED = 100

/** A taken element, and why it could not be decoded. */
interface Undecodable {
  readonly bytes: Buffer
  readonly error: Error
}

/** The most bytes of elements in one command that sets them aside. */
const MOST_BYTES = 2 ** 20

/** The list of unreadable entries and elements of one queue. */
export class Quarantine<T> {
  readonly #handle: QueueHandle<T>
  readonly #key: string

  constructor(handle: QueueHandle<T>, { quarantine }: { readonly quarantine: string }) {
    this.#handle = handle
    this.#key = quarantine
  }

  /** The oldest entries. */
  async read(limit = DEFAULT_QUARANTINED): Promise<QuarantinedEntry[]> {
    integer('limit', limit, 1, MAX_PAGE)
    const reply = await this.#handle.call('LRANGE', [this.#key, '0', String(limit - 1)], { resend: 'reads' })
    return asBytesArray(reply).map(parseQuarantined)
  }

  async clear(): Promise<boolean> {
    return (await this.#handle.call('UNLINK', [this.#key])) === 1
  }

  /** Decodes taken elements, and sets aside those that cannot be decoded. */
  async accept(elements: readonly Buffer[]): Promise<T[]> {
    const values: T[] = []
    let bad: Undecodable[] = []
    let size = 0
    for (const bytes of elements) {
      try {
        values.push(this.#handle.decode(bytes))
      } catch (thrown) {
        bad.push({ bytes, error: toError(thrown) })
        size += bytes.length
      }
      if (size < MOST_BYTES) continue
      await this.#setAside(bad)
      bad = []
      size = 0
    }
    if (bad.length > 0) await this.#setAside(bad)
    return values
  }

  async setAside(bytes: Buffer, error: Error): Promise<void> {
    await this.#setAside([{ bytes, error }])
  }

  /** Never rejects: the caller still gets the other elements taken with these. */
  async #setAside(elements: readonly Undecodable[]): Promise<void> {
    const { context, name } = this.#handle
    const head = Buffer.from(`undecodable ${Date.now()} `)
    const records = elements.map(({ bytes }) => Buffer.concat([head, bytes]))
    try {
      // sent again when the connection breaks: twice is better than not at all
      await this.#handle.call('RPUSH', [this.#key, ...records], { resend: 'harmless' })
    } catch (thrown) {
      const what =
        elements.length === 1
          ? 'an element that cannot be decoded is lost, as it could not be set aside'
          : `${elements.length} elements that cannot be decoded are lost, as they could not be set aside`
      context.hub.emit('error', failureOf(what, thrown, { queue: name }))
      return
    }
    for (const { error } of elements) {
      context.hub.emit('quarantined', { queue: name, reason: 'undecodable', count: 1, error })
    }
  }
}

/** Parses `<reason> <epoch ms> <bytes>`; any program can have written something else. */
function parseQuarantined(record: Buffer): QuarantinedEntry {
  const [head = '', reason, ms] = /^([a-z-]{1,40}) (\d{1,16}) /.exec(record.toString('latin1', 0, 60)) ?? []
  const at = new Date(Number(ms))
  if (reason === undefined || Number.isNaN(at.getTime())) return { reason: 'unknown', at: new Date(0), bytes: record }
  return { reason, at, bytes: record.subarray(head.length) }
}
