import {
  CommandError,
  ConnectionError,
  InvalidArgumentError,
  PayloadTooLargeError,
  attributeTo,
  toError,
} from '../errors.js'
import type { MessagesEventName } from '../events.js'
import { run } from '../store/run.js'
import { acknowledge, extend, negativeAcknowledge } from '../store/reliable-scripts.js'
import { scriptTime } from '../options.js'
import { clean, cut } from '../text.js'
import { systemClock } from '../timing/clock.js'
import { Seldom } from '../timing/seldom.js'
import { Batches } from './batches.js'
import { dueKeys, type ReliableContext, type ReliableIdentity } from './context.js'
import type { Delivery } from './delivery.js'

/** What becomes of a message that was not handled. */
export interface GiveBack {
  readonly how: 'failed' | 'rejected' | 'released'
  readonly delayMs: number
  /** One line. */
  readonly reason: string
}

/** The script's answer for a time beyond 2^53-1. */
const TOO_LATE = -3
/** The same for a message that the dead letters could not take. */
const NO_DEAD_LETTER = 3
/** Of one script, and of one poll. */
const MOST = 1_000
const MAX_REASON_BYTES = 2_000

/** What a consumer does with deliveries. Each answers whether the message was still its own. */
export class Acknowledger {
  readonly #context: ReliableContext
  readonly #identity: ReliableIdentity<unknown>
  readonly #acknowledgements: Batches<Delivery, boolean>
  readonly #seldom = new Seldom(systemClock)

  constructor(context: ReliableContext, identity: ReliableIdentity<unknown>) {
    this.#context = context
    this.#identity = identity
    this.#acknowledgements = new Batches(MOST, (deliveries) => this.acknowledgeMany(deliveries))
  }

  /** As `acknowledgeMany`, together with all others of this turn. */
  acknowledge(delivery: Delivery): Promise<boolean> {
    return this.#acknowledgements.add(delivery)
  }

  async acknowledgeMany(deliveries: readonly Delivery[]): Promise<boolean[]> {
    const { messages, deliveries: leases, failures, inFlight } = this.#identity.keys
    const keys = { messages, deliveries: leases, failures, inFlight }
    const results = await inPages(deliveries, (page) =>
      run(this.#context.queues.commands, acknowledge, keys, { nowMs: this.#now, handled: namesOf(page) }),
    )
    this.#emit('acknowledged', deliveries, (at) => results[at] === true)
    return results
  }

  async giveBack(deliveries: readonly Delivery[], { how, delayMs, reason }: GiveBack): Promise<boolean[]> {
    const { keys, dead } = this.#identity
    const { messages, deliveries: leases, failures, config, inFlight, ticks } = keys
    const results = await inPages(deliveries, (page) =>
      run(
        this.#context.queues.commands,
        negativeAcknowledge,
        {
          ...dueKeys(keys),
          messages,
          deliveries: leases,
          failures,
          config,
          inFlight,
          ticks,
          deadMessages: dead.messages,
          deadFailures: dead.failures,
          deadDue: dead.due[0] ?? '',
        },
        {
          channel: keys.channel,
          deadChannel: dead.channel,
          nowMs: this.#now,
          how,
          delayMs,
          reason,
          handled: namesOf(page),
        },
      ),
    )
    if (results[0] === TOO_LATE) throw new InvalidArgumentError('delay', 'a time of at most 2^53-1 ms', delayMs)
    if (how !== 'released') this.#emit('failed', deliveries, (at) => results[at] === 1)
    this.#emit('rejected', deliveries, (at) => results[at] === 2)
    if (results.includes(NO_DEAD_LETTER) && this.#seldom.may('the dead letters')) {
      const { hub } = this.#context.queues
      const problem =
        'the dead letters: one of their keys holds another type of value; messages for them are delivered again'
      hub.emit('error', attributeTo(new CommandError('WRONGTYPE', problem), this.#identity.name))
    }
    return results.map((result) => result > 0)
  }

  /**
   * When their visibility ends now, epoch milliseconds; `null` where it was not the caller's any more. The first `unbegun` of them are not
   * being handled yet; the others count as attempts from now on.
   */
  async extend(deliveries: readonly Delivery[], visibilityMs: number, unbegun = 0): Promise<(number | null)[]> {
    const { deliveries: leases, config, inFlight, ticks, channel } = this.#identity.keys
    const keys = { ...dueKeys(this.#identity.keys), deliveries: leases, config, inFlight, ticks }
    return inPages(deliveries, (page, from) =>
      run(
        this.#context.queues.commands,
        extend,
        keys,
        { channel, nowMs: this.#now, visibilityMs, unbegun: Math.max(0, unbegun - from), handled: namesOf(page) },
        { idempotent: true },
      ),
    )
  }

  #emit(name: MessagesEventName, deliveries: readonly Delivery[], fits: (at: number) => boolean): void {
    const { hub } = this.#context.queues
    const queue = this.#identity.name
    if (!hub.isHeard(name, queue)) return
    hub.messages(
      name,
      queue,
      deliveries.filter((_, at) => fits(at)).map(({ id }) => id),
    )
  }

  get #now(): number {
    return scriptTime(this.#context.queues.settings)
  }
}

/** An error as one line for the history: cleaned, and never its stack, which may hold what no log should. */
export function reasonOf(error: unknown): string {
  if (error === undefined) return '""'
  const { name, message } = toError(error)
  const text = error instanceof PayloadTooLargeError ? error.code : clean(`${name}: ${message}`, MAX_REASON_BYTES)
  // a character has at most three bytes per UTF-16 unit
  return JSON.stringify(
    Buffer.byteLength(text) <= MAX_REASON_BYTES ? text : cut(text, Math.floor(MAX_REASON_BYTES / 3)),
  )
}

function namesOf(deliveries: readonly Delivery[]): (string | Buffer)[] {
  const names: (string | Buffer)[] = []
  for (const { member, lease } of deliveries) names.push(member, lease)
  return names
}

async function inPages<T, R>(
  items: readonly T[],
  page: (items: readonly T[], from: number) => Promise<readonly R[]>,
): Promise<R[]> {
  const results: R[] = []
  for (let from = 0; from < items.length; from += MOST) {
    try {
      results.push(...(await page(items.slice(from, from + MOST), from)))
    } catch (error) {
      if (from === 0 || !(error instanceof ConnectionError)) throw error
      throw new ConnectionError(error.message, 'unknown', { cause: error }) // of the first ones it was carried out
    }
  }
  return results
}
