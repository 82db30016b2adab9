import type { QueueKeys } from '../keys.js'
import { scriptTime, type Settings } from '../options.js'
import { IDLE_MS, LEASE_MS, LEAST_LEASE_MS, SUBSCRIBERS_PER_LEASE_MS } from './lease.js'
import { run } from './run.js'
import type { ArgsOf } from './script.js'
import { transfer, type TransferReply } from './scripts.js'
import type { Sender } from './sender.js'

/** How long one transfer runs, and other clients' commands wait. */
const TRANSFER_BUDGET_US = 2_000
/** The most bytes of one transfer: large messages take the server time per byte, and the script checks its time only after reading them. */
const TRANSFER_BYTES = 2 * 2 ** 20
/** The time argument for the server's own clock. */
const SERVER_TIME = -1

type Large = Pick<TransferReply, 'largeHead' | 'largeFirst'>
const NONE_LARGE: Large = { largeHead: '', largeFirst: '' }
/** The time after which waiting large entries are read again, because they may be gone. */
const LARGE_MS = 60_000

/**
 * The arguments of a transfer besides the constants; see the script's header. `buckets`: whether to look for those that the wheel lacks.
 */
export type TransferRequest = Pick<
  ArgsOf<(typeof transfer)['source']>,
  'limit' | 'client' | 'announce' | 'renew' | 'buckets'
>

/** Transfers the due entries of one delayed queue, whatever its layout. */
export class TransferStore {
  readonly #sender: Sender
  readonly #keys: QueueKeys
  readonly #settings: Settings | undefined
  /** The large entries from the last transfers, and until when they are trusted. */
  #large = NONE_LARGE
  #largeUntil = 0

  /** Without `settings`, the server's clock decides. */
  constructor(sender: Sender, keys: QueueKeys, settings?: Settings) {
    this.#sender = sender
    this.#keys = keys
    this.#settings = settings
  }

  /** Moves due entries to the destination. */
  async transfer({ limit, client, announce, renew, buckets }: TransferRequest): Promise<TransferReply> {
    const sent = performance.now() < this.#largeUntil ? this.#large : NONE_LARGE
    // one literal, because it runs for each due time: merging objects costs two kilobytes of garbage
    const args = {
      channel: this.#keys.channel,
      nowMs: this.#settings === undefined ? SERVER_TIME : scriptTime(this.#settings),
      limit,
      client,
      announce,
      renew,
      largeHead: sent.largeHead,
      largeFirst: sent.largeFirst,
      buckets,
      budgetUs: TRANSFER_BUDGET_US,
      bytes: TRANSFER_BYTES,
      leaseMs: LEASE_MS,
      leastLeaseMs: LEAST_LEASE_MS,
      subscribersPerLeaseMs: SUBSCRIBERS_PER_LEASE_MS,
      idleMs: IDLE_MS,
    }
    const reply = await run(this.#sender, transfer, this.#keys, args, { resend: 'harmless' })
    const { largeHead, largeFirst } = reply
    if (largeHead !== sent.largeHead || largeFirst !== sent.largeFirst) {
      this.#large = { largeHead, largeFirst }
      this.#largeUntil = performance.now() + LARGE_MS
    }
    return reply
  }
}
