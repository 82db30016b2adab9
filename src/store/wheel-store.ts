import { entryPrefix } from '../codecs/entry.js'
import { CommandError, toError } from '../errors.js'
import type { QueueKeys } from '../keys.js'
import { scriptTime, type Settings } from '../options.js'
import { pause } from '../timing/pause.js'
import { FIRST_ATTEMPT, delaysOf, dueTimesOf, type OfferedEntry, type OffersStore } from './delayed-store.js'
import { waitedFor, type WaitedFor } from './durable-scripts.js'
import { asInteger } from './replies.js'
import { run, runMany } from './run.js'
import type { ArgsOf } from './script.js'
import {
  wheelCancel,
  wheelClear,
  wheelCount,
  wheelOffer,
  wheelPromote,
  wheelReschedule,
  type OfferManyReply,
  type WheelRescheduleReply,
} from './scripts.js'
import type { Sender } from './sender.js'

const durableOffer = waitedFor(wheelOffer)

/** The reply of cancel and reschedule for an entry whose bucket is being promoted. */
const IN_PROMOTION = -3
/** How long a call continues a promotion, which takes less than a second for a million messages of one minute. */
const MOST_PROMOTION_MS = 10_000
/** The wait after a step without progress, and the longest one after several: each is twice as long as the one before. */
const PAUSE_MS = 5
const LONGEST_PAUSE_MS = 250

/**
 * The schedule of a delayed queue with layout `'wheel'`: messages due soon are in the sorted set of the other layouts, and the rest in the
 * lists of their minutes. One method per script. `TransferStore` has the transfers.
 */
export class WheelStore implements OffersStore {
  readonly #sender: Sender
  readonly #keys: QueueKeys
  readonly #settings: Settings

  constructor(sender: Sender, keys: QueueKeys, settings: Settings) {
    this.#sender = sender
    this.#keys = keys
    this.#settings = settings
  }

  async offer(offered: OfferedEntry): Promise<number> {
    const [due] = dueTimesOf([offered], await run(this.#sender, wheelOffer, this.#keys, this.#offerArgs([offered])))
    return due as number
  }

  async offerEach(offered: readonly OfferedEntry[]): Promise<(number | Error)[]> {
    const args = offered.map((each) => this.#offerArgs([each]))
    const replies = await runMany(this.#sender, wheelOffer, this.#keys, args)
    return offered.map((each, at) => dueOf(each, replies[at] as OfferManyReply | Error))
  }

  async offerEachDurably(
    sender: Pick<Sender, 'pipeline'>,
    offered: readonly OfferedEntry[],
  ): Promise<(WaitedFor<number> | Error)[]> {
    const args = offered.map((each) => this.#offerArgs([each]))
    const replies = await runMany(sender, durableOffer, this.#keys, args)
    return offered.map((each, at) => {
      const reply = replies[at] as WaitedFor<OfferManyReply> | Error
      if (reply instanceof Error) return reply
      const due = dueOf(each, reply.reply)
      return due instanceof Error ? due : { ...reply, reply: due }
    })
  }

  async offerTogether(offered: readonly OfferedEntry[]): Promise<number[]> {
    if (offered.length === 0) return []
    return dueTimesOf(offered, await run(this.#sender, wheelOffer, this.#keys, this.#offerArgs(offered)))
  }

  #offerArgs(offered: readonly OfferedEntry[]): ArgsOf<(typeof wheelOffer)['source']> {
    const [first] = offered
    return {
      channel: this.#keys.channel,
      nowMs: this.#nowMs(),
      dated: first !== undefined && 'atMs' in first.due,
      undeliveredUntilMs: first?.undeliveredUntilMs ?? FIRST_ATTEMPT,
      delays: delaysOf(offered),
      entries: offered.map(({ entry }) => entry),
    }
  }

  /** Cancels an entry; false if no entry has this id and due time, or it was cancelled before. */
  async cancel(id: Buffer, due: number): Promise<boolean> {
    const args = { nowMs: this.#nowMs(), due, prefix: entryPrefix(id) }
    const reply = await this.#afterPromotion(
      () => run(this.#sender, wheelCancel, this.#keys, args),
      (answer) => answer,
    )
    return reply === 1
  }

  /** As in `DelayedStore`; the entry gets the id `newId`. */
  async reschedule(id: Buffer, due: number, delayMs: number, newId: Buffer): Promise<number | null> {
    const { channel } = this.#keys
    const [prefix, newPrefix] = [entryPrefix(id), entryPrefix(newId)]
    let from = 0
    for (;;) {
      const args = { channel, nowMs: this.#nowMs(), due, prefix, newPrefix, delayMs, from }
      const reply: WheelRescheduleReply = await this.#afterPromotion(
        () => run(this.#sender, wheelReschedule, this.#keys, args),
        (answer) => answer.due,
      )
      if (reply.from === null) return reply.due
      from = reply.from
    }
  }

  /** Runs a script, again after each step of a promotion that blocks it. */
  async #afterPromotion<R>(call: () => Promise<R>, codeOf: (reply: R) => number | null): Promise<R> {
    const until = performance.now() + MOST_PROMOTION_MS
    let pauseMs = PAUSE_MS
    for (;;) {
      const reply = await call()
      if (codeOf(reply) !== IN_PROMOTION) return reply
      if (performance.now() > until)
        throw new CommandError('BUSY', 'the minute of this message is being promoted: try again')
      const args = { nowMs: this.#nowMs() }
      const isFurther = await run(this.#sender, wheelPromote, this.#keys, args, { resend: 'harmless' })
      if (isFurther) {
        pauseMs = PAUSE_MS
        continue
      }
      await pause(pauseMs)
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)
    }
  }

  /** The number of pending messages, counted at one moment if they are in fewer than 500 buckets. */
  async size(): Promise<number> {
    const scheduled = asInteger(await this.#sender.call('ZCARD', [this.#keys.timeouts], { resend: 'reads' }))
    let size = scheduled
    for (let from: number | null = 0; from !== null;) {
      const counted: { pending: number; more: number | null } = await run(
        this.#sender,
        wheelCount,
        this.#keys,
        { nowMs: this.#nowMs(), from },
        { resend: 'reads' },
      )
      size += counted.pending
      from = counted.more
    }
    return size
  }

  async exists(): Promise<boolean> {
    const { timeouts, order, wheel } = this.#keys
    return asInteger(await this.#sender.call('EXISTS', [timeouts, order, wheel], { resend: 'reads' })) > 0
  }

  /** Deletes all pending messages, in steps; resolves with whether there were any. */
  async clear(): Promise<boolean> {
    let isAny = false
    for (;;) {
      const { deleted, isMore } = await run(this.#sender, wheelClear, this.#keys, {})
      isAny ||= deleted > 0
      if (!isMore) return isAny
    }
  }

  #nowMs(): number {
    return scriptTime(this.#settings)
  }
}

/** An invalid reply is an error of its offer, and does not affect the others. */
function dueOf(offered: OfferedEntry, reply: OfferManyReply | Error): number | Error {
  if (reply instanceof Error) return reply
  try {
    return dueTimesOf([offered], reply)[0] as number
  } catch (thrown) {
    return toError(thrown)
  }
}
