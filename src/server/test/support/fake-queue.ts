import {
  codecs,
  type AddItem,
  type Added,
  type StoredQueueConfig,
  type RestoreItem,
  type RestoreOutcome,
  type StoredRawMessage,
} from 'redelayed'
import type { ChangeReading, JournalBatch, JournalChange, JournalledQueue } from '../../journal/journalled-queue.js'

interface State {
  readonly messages: Map<string, StoredRawMessage>
  readonly stream: JournalBatch[]
  readonly epoch: string
  readonly last: number
}

/** Options of a journal of such queues: their clock says 1970, so by default it would prune final messages at once. */
export const NEVER_PRUNED = { retentionMs: Number.MAX_SAFE_INTEGER } as const

/** A reliable queue in memory, with a change stream; it can be wiped and set back, as Redis can. Its clock stands unless it is moved. */
export class FakeQueue implements JournalledQueue<string> {
  readonly codec = codecs.string()
  clock = 1_000_000
  isDown = false
  withPayloads = true
  released = '0-0'
  config: StoredQueueConfig = {}
  #state: State = { messages: new Map(), stream: [], epoch: '', last: 0 }
  #epochs = 0

  constructor(readonly name: string) {}

  get messages(): ReadonlyMap<string, StoredRawMessage> {
    return this.#state.messages
  }

  /** Whether its changes are written. */
  get isKept(): boolean {
    return this.#state.epoch !== ''
  }

  get stream(): readonly JournalBatch[] {
    return this.#state.stream
  }

  /** Redis is there again, without data. */
  wipe(): void {
    this.#state = { messages: new Map(), stream: [], epoch: '', last: 0 }
    this.config = {}
  }

  /** Takes a snapshot; the returned function restores it. */
  snapshot(): () => void {
    const { messages, stream, epoch, last } = this.#state
    const saved = { messages: new Map(messages), stream: [...stream], epoch, last }
    return () => {
      this.#state = {
        messages: new Map(saved.messages),
        stream: [...saved.stream],
        epoch: saved.epoch,
        last: saved.last,
      }
    }
  }

  /** Removes the entries up to an id, like trimming. */
  trim(id: string): void {
    const { stream } = this.#state
    while (stream.length > 0 && Number(stream[0]?.position.id.split('-')[0]) <= Number(id.split('-')[0])) stream.shift()
  }

  async addMany(items: Iterable<AddItem<string>>): Promise<Added[]> {
    this.#assertUp()
    const changes: JournalChange[] = []
    const added = [...items].map((item): Added => {
      const id = item.id ?? 'drawn'
      if (this.messages.has(id)) return { id, outcome: 'kept' }
      const dueAt = Math.max(this.clock, item.date?.getTime() ?? this.clock)
      const payload = this.codec.encode(item.payload)
      const { priority = 0, headers = {}, timeToLive, deliveryLimit = null, group } = item
      const expiresAt = timeToLive === undefined ? null : dueAt + Number(timeToLive)
      const message = {
        id,
        dueAt,
        priority,
        attempts: 0,
        headers,
        payload,
        expiresAt,
        deliveryLimit,
        ...(group !== undefined && { group }),
        failures: [],
        inFlight: false,
      }
      this.#state.messages.set(id, message)
      changes.push(this.#added(message))
      return { id, outcome: 'added' }
    })
    this.#write(changes)
    return added
  }

  poll(id: string, visibilityMs = 30_000): void {
    const message = this.#get(id)
    const polled = { ...message, attempts: message.attempts + 1, dueAt: this.clock + visibilityMs, inFlight: true }
    this.#state.messages.set(id, polled)
    this.#write([{ change: 'polled', id, attempt: polled.attempts, dueAt: polled.dueAt, priority: polled.priority }])
  }

  fail(id: string, error: string, delayMs: number): void {
    const message = this.#get(id)
    const failures = [...message.failures, { attempt: message.attempts, at: new Date(this.clock), reason: error }]
    const failed = { ...message, dueAt: this.clock + delayMs, inFlight: false, failures }
    this.#state.messages.set(id, failed)
    // without a reason the stream has none
    const reason = error === '' ? {} : { error }
    this.#write([{ change: 'failed', id, attempt: message.attempts, dueAt: failed.dueAt, ...reason }])
  }

  end(id: string, change = 'acknowledged'): void {
    this.#get(id)
    this.#state.messages.delete(id)
    this.#write([{ change, id }])
  }

  /** Moves a message to another queue, where it begins anew, in one step like a script of Redis. */
  move(id: string, to: FakeQueue, change = 'added'): void {
    const message = { ...this.#get(id), attempts: 0, failures: [], inFlight: false, dueAt: to.clock }
    this.#state.messages.delete(id)
    this.#write([{ change: 'moved', id, to: to.name }])
    to.#state.messages.set(id, message)
    to.#write([{ ...to.#added(message), change }])
  }

  reschedule(id: string, dueAt: number): void {
    const message = this.#get(id)
    const expiresAt = message.expiresAt === null ? null : message.expiresAt + dueAt - message.dueAt
    this.#state.messages.set(id, { ...message, dueAt, expiresAt })
    this.#write([{ change: 'rescheduled', id, dueAt, ...(expiresAt !== null && { expiresAt }) }])
  }

  update(id: string, text: string): void {
    const updated = { ...this.#get(id), payload: this.codec.encode(text) }
    this.#state.messages.set(id, updated)
    const { dueAt: _, priority: __, ...content } = this.#added(updated)
    this.#write([{ ...content, change: 'updated' }])
  }

  clear(): void {
    this.#state.messages.clear()
    this.#write([{ change: 'cleared', id: '' }])
  }

  async remove(...ids: readonly string[]): Promise<number> {
    this.#assertUp()
    const there = ids.filter((id) => this.#state.messages.delete(id))
    this.#write(there.map((id) => ({ change: 'removed', id })))
    return there.length
  }

  async cancel(id: string): Promise<boolean> {
    this.#assertUp()
    if (this.messages.get(id)?.inFlight !== false) return false
    return (await this.remove(id)) === 1
  }

  async contains(id: string): Promise<boolean> {
    this.#assertUp()
    return this.messages.has(id)
  }

  async restoreMany(
    items: Iterable<RestoreItem>,
    { known = false }: { readonly known?: boolean } = {},
  ): Promise<RestoreOutcome[]> {
    this.#assertUp()
    const changes: JournalChange[] = []
    const outcomes = [...items].map(({ replaces, ...item }): RestoreOutcome => {
      const there = this.messages.get(item.id)
      if (there === undefined && replaces !== undefined) return 'absent'
      if (there !== undefined && there.dueAt !== replaces) return 'present'
      const message = { ...item, inFlight: false }
      this.#state.messages.set(item.id, message)
      changes.push(known ? { change: 'restored', id: item.id } : { ...this.#added(message), attempt: item.attempts })
      return there === undefined ? 'restored' : 'replaced'
    })
    this.#write(changes)
    return outcomes
  }

  async getAllRaw(ids: readonly string[]): Promise<(StoredRawMessage | null)[]> {
    this.#assertUp()
    return ids.map((id) => this.messages.get(id) ?? null)
  }

  async *listAllRaw({ pageSize = 1_000 }: { pageSize?: number } = {}): AsyncGenerator<StoredRawMessage[], void> {
    this.#assertUp()
    const all = [...this.messages.values()]
    for (let from = 0; from < all.length; from += pageSize) yield all.slice(from, from + pageSize)
  }

  async size(): Promise<number> {
    this.#assertUp()
    return this.messages.size
  }

  async now(): Promise<number> {
    this.#assertUp()
    return this.clock
  }

  async getConfig(): Promise<StoredQueueConfig> {
    this.#assertUp()
    return this.isKept ? { ...this.config, changes: { keep: 'groups', payloads: true } } : this.config
  }

  async keepChanges(_group = '', lost: StoredQueueConfig = {}): Promise<void> {
    this.#assertUp()
    if (this.isKept) return
    this.config = { ...this.config, ...lost }
    this.#state = { ...this.#state, epoch: `epoch${this.#epochs++}` }
  }

  async readChanges(after: { id: string; epoch: string | null }, count: number): Promise<ChangeReading> {
    this.#assertUp()
    const { stream, epoch, last } = this.#state
    const text = last === 0 ? null : `${last}-0`
    if (epoch === '') return { status: 'off', epoch: null, last: null, batches: [] }
    const from = Number(after.id.split('-')[0])
    if (after.epoch !== null) {
      if (after.epoch !== epoch) return { status: 'epoch', epoch, last: text, batches: [] }
      if (last < from) return { status: 'rewound', epoch, last: text, batches: [] }
      if (from > 0 && !stream.some(({ position }) => position.id === after.id))
        return { status: 'trimmed', epoch, last: text, batches: [] }
    }
    const later = stream.filter(({ position }) => Number(position.id.split('-')[0]) > from)
    return { status: 'ok', epoch, last: text, batches: later.slice(0, count) }
  }

  async releaseChanges(_group: string, id: string): Promise<boolean> {
    this.#assertUp()
    this.released = id
    return true
  }

  #added({ id, dueAt, priority, payload, headers, expiresAt, deliveryLimit, group }: StoredRawMessage): JournalChange {
    const change = { change: 'added', id, dueAt, priority }
    if (!this.withPayloads) return change
    return {
      ...change,
      payload,
      headers,
      ...(expiresAt !== null && { expiresAt }),
      ...(deliveryLimit !== null && { deliveryLimit }),
      ...(group !== undefined && { group }),
    }
  }

  #write(changes: readonly JournalChange[]): void {
    if (changes.length === 0 || this.#state.epoch === '') return
    const { epoch } = this.#state
    const last = Math.max(this.clock, this.#state.last + 1)
    this.#state = { ...this.#state, last }
    this.#state.stream.push({ position: { epoch, id: `${last}-0` }, at: this.clock, client: 'fake', changes })
  }

  #get(id: string): StoredRawMessage {
    const message = this.messages.get(id)
    if (message === undefined) throw new Error(`there is no message ${id}`)
    return message
  }

  #assertUp(): void {
    if (this.isDown) throw new Error('Redis is down')
  }
}
