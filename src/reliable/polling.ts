import { randomBytes } from 'node:crypto'
import { CommandError, attributeTo } from '../errors.js'
import { poll, type PollReply } from '../store/reliable-scripts.js'
import { run } from '../store/run.js'
import { scriptTime } from '../options.js'
import { systemClock } from '../timing/clock.js'
import { Seldom } from '../timing/seldom.js'
import { dueKeys, type ReliableContext, type ReliableIdentity } from './context.js'
import type { Acknowledger } from './handling.js'
import type { PollTarget } from './poll-registry.js'
import { polledOf, type HowToHold, type Polled } from './poller.js'
import { mostRepeatBytes } from './repeats/repeat-definition.js'
import type { Repeats } from './repeats/repeats.js'

/** A script hands out for about this long, so that other clients' commands wait no longer. */
const SCRIPT_BUDGET_US = 2_000
const IDLE_MS = 3_600_000
const TOKEN_BYTES = 6

/** Takes deliveries from a queue: what is there now, or what comes. */
export class Claims {
  readonly #context: ReliableContext
  readonly #identity: ReliableIdentity<unknown>
  readonly #repeats: Repeats
  readonly #target: PollTarget
  readonly #seldom = new Seldom(systemClock)

  constructor(context: ReliableContext, identity: ReliableIdentity<unknown>, handling: Acknowledger, repeats: Repeats) {
    this.#context = context
    this.#identity = identity
    this.#repeats = repeats
    this.#target = {
      name: identity.name,
      channel: identity.keys.channel,
      isConnected: () => context.queues.commands.connected,
      poll: (count, how, announce) => this.#run(count, how, announce),
      release: async (polled) => {
        await handling.giveBack(polled, { how: 'released', delayMs: 0, reason: '""' })
      },
    }
  }

  /** Up to `count` that are there. */
  async now(count: number, how: HowToHold): Promise<Polled[]> {
    const polled: Polled[] = []
    while (polled.length < count) {
      const sentAt = performance.now()
      const reply = await this.#run(count - polled.length, how, false).catch((error: unknown) => {
        if (polled.length === 0) throw error
        return undefined // what was handed out before must reach the caller
      })
      if (reply === undefined) break
      polled.push(...polledOf(reply, sentAt))
      if (reply.next === null || reply.next > reply.now || reply.changed === 0) break
    }
    return polled
  }

  /** 1 to `count`, as soon as there are any; none when the time is over. */
  async wait(
    count: number,
    how: HowToHold,
    deadline: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Polled[]> {
    const timeoutMs = deadline === undefined ? undefined : Math.max(0, deadline - performance.now())
    return this.#context.polls.use(this.#target).take(count, how, { timeoutMs, signal })
  }

  async #run(count: number, { visibilityMs, beforehand }: HowToHold, announce: boolean): Promise<PollReply> {
    const { keys, dead } = this.#identity
    const { messages, deliveries, failures, config, inFlight, repeats, ticks, channel } = keys
    const reply = await run(
      this.#context.queues.commands,
      poll,
      {
        ...dueKeys(keys),
        messages,
        deliveries,
        failures,
        config,
        inFlight,
        repeats,
        ticks,
        deadMessages: dead.messages,
        deadFailures: dead.failures,
        deadDue: dead.due[0] ?? '',
      },
      {
        channel,
        deadChannel: dead.channel,
        nowMs: scriptTime(this.#context.queues.settings),
        budgetUs: SCRIPT_BUDGET_US,
        count,
        visibilityMs,
        token: randomBytes(TOKEN_BYTES).toString('base64url'),
        idleMs: IDLE_MS,
        announce,
        beforehand,
        repeatBytes: mostRepeatBytes(this.#context.queues.settings.maxPayloadBytes),
      },
      // what a lost reply held comes back when its visibility ends
      { idempotent: true },
    )
    const { hub } = this.#context.queues
    hub.messages('expired', this.#identity.name, [], reply.expired)
    hub.messages('rejected', this.#identity.name, [], reply.deadLettered)
    if (reply.problem !== '' && this.#seldom.may(reply.problem)) {
      const code = /: ([A-Z]+)/.exec(reply.problem)?.[1] ?? 'ERR'
      hub.emit('error', attributeTo(new CommandError(code, reply.problem), this.#identity.name))
    }
    // beside: what was handed out need not wait for it
    if (reply.repeats.length > 0) void this.#repeats.advance(reply.repeats, reply.now)
    return reply
  }
}
