import { isDeepStrictEqual } from 'node:util'
import { VISIBILITY_MS, type Item, type Received } from './messages.js'

/** The reply to a consumer that answered a lease; `unknown`: no reply. */
export type LeaseAnswer = 'ok' | 'lost' | 'unknown'

export interface Delivery {
  readonly lease: string
  /** A time of the Redis clock. */
  readonly polledAt: number
  /** When the answer arrived, by the clock of this machine. */
  readonly at: number
  readonly attempt: number
  how?: 'acknowledged' | 'failed'
  answer?: LeaseAnswer
  answeredAt?: number
}

interface Span {
  readonly from: number
  readonly to: number
}

/** The bench's record of a message. */
export interface Message {
  readonly item: Item
  /** It comes as a webhook. */
  readonly isWebhook: boolean
  /** `unknown`: no answer accepted the message, and it may be there. */
  state: 'unknown' | 'accepted'
  outcome?: string
  /** Requests that may have brought it. */
  attempts: number
  firstAskedAt: number
  acceptedAt: number
  dueAt?: number
  cancel?: Span & { to: number; done: boolean | null }
  readonly deliveries: Delivery[]
  /** The journal reports that the message was handled, if the answer to its lease was lost. */
  isHandled: boolean
  /** The message was pushed in this round. */
  round: number
}

/** When Redis lost some of its writes, by the clock of this machine. */
export interface Loss {
  /** All earlier writes are there again; `-Infinity`: none are. */
  readonly back: number
  readonly from: number
  /** How often the journal had found a loss by then. */
  readonly generation: number
  /** When the journal had put everything back; `Infinity`: it found nothing to put back, or is not done. */
  restoredAt: number
}

export const WRONGS = ['lost', 'early', 'late', 'cancelled', 'twice', 'changed', 'verify', 'other'] as const
export type Wrong = (typeof WRONGS)[number]

export interface Problem {
  readonly wrong: Wrong
  readonly text: string
}

/** Between what happens and what a process says of it, on a machine that is busy. */
const SLACK_MS = 1_000
/** An attempt that was carried out late, or by a client of Redis that repeated it, can bring a message that was handled meanwhile once more. */
const SWIFT_MS = 1_500
/** An instance that has not heard from Redis for a while takes its time a little earlier or later than it is. */
const APART_MS = 100
/** Where Redis is away, what was accepted is added by another instance after 30 s, which looks each 5 s. */
const ADOPTED_MS = 40_000

/** The deviations that a round allows. */
export interface Rules {
  /** Instances fail, and Redis does not: no message is late or comes twice. */
  readonly isRedisWell: boolean
  /** The additional delay of messages in comparison with a quiet machine. */
  readonly lagMs: () => number
  /** How long consumers may be behind after the fault. */
  readonly catchUpMs: number
}

/** Every message that was pushed over HTTP, and what became of it. */
export class Books {
  readonly messages = new Map<string, Message>()
  readonly losses: Loss[] = []
  readonly problems: Problem[] = []
  /** The longest delay of a message after it was due and accepted, in rounds without a failure of Redis. */
  worstLateMs = 0
  round = 0
  #generation = 0

  begin(item: Item, isWebhook = false): Message {
    const message: Message = {
      ...{ item, isWebhook, state: 'unknown', attempts: 0, firstAskedAt: Date.now(), acceptedAt: Infinity },
      ...{ deliveries: [], isHandled: false, round: this.round },
    }
    this.messages.set(item.id, message)
    return message
  }

  accepted(message: Message, { outcome, dueAt }: { outcome: string; dueAt?: number }): void {
    message.state = 'accepted'
    message.outcome = outcome
    message.acceptedAt = Date.now()
    if (dueAt !== undefined) message.dueAt = dueAt
  }

  received(received: Received): Delivery | undefined {
    const message = this.messages.get(received.id)
    if (message === undefined) {
      this.wrong('other', `${received.id} was delivered, and never pushed`)
      return undefined
    }
    const { lease, leasedUntil, attempt } = received
    const delivery: Delivery = { lease, attempt, polledAt: leasedUntil - VISIBILITY_MS, at: Date.now() }
    message.deliveries.push(delivery)
    const { body, priority, headers, bizKey } = message.item
    const got = { body: received.body, priority: received.priority, headers: received.headers, bizKey: received.bizKey }
    if (!isDeepStrictEqual(got, { body, priority, headers, bizKey }))
      this.wrong('changed', `${received.id} came as ${JSON.stringify(got)}, and not as ${JSON.stringify(message.item)}`)
    return delivery
  }

  /** A webhook has arrived; it says what it is for by its body alone. */
  arrived(message: Message, { body, attempt }: { readonly body: unknown; readonly attempt: number }): Delivery {
    const at = Date.now()
    const delivery: Delivery = { lease: '', attempt, polledAt: at, at }
    message.deliveries.push(delivery)
    if (!isDeepStrictEqual(body, message.item.body))
      this.wrong('changed', `${message.item.id} came as ${JSON.stringify(body)}, and not as it was pushed`)
    return delivery
  }

  /** Redis loses from now on what it wrote after `back`. */
  loses(back: number): void {
    this.losses.push({ back, from: Date.now(), generation: this.#generation, restoredAt: Infinity })
  }

  /** Notes how often the journal has found that Redis lost something, and whether it is putting that back. */
  restoring(generation: number, isUnderWay: boolean): void {
    this.#generation = generation
    if (isUnderWay) return
    for (const loss of this.losses)
      if (generation > loss.generation) loss.restoredAt = Math.min(loss.restoredAt, Date.now())
  }

  /** Messages that are due soon after all and were not handled yet. */
  open(): Message[] {
    return [...this.messages.values()].filter((message) => isExpected(message) && !isFar(message) && !isOver(message))
  }

  /** How many messages of this round no answer accepted. */
  refused(): number {
    return [...this.messages.values()].filter(({ round, state }) => round === this.round && state === 'unknown').length
  }

  /** Messages of this round of which the service must say how they ended. */
  ended(): Message[] {
    return [...this.messages.values()].filter(
      (message) => message.round === this.round && message.state === 'accepted' && isOver(message),
    )
  }

  /** The messages that must be there. */
  far(): Message[] {
    return [...this.messages.values()].filter((message) => isExpected(message) && isFar(message))
  }

  lost(message: Message, what: string): void {
    this.wrong('lost', `${message.item.id}: ${what}: ${story(message)}`)
  }

  wrong(wrong: Wrong, text: string): void {
    this.problems.push({ wrong, text })
  }

  /** Checks the messages of this round. */
  judge(rules: Rules): void {
    for (const message of this.messages.values()) {
      if (message.round !== this.round) continue
      if (message.isWebhook) {
        this.#judgeEarly(message)
        continue
      }
      this.#judgeTime(message, rules)
      this.#judgeCancel(message, rules.lagMs)
      if (rules.isRedisWell) this.#judgeTwice(message)
    }
  }

  #judgeTime(message: Message, { isRedisWell, lagMs, catchUpMs }: Rules): void {
    const { item, dueAt, deliveries, outcome } = message
    if (dueAt === undefined || message.attempts > 1) return
    this.#judgeEarly(message)
    const [first] = deliveries
    if (!isRedisWell || first === undefined || message.state !== 'accepted') return
    const from = Math.max(dueAt, message.acceptedAt)
    const lateMs = first.at - from
    const most = outcome === 'journalled' ? ADOPTED_MS : VISIBILITY_MS + SLACK_MS
    this.worstLateMs = Math.max(this.worstLateMs, outcome === 'journalled' ? 0 : lateMs)
    if (lateMs > most + lagMs() + catchUpMs)
      this.wrong(
        'late',
        `${item.id} came ${lateMs} ms late, at most ${most} + ${lagMs() + catchUpMs}: ${story(message)}`,
      )
  }

  #judgeEarly(message: Message): void {
    const { item, dueAt, deliveries, attempts } = message
    // one that was there already has the time of the attempt that brought it
    if (dueAt === undefined || attempts > 1) return
    for (const { polledAt } of deliveries)
      if (polledAt < dueAt - APART_MS) this.wrong('early', `${item.id} was due at ${dueAt}: ${story(message)}`)
  }

  #judgeCancel(message: Message, lagMs: () => number): void {
    const { cancel, item, deliveries } = message
    if (cancel?.done !== true || message.attempts > 1) return
    for (const { at, polledAt } of deliveries)
      if (at > cancel.to + SLACK_MS && !this.#mayComeBack(message, cancel, polledAt, lagMs))
        this.wrong('cancelled', `${item.id} came after its removal: ${story(message)}`)
  }

  /** The windows that docs/journal.md names. */
  #mayComeBack(message: Message, cancel: Span, polledAt: number, lagMs: () => number): boolean {
    if (message.outcome === 'journalled' && polledAt <= message.acceptedAt + ADOPTED_MS + lagMs()) return true
    return this.losses.some(({ back, from, restoredAt }) => {
      // a restore can have read the row before the removal; one that was answered before Redis was killed is in SQL before any restore
      if (cancel.to >= from && cancel.from <= restoredAt + SLACK_MS) return true
      // Redis came back with the message, and had it until the restore removed it
      return back > -Infinity && cancel.to >= back && polledAt >= from - SLACK_MS && polledAt <= restoredAt + SLACK_MS
    })
  }

  #judgeTwice(message: Message): void {
    const { item, deliveries, acceptedAt, firstAskedAt, attempts } = message
    if (attempts > 1 || acceptedAt - firstAskedAt > SWIFT_MS) return
    const { answeredAt = Infinity } = deliveries.find(isDone) ?? {}
    for (const { polledAt } of deliveries)
      if (polledAt > answeredAt)
        this.wrong('twice', `${item.id} came again after it was acknowledged: ${story(message)}`)
  }
}

const FAR_MS = 600_000

function isExpected({ state, cancel }: Message): boolean {
  return state === 'accepted' && (cancel === undefined || cancel.done === false)
}

export function isFar({ item }: Message): boolean {
  return item.delay > FAR_MS
}

function isOver({ deliveries, isHandled }: Message): boolean {
  return isHandled || deliveries.some(isDone)
}

function isDone({ how, answer }: Delivery): boolean {
  return how === 'acknowledged' && answer === 'ok'
}

function story({ item, state, outcome, attempts, acceptedAt, dueAt, cancel, deliveries }: Message): string {
  const took = deliveries.map(
    ({ at, polledAt, attempt, how, answer, answeredAt }) =>
      `received ${at} (Redis ${polledAt}), attempt ${attempt}, ${how ?? 'no answer'} ${answer} ${answeredAt}`,
  )
  const parts = [
    `${state} ${outcome ?? ''} at ${acceptedAt} after ${attempts} requests, delay ${item.delay}, due ${dueAt}`,
  ]
  if (cancel !== undefined) parts.push(`removal ${cancel.from} to ${cancel.to}: ${cancel.done}`)
  return [...parts, ...took].join('; ')
}
