import { run } from '../store/run.js'
import { RedelayedError } from '../errors.js'
import { asArray, asBytesOrNull, asFlag, asInteger } from '../store/replies.js'
import { configure } from '../store/reliable-scripts.js'
import { integer, oneOf, onlyKnown } from '../options.js'
import { CONFIG_NAMES, configArgs, readConfig, type ReliableQueueConfig } from './config.js'
import type { ReliableContext, ReliableIdentity } from './context.js'
import { Inspection, readFailures, type FailedAttempt, type Found, type MessageState } from './inspection.js'
import { assertKnownId } from './message-id.js'
import { readRecord, type Headers } from './record.js'
import { ReliableObject } from './reliable-object.js'

/** A message as it lies in the queue. */
export interface MessageInfo<T> {
  readonly id: string
  readonly payload: T
  readonly headers: Headers
  readonly priority: number
  readonly state: MessageState
  /** When it is, was, or will be again visible, epoch milliseconds by the Redis clock. */
  readonly visibleAt: number
  /** How often it was delivered. */
  readonly attempts: number
  readonly failures: readonly FailedAttempt[]
  readonly expiresAt: number | null
}

/** How many messages there are, by what becomes of them next. */
export interface ReliableQueueCounts {
  readonly total: number
  readonly visible: number
  readonly delayed: number
  readonly inFlight: number
  readonly dead: number
  /** How long the first of the visible ones has been waiting, in milliseconds. */
  readonly oldestMs: number
}

const PAGE = 500

/** What a reliable queue holds, and what holds for it. */
export abstract class ReliableContents<T> extends ReliableObject<T> {
  protected readonly inspection: Inspection

  /** @internal */
  constructor(reliable: ReliableContext, identity: ReliableIdentity<T>) {
    super(reliable, identity)
    this.inspection = new Inspection(reliable, identity)
  }

  /** The message of an id as it lies in the queue, or `null`. */
  async get(id: string): Promise<MessageInfo<T> | null> {
    const [info = null] = await this.getAll([id])
    return info
  }

  /** The messages of some ids in their order, `null` for those that are not there. */
  async getAll(ids: readonly string[]): Promise<(MessageInfo<T> | null)[]> {
    const bytes = this.handle.checked(() => ids.map((id, at) => Buffer.from(assertKnownId(`ids[${at}]`, id))))
    const found = await this.handle.attribute(this.inspection.find(bytes))
    return found.map((message) => (message === null ? null : this.info(message)))
  }

  async contains(id: string): Promise<boolean> {
    return (await this.containsMany([id])) === 1
  }

  /** How many of some ids are there. */
  async containsMany(ids: readonly string[]): Promise<number> {
    const bytes = this.handle.checked(() => ids.map((id, at) => Buffer.from(assertKnownId(`ids[${at}]`, id))))
    let there = 0
    for (let from = 0; from < bytes.length; from += PAGE) {
      // one command each: one for all would answer with the messages
      const page = bytes.slice(from, from + PAGE)
      const replies = await Promise.all(
        page.map((id) => this.handle.call('HEXISTS', [this.identity.keys.messages, id], { idempotent: true })),
      )
      there += replies.filter(asFlag).length
    }
    return there
  }

  /**
   * Walks the messages without taking them, those of one state or all, in pages of `pageSize` (1 to 1,000). While others add and
   * take, messages can be missed or seen twice. One whose payload cannot be read is left out and reported by an `error` event.
   */
  async *listAll(options: { state?: MessageState; pageSize?: number } = {}): AsyncGenerator<MessageInfo<T>, void> {
    const { state, pageSize } = this.handle.checked(() => {
      onlyKnown('options', options, ['state', 'pageSize'])
      const { state } = options
      return {
        state: state === undefined ? undefined : oneOf('state', state, ['visible', 'delayed', 'inFlight']),
        pageSize: integer('pageSize', options.pageSize ?? 100, 1, 1_000),
      }
    })
    for await (const found of this.inspection.walk(state, pageSize)) {
      try {
        yield this.info(found)
      } catch (thrown) {
        if (!(thrown instanceof RedelayedError)) throw thrown
        this.context.hub.emit('error', thrown)
      }
    }
  }

  async counts(): Promise<ReliableQueueCounts> {
    const reply = await this.handle.attribute(this.inspection.count())
    const { total, visible, delayed, inFlight, dead } = reply
    return { total, visible, delayed, inFlight, dead, oldestMs: Inspection.waitOf(reply) }
  }

  /** How many messages there are, those in flight too. */
  async size(): Promise<number> {
    return asInteger(await this.handle.call('HLEN', [this.identity.keys.messages], { idempotent: true }))
  }

  async isEmpty(): Promise<boolean> {
    return (await this.size()) === 0
  }

  async countDelayedMessages(): Promise<number> {
    return (await this.counts()).delayed
  }

  async countUnacknowledgedMessages(): Promise<number> {
    return (await this.counts()).inFlight
  }

  /** Sets what holds for the queue in all processes. What is not given stays, `null` goes back to the default. */
  async setConfig(config: ReliableQueueConfig): Promise<void> {
    await this.configure(
      this.handle.checked(() => configArgs(config)),
      false,
    )
  }

  /** The same, unless anything is set already. Resolves with whether it was done. */
  setConfigIfAbsent(config: ReliableQueueConfig): Promise<boolean> {
    return this.configure(
      this.handle.checked(() => configArgs(config)),
      true,
    )
  }

  async getConfig(): Promise<ReliableQueueConfig> {
    const values = asArray(
      await this.handle.call('HMGET', [this.identity.keys.config, ...CONFIG_NAMES], { idempotent: true }),
    )
    return readConfig(values.map((value) => asBytesOrNull(value)?.toString() ?? null))
  }

  /** From now on adding is refused, or polls get nothing, in all processes, until it is enabled again. */
  async disableOperation(operation: 'add' | 'poll'): Promise<void> {
    await this.configure([this.operation(operation), '1'], false)
  }

  async enableOperation(operation: 'add' | 'poll'): Promise<void> {
    await this.configure([this.operation(operation), ''], false)
  }

  protected configure(settings: readonly string[], ifAbsent: boolean): Promise<boolean> {
    const { config, channel } = this.identity.keys
    return run(this.handle, configure, { config }, { channel, ifAbsent, settings })
  }

  protected operation(operation: unknown): string {
    return this.handle.checked(() => `${oneOf('operation', operation, ['add', 'poll'])}Paused`)
  }

  protected info(found: Found): MessageInfo<T> {
    const { headers, payload, expiresAt } = readRecord(found.record)
    return {
      id: found.id.toString(),
      payload: this.handle.decode(payload),
      headers,
      priority: found.priority,
      state: found.state,
      visibleAt: found.visibleAt,
      attempts: found.attempts,
      failures: readFailures(found.failures),
      expiresAt,
    }
  }
}
