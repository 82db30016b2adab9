import { isBrief } from '../redis/replies/server-errors.js'
import { CommandError } from '../errors.js'
import type { Emit } from '../events.js'
import type { QueueKeys } from '../keys.js'
import type { Settings } from '../options.js'
import type { TransferReply } from '../store/scripts.js'
import { TransferStore } from '../store/transfer-store.js'
import type { Sender } from '../store/sender.js'
import { systemClock } from '../timing/clock.js'
import { RemoteClock } from '../timing/remote-clock.js'
import { Seldom } from '../timing/seldom.js'
import { BatchLimit } from './batch-limit.js'
import type { ScriptOptions } from './due-machine.js'
import { announcedTime, DueScheduler, type ScriptResult } from './due-scheduler.js'
import { LINGER_MS, type QueueAddress, type ServedQueue } from './queue-registry.js'
import type { FineWaits } from '../timing/fine-waits.js'
import type { Retries } from './retries.js'

/** The identity of a delayed queue in this layer. */
export interface TransferTarget {
  /** The public name, for events. */
  readonly name: string
  readonly keys: QueueKeys
}

/** The part of the blocking connections that transfers need. */
export interface Takes {
  /** This client has just moved elements to `key`. */
  prefer(key: string): void
}

export interface TransferParams {
  readonly sender: Sender
  readonly settings: Settings
  /** The random name of this client, by which it recognizes its own leases. */
  readonly client: string
  readonly emit: Emit
  readonly blocking: Takes
  readonly onError: (error: Error) => void
  readonly retries: Retries
  readonly fineWaits: FineWaits | undefined
}

/** Transfers one delayed queue while it has owners or consumers. */
export class QueueTransfers implements ServedQueue {
  readonly #target: TransferTarget
  readonly #params: TransferParams
  readonly #store: TransferStore
  readonly #scheduler: DueScheduler
  readonly #limit = new BatchLimit(systemClock)
  readonly #seldom = new Seldom(systemClock)
  #owners = 0
  #consumers = 0
  #lastConsumed = -Infinity
  #isSubscribed = false
  #hasBuckets = false

  constructor(target: TransferTarget, params: TransferParams) {
    this.#target = target
    this.#params = params
    this.#store = new TransferStore(params.sender, target.keys, params.settings)
    this.#scheduler = new DueScheduler({
      script: (options) => this.#transfer(options),
      isBrief,
      onError: params.onError,
      clock: systemClock,
      remote: new RemoteClock(systemClock), // in a cluster each queue's master has its own clock
      random: Math.random,
      retries: params.retries,
      fineWaits: params.fineWaits,
    })
  }

  get address(): QueueAddress {
    return { name: this.#target.name, channel: this.#target.keys.channel }
  }

  get isUsed(): boolean {
    return this.#owners + this.#consumers > 0 || systemClock.now() - this.#lastConsumed < LINGER_MS
  }

  /** `hasBuckets`: the owner puts messages into buckets, so from now on transfers also look for buckets that the wheel lacks. */
  addOwner(hasBuckets: boolean): void {
    this.#owners++
    this.#hasBuckets ||= hasBuckets
  }

  removeOwner(): void {
    this.#owners--
  }

  addConsumer(): void {
    this.#consumers++
  }

  removeConsumer(): void {
    this.#consumers--
    this.#lastConsumed = systemClock.now()
  }

  onSubscribed(): void {
    this.#isSubscribed = true
    this.#scheduler.onSubscribed()
  }

  onUnsubscribed(): void {
    this.#isSubscribed = false
  }

  /** A client announced that the script is to run at a time of the Redis clock. */
  onMessage(message: string): void {
    const at = announcedTime(message)
    if (at !== undefined) this.#scheduler.onAnnounced(at)
  }

  /** This client offered an entry. While the channel is not subscribed, the scheduler does not receive the entry's announcement. */
  onOffered(due: number): void {
    if (!this.#isSubscribed) this.#scheduler.onKnown(due)
  }

  sweep(): void {
    this.#scheduler.wake()
  }

  stop(): Promise<void> {
    return this.#scheduler.stop()
  }

  async #transfer({ announce, renew }: ScriptOptions): Promise<ScriptResult> {
    const sentAt = systemClock.now()
    const { client } = this.#params
    const reply = await this.#store.transfer({
      limit: this.#limit.value,
      client,
      announce,
      renew,
      buckets: this.#hasBuckets,
    })
    this.#limit.observe(reply, systemClock.now() - sentAt)
    this.#announceResult(reply)
    const { moved, malformed, negative, postponed, promoted, next, now, subscribers, leader, leaseUntil } = reply
    const isStuck = next !== null && next <= now && moved + malformed + negative + postponed + promoted === 0
    return { moved, next, now, subscribers, leader, leaseUntil, isStuck }
  }

  #announceResult(reply: TransferReply): void {
    const { emit, blocking } = this.#params
    const queue = this.#target.name
    if (reply.moved > 0) {
      blocking.prefer(this.#target.keys.destination)
      emit('transferred', { queue, count: reply.moved, maxLatenessMs: reply.latenessMs })
    }
    if (reply.malformed > 0) emit('quarantined', { queue, reason: 'malformed', count: reply.malformed })
    if (reply.negative > 0) emit('quarantined', { queue, reason: 'negative-due', count: reply.negative })
    if (reply.orphans > 0) emit('quarantined', { queue, reason: 'order-orphan', count: reply.orphans })
    this.#reportKey('the order list', reply.orderError)
    this.#reportKey('the quarantine list', reply.quarantineError)
    this.#reportKey('the wheel', reply.wheelError)
  }

  /** Reports a key of a wrong type, which does not stop the transfer; seldom, because every transfer finds it. */
  #reportKey(which: string, problem: string): void {
    if (problem === '' || !this.#seldom.may(which)) return
    this.#params.onError(new CommandError(/^[A-Z]+/.exec(problem)?.[0] ?? 'ERR', `${which}: ${problem}`))
  }
}
