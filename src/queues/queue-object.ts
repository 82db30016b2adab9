import { RedelayedError, toError } from '../errors.js'
import { asArray, asBytes, asBytesArray, asText } from '../store/replies.js'
import { integer } from '../options.js'
import type { Codec } from '../codecs/codec.js'
import type { QueueContext, QueueIdentity } from './context.js'
import { QueueHandle } from './queue-handle.js'

/** Something that could not be read and was set aside. */
export interface QuarantinedEntry {
  readonly reason: string
  /** When, by the clock of the process that set it aside: Redis for pending entries, the consumer for undecodable elements. */
  readonly at: Date
  readonly bytes: Buffer
}

const DEFAULT_PAGE = 100
const MAX_PAGE = 10_000
/** They are sent with every page of the walk. */
export const MAX_RETAINED = 10_000

/** What all objects of a queue do alike: set aside what cannot be read, and walk. */
export abstract class QueueObject<T> {
  /** The queue's name as the application knows it. */
  readonly name: string
  readonly codec: Codec<T>
  /** @internal */
  readonly context: QueueContext
  /** @internal */
  readonly identity: QueueIdentity<T>
  /** @internal */
  readonly handle: QueueHandle<T>

  /** @internal */
  constructor(context: QueueContext, identity: QueueIdentity<T>) {
    this.name = identity.name
    this.codec = identity.codec
    this.context = context
    this.identity = identity
    this.handle = new QueueHandle(context, identity)
  }

  /** The oldest `limit` (1 to 10,000; default 100) entries of the queue's quarantine. They stay there. */
  async readQuarantine(limit = DEFAULT_PAGE): Promise<QuarantinedEntry[]> {
    this.handle.checked(() => integer('limit', limit, 1, MAX_PAGE))
    const reply = await this.handle.call('LRANGE', [this.identity.keys.quarantine, '0', String(limit - 1)], {
      idempotent: true,
    })
    return asBytesArray(reply).map(parseQuarantined)
  }

  /** Deletes the queue's quarantine; resolves with whether there was one. */
  async clearQuarantine(): Promise<boolean> {
    return (await this.handle.call('UNLINK', [this.identity.keys.quarantine])) === 1
  }

  /** For elements that were taken: what cannot be decoded goes to the quarantine, and the rest goes on. */
  protected async accept(elements: readonly Buffer[]): Promise<T[]> {
    const values: T[] = []
    for (const bytes of elements) {
      try {
        values.push(this.handle.decode(bytes))
      } catch (thrown) {
        await this.setAside(bytes, toError(thrown))
      }
    }
    return values
  }

  protected async setAside(bytes: Buffer, error: Error): Promise<void> {
    const record = Buffer.concat([Buffer.from(`undecodable ${Date.now()} `), bytes])
    try {
      // sent again when the connection breaks: twice is better than not at all
      await this.handle.call('RPUSH', [this.identity.keys.quarantine, record], { idempotent: true })
    } catch (thrown) {
      // no reason to keep from the caller what was taken together with it
      const cause = toError(thrown)
      const code = cause instanceof RedelayedError ? cause.code : 'ERR_INTERNAL'
      const message = `an element that cannot be decoded is lost, as it could not be set aside: ${cause.message}`
      this.context.hub.emit('error', new RedelayedError(code, message, { queue: this.name, cause }))
      return
    }
    this.context.hub.emit('quarantined', { queue: this.name, reason: 'undecodable', count: 1, error })
  }

  /** Walks a list or a schedule page by page; `fetch` gets the first and last index of a page. */
  protected async *pages(
    pageSize: number,
    fetch: (first: number, last: number) => Promise<unknown>,
  ): AsyncGenerator<Buffer[], void> {
    this.handle.checked(() => integer('pageSize', pageSize, 1, MAX_PAGE))
    for (let first = 0; ; first += pageSize) {
      const page = asArray(await fetch(first, first + pageSize - 1)).map(asBytes)
      if (page.length > 0) yield page
      if (page.length < pageSize) return
    }
  }
}

function parseQuarantined(record: Buffer): QuarantinedEntry {
  const afterReason = record.indexOf(' ')
  const afterTime = record.indexOf(' ', afterReason + 1)
  return {
    reason: asText(record.subarray(0, afterReason)),
    at: new Date(Number(record.toString('latin1', afterReason + 1, afterTime))),
    bytes: record.subarray(afterTime + 1),
  }
}
