import { randomBytes } from 'node:crypto'
import { isBrief } from '../redis/replies/server-errors.js'
import type { ChannelListener } from '../redis/subscriber.js'
import { CommandError, ShutdownError, failureOf } from '../errors.js'
import type { Emit } from '../events.js'
import type { QueueKeys } from '../keys.js'
import { DelayedStore, type TransferReply } from '../store/delayed-store.js'
import type { Sender } from '../store/sender.js'
import type { Settings } from '../options.js'
import { systemClock } from '../timing/clock.js'
import { RemoteClock } from '../timing/remote-clock.js'
import { Seldom } from '../timing/seldom.js'
import { BatchLimit } from './batch-limit.js'
import type { ScriptOptions } from './due-machine.js'
import { announcedTime, DueScheduler, type ScriptResult } from './due-scheduler.js'
import { Sweeper } from './sweeper.js'

/** Of the random name of a client, by which it knows its own leases. */
const CLIENT_BYTES = 6

/** A queue is transferred this long after its last consumer stopped waiting, so that consumers in a loop cost nothing. */
const LINGER_MS = 60_000

/** What identifies a queue to this layer. */
export interface TransferTarget {
  /** The public name, for events. */
  readonly name: string
  readonly keys: QueueKeys
}

/** The part of the subscriber that is needed here. */
export interface Channels {
  add(channel: string, listener: ChannelListener): void
  remove(channel: string): void
}

interface Entry {
  readonly target: TransferTarget
  readonly scheduler: DueScheduler
  readonly seldom: Seldom
  owners: number
  consumers: number
  lastConsumed: number
  subscribed: boolean
}

/** One scheduler per queue of this client, started by its first user and stopped after its last. */
export class TransferRegistry {
  readonly #sender: Sender
  readonly #channels: Channels
  readonly #settings: Settings
  readonly #emit: Emit
  readonly #onDelivered: (destination: string) => void
  readonly #entries = new Map<string, Entry>()
  readonly #stopping = new Set<Promise<void>>()
  readonly #sweeper: Sweeper<Entry>
  readonly #client = randomBytes(CLIENT_BYTES).toString('base64url')
  #closed = false

  constructor(params: {
    sender: Sender
    channels: Channels
    settings: Settings
    emit: Emit
    onDelivered: (destination: string) => void
  }) {
    this.#sender = params.sender
    this.#channels = params.channels
    this.#settings = params.settings
    this.#emit = params.emit
    this.#onDelivered = params.onDelivered
    this.#sweeper = new Sweeper({
      members: this.#entries,
      interval: this.#settings.sweepInterval,
      sweep: (entry) => this.#sweep(entry),
      clock: systemClock,
      random: Math.random,
    })
  }

  /** Transfers the queue until the returned function is called; n acquisitions need n releases. */
  acquire(target: TransferTarget): () => Promise<void> {
    const entry = this.#entry(target)
    entry.owners++
    let released: Promise<void> | undefined
    return () => {
      if (released !== undefined) return released
      entry.owners--
      released = this.#isUsed(entry) ? Promise.resolve() : this.#stop(entry)
      return released
    }
  }

  /** As `acquire` for a consumer that waits; after the release the queue is still transferred for a while. */
  consume(target: TransferTarget): () => void {
    const entry = this.#entry(target)
    entry.consumers++
    return () => {
      entry.consumers--
      entry.lastConsumed = systemClock.now()
    }
  }

  /** This client offered an entry. While the channel is not subscribed, the scheduler does not receive the entry's announcement. */
  onOffered(target: TransferTarget, due: number): void {
    const entry = this.#entries.get(target.keys.destination)
    if (entry?.subscribed === false) entry.scheduler.onKnown(due)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#sweeper.stop()
    for (const entry of this.#entries.values()) void this.#stop(entry)
    await Promise.all(this.#stopping)
  }

  #entry(target: TransferTarget): Entry {
    if (this.#closed) throw new ShutdownError('the client was shut down')
    const id = target.keys.destination
    const existing = this.#entries.get(id)
    if (existing !== undefined) return existing
    const store = new DelayedStore(this.#sender, target.keys, { settings: this.#settings })
    const limit = new BatchLimit()
    const scheduler = new DueScheduler({
      script: (options) => this.#transfer(target, store, limit, options),
      isBrief,
      onError: (error) => this.#report(target, error),
      clock: systemClock,
      remote: new RemoteClock(systemClock), // in a cluster each queue's master has its own clock
      random: Math.random,
    })
    const seldom = new Seldom(systemClock)
    const entry: Entry = {
      target,
      scheduler,
      seldom,
      owners: 0,
      consumers: 0,
      lastConsumed: -Infinity,
      subscribed: false,
    }
    this.#entries.set(id, entry)
    this.#channels.add(target.keys.channel, {
      onSubscribed: () => {
        entry.subscribed = true
        this.#emit('subscribed', { queue: target.name })
        scheduler.onSubscribed()
      },
      onUnsubscribed: () => (entry.subscribed = false),
      onMessage: (message) => {
        const due = announcedTime(message)
        if (due !== undefined) scheduler.onAnnounced(due)
      },
      onError: (error) => this.#report(target, error),
    })
    this.#sweeper.start()
    return entry
  }

  #isUsed(entry: Entry): boolean {
    return entry.owners + entry.consumers > 0 || systemClock.now() - entry.lastConsumed < LINGER_MS
  }

  async #stop(entry: Entry): Promise<void> {
    const id = entry.target.keys.destination
    if (this.#entries.get(id) !== entry) return
    this.#entries.delete(id)
    this.#channels.remove(entry.target.keys.channel)
    const stopped = entry.scheduler.stop().finally(() => this.#stopping.delete(stopped))
    this.#stopping.add(stopped)
    await stopped
  }

  #sweep(entry: Entry): void {
    if (this.#isUsed(entry)) entry.scheduler.wake()
    else void this.#stop(entry)
  }

  async #transfer(
    target: TransferTarget,
    store: DelayedStore,
    limit: BatchLimit,
    { announce, renew }: ScriptOptions,
  ): Promise<ScriptResult> {
    const sentAt = systemClock.now()
    const reply = await store.transfer({ limit: limit.value, client: this.#client, announce, renew })
    limit.observe(reply, systemClock.now() - sentAt)
    this.#announceResult(target, reply)
    const { moved, malformed, negative, postponed, next, now } = reply
    const isStuck = next !== null && next <= now && moved + malformed + negative + postponed === 0
    return { ...reply, isStuck }
  }

  #announceResult(target: TransferTarget, reply: TransferReply): void {
    const queue = target.name
    if (reply.moved > 0) this.#onDelivered(target.keys.destination)
    if (reply.moved > 0) this.#emit('transferred', { queue, count: reply.moved, maxLatenessMs: reply.latenessMs })
    if (reply.malformed > 0) this.#emit('quarantined', { queue, reason: 'malformed', count: reply.malformed })
    if (reply.negative > 0) this.#emit('quarantined', { queue, reason: 'negative-due', count: reply.negative })
    if (reply.orphans > 0) this.#emit('quarantined', { queue, reason: 'order-orphan', count: reply.orphans })
    this.#reportKey(target, 'the order list', reply.orderError)
    this.#reportKey(target, 'the quarantine list', reply.quarantineError)
  }

  /** Reports a key of a wrong type, which does not stop the transfer: once in a while, because every transfer meets it. */
  #reportKey(target: TransferTarget, which: string, problem: string): void {
    if (problem === '') return
    const seldom = this.#entries.get(target.keys.destination)?.seldom
    if (seldom?.may(which) !== true) return
    this.#report(target, new CommandError(/^[A-Z]+/.exec(problem)?.[0] ?? 'ERR', `${which}: ${problem}`))
  }

  #report(target: TransferTarget, cause: Error): void {
    if (this.#closed || cause instanceof ShutdownError) return
    this.#emit('error', failureOf('transfer', cause, { queue: target.name }))
  }
}
