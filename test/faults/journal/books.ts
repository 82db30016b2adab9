import {
  COMMAND_TIMEOUT_MS,
  VISIBILITY_MS,
  type AddAnswer,
  type Claim,
  type Flow,
  type Item,
  type Answers,
  type Lying,
  type ReviseAnswer,
  type Said,
} from './protocol.js'
import { DRAIN_MS, SLACK_MS, Versions, type Known } from './versions.js'

export type Answered = Extract<Said, { said: 'answered' }>

/** A delivery, and what was said of it. */
interface Delivery extends Claim {
  /** `undefined` until the consumer has answered. */
  how?: 'done' | 'failed'
  /** Whether Redis took the answer; `null`: unknown. */
  effect?: boolean | null
  answeredAt?: number
}

/** The bench's record of a message. */
export interface Message {
  readonly item: Item
  readonly digest: string
  /** `unknown`: the producer got no answer, and the message may be there. */
  state: 'unknown' | 'accepted' | 'refused'
  /** An attempt to add the message got no answer with its outcome. */
  mayBeThere: boolean
  /** The message was added after such an attempt: if that one had added it too, and it was already handled, it comes once more. */
  isAgain: boolean
  /** When the message was handled that may come again once, because it was added again. */
  excusedAfter?: number
  /** Whether a producer is at it. */
  isPending: boolean
  outcome?: 'added' | 'kept' | 'journalled'
  /** When the accepted attempt began. */
  askedAt?: number
  acceptedAt?: number
  dueAt?: number
  refusal?: string
  /** `done` is `null` when its outcome is unknown. */
  cancel?: { readonly from: number; readonly to: number; readonly done: boolean | null }
  readonly deliveries: Delivery[]
  /** The message was found among the dead letters: if the answer to its last poll is lost, no consumer reports its failure. */
  isDead?: boolean
  /** The number of judged messages that are as they should be. */
  judged: number
  /** Another message had the id before, and was final. */
  readonly isReused: boolean
  /** The digests of its payloads. */
  readonly payloads: Versions<string>
  /** Its due times, once it was changed; `soon`: one of them is soon. */
  dues?: Versions<number>
  soon?: number
  /** Whether a call that changes the message is under way. */
  isBusy?: boolean
  /** The dead letter may have been moved back into the queue. */
  mayBeRedriven?: boolean
  /** The data in Redis of a parked message after this number of deliveries. */
  parked?: { readonly dueAt: number; readonly attempts: number; readonly deliveries: number }
}

/** When Redis lost some of its writes. The times are of the machine's clock. */
export interface Loss {
  readonly what: string
  /** All earlier writes are there again; `-Infinity`: none are. */
  readonly back: number
  readonly from: number
  to: number
  /** The time `to` by the Redis clock. */
  toAtRedis: number
  /** When a journal reported that Redis has lost data: from then on each handled message is recorded. */
  seenAt: number
  /** When all data was restored. */
  restoredAt: number
  /** `false`: SQL or a member failed at about the same time, so more changes were not drained. */
  readonly isAlone: boolean
}

/** A time in which rows may have been read by a restore, or in which Redis was down and lost nothing. */
export interface Span {
  readonly from: number
  to: number
}

export const WRONGS = ['lost', 'early', 'cancelled', 'twice', 'refused', 'changed', 'verify', 'other'] as const
export type Wrong = (typeof WRONGS)[number]

/** Between an adoption and its end, when its member says so. */
const ADOPTED_MS = 10_000
/** The longest time until a consumer gets a due message, on a busy machine. */
const TAKEN_MS = 5_000
/** The suffix of a dead letter whose id was taken; that of a second one can be taken, too. */
const SECOND = /(?:~\d+\.\d+)+$/
/** Messages with a longer delay may not have come again yet. */
const SOON_MS = 1_500
/** An id is used again only so long after its message was handled: Redis can lose the last second. */
const FINAL_MS = 4_000

/** Every message that the bench added, and what became of it. */
export class Books {
  readonly messages = new Map<string, Message>()
  readonly losses: Loss[] = []
  readonly restores: Span[] = []
  readonly downs: Span[] = []
  readonly adoptions: number[] = []
  readonly problems: { readonly wrong: Wrong; readonly text: string }[] = []
  /** When SQL and Redis were last known to agree. */
  agreedAt = -Infinity
  /** The numbers of changes that Redis took in this round. */
  revised = 0
  redriven = 0
  #revised = new Set<Message>()
  #finals: string[] = []
  #deliveredLetters = 0
  #redrivesUnderWay = 0
  /** The ids of dead letters whose own ids were taken. */
  readonly #seconds = new Set<string>()
  /** By the machine's clock, and by that of Redis. */
  #roundFrom = -Infinity
  #roundFromAtRedis = -Infinity
  readonly #deliveries = new Map<string, Delivery>()

  begin(item: Item, digest: string): Message {
    const message: Message = {
      item,
      digest,
      payloads: new Versions('updated', digest),
      isReused: this.messages.has(item.id),
      state: 'unknown',
      mayBeThere: false,
      isAgain: false,
      isPending: true,
      deliveries: [],
      judged: 0,
    }
    this.messages.set(item.id, message)
    return message
  }

  /** Returns whether to try again. */
  answered(message: Message, answer: AddAnswer, askedAt: number): boolean {
    if ('outcome' in answer) {
      message.state = 'accepted'
      message.askedAt = askedAt
      message.outcome = answer.outcome
      message.acceptedAt = Date.now()
      // what the first attempt made keeps its time
      if (answer.outcome !== 'kept') message.dueAt = answer.dueAt
      message.isAgain = answer.outcome !== 'kept' && message.mayBeThere
      return false
    }
    message.refusal = answer.error
    if (answer.error === NOT_SENT) return true
    const isSure = DEFINITE.has(answer.error)
    if (!isSure) message.mayBeThere = true
    if (isSure && !message.mayBeThere) message.state = 'refused'
    return message.state !== 'refused'
  }

  claimed(claim: Claim): void {
    const message = this.messages.get(claim.id)
    const origin = this.messages.get(claim.id.replace(SECOND, ''))
    // after a loss a dead letter can be there besides the message that was redriven, and get another id when that dies
    const isLetter = origin?.item.payload.kind === 'poison' && claim.digest === origin.digest
    if (message === undefined && isLetter && this.losses.length > 0) {
      this.#seconds.add(claim.id)
      this.#judgeClaim(claim, origin, true)
      return
    }
    if (message === undefined) {
      this.#wrong('other', `${claim.id} was delivered, and never added`)
      return
    }
    const delivery: Delivery = { ...claim }
    // a redriven message counts its attempts anew; the reply with the first one can be lost
    const isAnew = claim.attempt <= (message.deliveries.at(-1)?.attempt ?? Infinity)
    // one that died after the redrive was asked for can come before the answer says that it was moved
    const beginsAgain = claim.attempt < (message.deliveries.at(-1)?.attempt ?? 0)
    const hasJustDied = this.#redrivesUnderWay > 0 && message.item.payload.kind === 'poison' && beginsAgain
    const mayBeRedriven = message.mayBeRedriven === true || hasJustDied
    if (mayBeRedriven && isAnew) this.#deliveredLetters++
    message.deliveries.push(delivery)
    this.#deliveries.set(`${claim.id} ${claim.lease}`, delivery)
    if (!message.payloads.has(claim.digest))
      this.#wrong('changed', `${claim.id} has another payload: ${story(message)}`)
    this.#judgeClaim(claim, message, mayBeRedriven)
  }

  /** A dead letter comes back with the lowest priority. */
  #judgeClaim({ id, priority, headers }: Claim, { item }: Message, mayBeRedriven: boolean): void {
    if (priority !== item.priority && !(mayBeRedriven && priority === 0))
      this.#wrong('changed', `${id} has priority ${priority}`)
    if (JSON.stringify(headers) !== JSON.stringify(item.headers))
      this.#wrong('changed', `${id} has the headers ${JSON.stringify(headers)}`)
  }

  said({ id, lease, how, effect, at }: Answered): void {
    const delivery = this.#deliveries.get(`${id} ${lease}`)
    if (delivery !== undefined) Object.assign(delivery, { how, effect, answeredAt: at })
  }

  /** The next faults are judged by themselves. */
  newRound(nowAtRedis: number): void {
    this.#roundFrom = Date.now()
    this.#roundFromAtRedis = nowAtRedis
    this.revised = 0
    this.redriven = 0
    this.#deliveredLetters = 0
  }

  /** The id of an earlier message that SQL and Redis know as final; each only once. */
  finalId(random: () => number): string | undefined {
    const at = Math.floor(random() * this.#finals.length)
    return this.#finals.splice(at, 1)[0]
  }

  /** A message of tomorrow that no call changes now, and of which every change is known. */
  oneToRevise(random: () => number): Message | undefined {
    const all = [...this.messages.values()]
    for (let look = 0; look < 20; look++) {
      const message = all[Math.floor(random() * all.length)]
      if (message === undefined || message.isBusy === true || message.soon !== undefined) continue
      const { state, item, cancel, payloads, dues, isPending } = message
      if (state !== 'accepted' || isPending || cancel !== undefined || item.delay <= FAR_MS) continue
      if (item.payload.kind === 'usual' && payloads.isKnown && dues?.isKnown !== false) return message
    }
    return undefined
  }

  updates(message: Message, digest: string): (answer: ReviseAnswer) => void {
    return this.#revises(message, message.payloads.begin(digest))
  }

  reschedules(message: Message, dueAt: number, isSoon: boolean): (answer: ReviseAnswer) => void {
    message.dues ??= new Versions<number>('rescheduled', message.dueAt ?? NO_TIME)
    if (isSoon) message.soon = dueAt
    return this.#revises(message, message.dues.begin(dueAt), isSoon)
  }

  #revises(message: Message, answered: (answer: ReviseAnswer) => void, isSoon = false): (answer: ReviseAnswer) => void {
    message.isBusy = true
    this.#revised.add(message)
    return (answer) => {
      answered(answer)
      message.isBusy = false
      if (!('done' in answer)) return
      if (answer.done) this.revised++
      else if (isSoon) delete message.soon
    }
  }

  /** Some of the dead letters are moved back into the queue: any message that fails each time can be one. */
  redrives(): (answer: Answers['redrive']) => void {
    const mark = (): void => {
      for (const message of this.messages.values())
        if (message.item.payload.kind === 'poison' && message.deliveries.length > 0) message.mayBeRedriven = true
    }
    mark()
    this.#redrivesUnderWay++
    return (answer) => {
      this.#redrivesUnderWay--
      mark() // others have died meanwhile
      if ('moved' in answer) this.redriven += answer.moved
    }
  }

  /** The messages that were changed since SQL and Redis agreed. */
  revisedIds(): string[] {
    return [...this.#revised].map(({ item }) => item.id)
  }

  #known({ payloads, dues, item }: Message, flows?: ReadonlyMap<string, Flow>): Known {
    const touches = [...payloads.spans, ...(dues?.spans ?? [])]
    return { losses: this.losses, restores: this.restores, flow: flows?.get(item.id) ?? [], touches }
  }

  /** Whether a message of tomorrow has become one that is due soon; `null`: it can be either. */
  #isSoon(message: Message, flows?: ReadonlyMap<string, Flow>): boolean | null {
    const { dues, soon } = message
    if (dues === undefined || soon === undefined) return false
    const allowed = dues.allowed(this.#known(message, flows))
    return allowed.length === 1 ? allowed[0] === soon : null
  }

  /** Messages that are due soon after all and were not handled yet. With the changes in SQL, each expected message that was not handled is here, or in `far`. */
  open(flows?: ReadonlyMap<string, Flow>): Message[] {
    return [...this.messages.values()].filter((message) => {
      if (!isExpected(message) || isOver(message)) return false
      return !isFar(message) || this.#isSoon(message, flows) === true
    })
  }

  /** The open messages that may be dead letters without a report of a consumer. */
  perhapsDead(): Message[] {
    return this.open().filter(({ item, deliveries }) => item.payload.kind === 'poison' && deliveries.length > 0)
  }

  /** The messages that must be in Redis. */
  far(flows?: ReadonlyMap<string, Flow>): Message[] {
    return [...this.messages.values()].filter((message) => {
      if (!isExpected(message) || !isFar(message)) return false
      return message.soon === undefined || (!isOver(message) && this.#isSoon(message, flows) !== true)
    })
  }

  /** The messages that must be dead letters. */
  dead(): Message[] {
    return [...this.messages.values()].filter(
      (message) => isExpected(message) && message.item.payload.kind === 'poison' && isOver(message),
    )
  }

  /** Compares the messages with those that were found; returns the ones that differ. */
  compare(
    messages: readonly Message[],
    found: readonly (Lying | null)[],
    where: 'queue' | 'dead letters',
    flows?: ReadonlyMap<string, Flow>,
  ): Message[] {
    const missing: Message[] = []
    messages.forEach((message, at) => {
      const { id, priority, headers } = message.item
      const there = found[at]
      if (there === null || there === undefined) {
        missing.push(message)
        return
      }
      // a dead letter begins anew, with the lowest priority
      const isDead = where === 'dead letters'
      const known = this.#known(message, flows)
      const differs =
        !message.payloads.allowed(known).includes(there.digest) ||
        (!isDead && there.priority !== priority) ||
        JSON.stringify(there.headers) !== JSON.stringify(headers)
      if (differs)
        this.#wrong(
          'changed',
          `${id} lies in the ${where} as ${JSON.stringify(there)}, not as ${JSON.stringify(message.item)}: ${story(message)}; ${written(known.flow)}; ${JSON.stringify(this.losses)}`,
        )
      if (isDead) return
      message.payloads.agree(there.digest)
      if (message.item.payload.kind === 'park') this.#compareParked(message, there)
      else if (message.dues !== undefined && !this.#wentBackToClaim(message, there)) {
        if (!message.dues.allowed(known).some((dueAt) => dueAt === there.dueAt || dueAt === NO_TIME))
          this.#wrong('changed', `${id} is due at ${there.dueAt}: ${story(message)}`)
        message.dues.agree(there.dueAt)
        if (there.dueAt !== message.soon) delete message.soon
      } else if (message.dues === undefined && message.dueAt !== undefined && there.dueAt !== message.dueAt)
        this.#wrong('changed', `${id} is due at ${there.dueAt}, not at ${message.dueAt}`)
    })
    return missing
  }

  /** Whether Redis went back to the moment in which a consumer had the message: it is then due when that visibility ends. */
  #wentBackToClaim({ deliveries }: Message, { dueAt, attempts }: Lying): boolean {
    const isItsEnd = ({ polledAt }: Delivery): boolean => dueAt === polledAt + VISIBILITY_MS
    return this.losses.length > 0 && attempts > 0 && deliveries.some(isItsEnd)
  }

  /** Checks all messages; `flows`: the changes in SQL of the messages that came again. */
  judge(flows: ReadonlyMap<string, Flow>): void {
    for (const message of this.messages.values()) {
      const { item, deliveries } = message
      if (message.state === 'refused' && deliveries.length > 0)
        this.#wrong('refused', `${item.id} was refused with ${message.refusal}, and delivered: ${story(message)}`)
      for (const delivery of deliveries.slice(message.judged)) {
        const known = this.#known(message, flows)
        const dueAt = message.dues === undefined ? message.dueAt : Math.min(...message.dues.allowedAt(known, delivery))
        if (dueAt !== undefined && delivery.polledAt < dueAt && !message.isAgain)
          this.#wrong(
            'early',
            `${item.id} was due at ${dueAt}, and delivered at ${delivery.polledAt}: ${story(message)}`,
          )
        if (!message.payloads.allowedAt(known, delivery).includes(delivery.digest))
          this.#wrong('changed', `${item.id} was delivered with an earlier payload: ${story(message)}`)
      }
      this.#judgeCancel(message)
      this.#judgeTwice(message, flows.get(item.id) ?? [])
    }
  }

  /**
   * The messages that can be redriven dead letters, if consumers have said of fewer that they got them than were redriven in this round, and no delivery can be
   * missing. A reply with a message can be lost, so the changes of these messages decide.
   */
  unseenLetters(): string[] | undefined {
    const since = ({ to }: Span): boolean => to >= this.#roundFrom
    const isQuiet = !this.losses.some(since) && !this.downs.some(since)
    if (!isQuiet || this.#deliveredLetters >= this.redriven) return undefined
    const letters = [...this.messages.values()].filter(
      ({ item, deliveries }) => item.payload.kind === 'poison' && deliveries.length > 0,
    )
    return [...letters.map(({ item }) => item.id), ...this.#seconds]
  }

  /** Checks that each redriven dead letter was delivered; `flows`: the changes in SQL of what can be one. */
  judgeRedriven(flows: ReadonlyMap<string, Flow>): void {
    let delivered = 0
    const left: string[] = []
    for (const [id, flow] of flows) {
      const round = flow.filter(({ at }) => at >= this.#roundFromAtRedis)
      round.forEach(({ change }, at) => {
        if (change !== 'redriven') return
        if (round[at + 1]?.change === 'polled') delivered++
        else left.push(`${id}: ${written(round)}`)
      })
    }
    if (delivered < this.redriven)
      this.#wrong(
        'lost',
        `${this.redriven} dead letters were redriven, consumers got ${this.#deliveredLetters}, by SQL ${delivered}; ${left.join('; ')}`,
      )
  }

  /** The messages that came again after they had been handled. */
  repeated(): string[] {
    return [...this.messages.values()].filter((message) => repeats(message).length > 0).map(({ item }) => item.id)
  }

  /** Notes that SQL and Redis agree; only later deliveries are still judged. */
  agreed(): void {
    for (const message of this.messages.values()) message.judged = message.deliveries.length
    this.agreedAt = Date.now()
    this.#revised = new Set()
    for (const message of this.messages.values()) delete message.mayBeRedriven
    const before = this.agreedAt - FINAL_MS
    const isFinal = ({ item, state, cancel, deliveries, mayBeThere }: Message): boolean => {
      // one that comes back after a loss has come by now, if it is due
      if (item.delay > SOON_MS) return false
      if (item.payload.kind !== 'usual' || state !== 'accepted' || mayBeThere) return false
      if (cancel !== undefined) return cancel.done === true && deliveries.length === 0 && cancel.to < before
      return (
        deliveries.length === 1 && deliveries.every((each) => isDone(each) && (each.answeredAt ?? Infinity) < before)
      )
    }
    this.#finals = [...this.messages.values()].filter(isFinal).map(({ item }) => item.id)
  }

  lost(message: Message, what: string, why: string): void {
    this.#wrong('lost', `${message.item.id}: ${what}: ${story(message)}; ${why}`)
  }

  /** Notes a difference that `verify` reported. */
  differs(text: string): void {
    this.#wrong('verify', text)
  }

  other(text: string): void {
    this.#wrong('other', text)
  }

  #compareParked(message: Message, { dueAt, attempts }: Lying): void {
    const { deliveries, parked, item } = message
    const isNew = parked === undefined || parked.deliveries < deliveries.length
    if (isNew && attempts >= 1) message.parked = { dueAt, attempts, deliveries: deliveries.length }
    else if (dueAt !== parked?.dueAt || attempts !== parked.attempts)
      this.#wrong('changed', `${item.id} has ${attempts} attempts, and is due at ${dueAt}: ${JSON.stringify(parked)}`)
  }

  #judgeCancel(message: Message): void {
    const { cancel, item, deliveries, judged } = message
    if (cancel?.done !== true) return
    deliveries.forEach(({ at }, index) => {
      if (index < judged || at <= cancel.to || this.#mayComeBack(message, cancel, at)) return
      // what came back and died can be redriven at any time
      const mayHaveDied =
        item.payload.kind === 'poison' && deliveries.slice(0, index).some((each) => each.at > cancel.to)
      if (!mayHaveDied) this.#wrong('cancelled', `${item.id} was delivered at ${at}: ${story(message)}`)
    })
  }

  /** The windows that docs/journal.md names. */
  #mayComeBack(message: Message, cancel: Span, claimedAt: number): boolean {
    const meets = (span: Span): boolean => cancel.from <= span.to + SLACK_MS && cancel.to >= span.from - SLACK_MS
    if (this.restores.some(meets)) return true
    // one that was answered before Redis was killed is not among them
    const isWithin = ({ from, restoredAt }: Loss): boolean => cancel.to >= from && cancel.from <= restoredAt + SLACK_MS
    if (this.losses.some(isWithin)) return true
    if (message.outcome === 'journalled') {
      const isNear = (at: number): boolean => at >= cancel.from - SLACK_MS && at <= claimedAt + ADOPTED_MS
      if (this.adoptions.some(isNear)) return true
    }
    return this.losses.some(
      ({ back, from, restoredAt }) =>
        back > -Infinity && cancel.to >= back && claimedAt >= from - SLACK_MS && claimedAt <= restoredAt + SLACK_MS,
    )
  }

  #judgeTwice(message: Message, flow: Flow): void {
    // SQL also has the changes of earlier messages with the id
    const [first] = message.deliveries
    const drained = flow.filter(({ change, at }) => change === 'acknowledged' && at >= (first?.polledAt ?? 0)).length
    const all = message.deliveries.filter(isDone).length
    for (const repeat of repeats(message)) {
      const { doneAt, claimedAt } = repeat
      const { isAgain, excusedAfter } = message
      message.isAgain = false
      const isRepeated = excusedAfter === undefined && this.#isRepeated(message, doneAt, claimedAt)
      // an empty Redis records nothing at first, and the row of the earlier message says nothing of this one: a journal can add it once more, when it adopts what it lacks
      const isUnrecorded =
        message.isReused &&
        this.losses.some((loss) => isAddedInto(message, loss) && claimedAt <= loss.restoredAt + DRAIN_MS + ADOPTED_MS)
      // what was added again can fail, and come once more
      if (isAgain || isRepeated || isUnrecorded || excusedAfter === doneAt) {
        message.excusedAfter = doneAt
        continue
      }
      const loss = this.losses.find(
        (each) =>
          each.back <= doneAt + SLACK_MS &&
          doneAt <= recordedFrom(each) + SLACK_MS &&
          claimedAt >= each.from - SLACK_MS,
      )
      if (loss === undefined) {
        this.#wrong(
          'twice',
          `${message.item.id} came again, and Redis had lost nothing: ${written(flow)}; ${story(message)}; ${JSON.stringify(this.losses)}`,
        )
        continue
      }
      if (isRecorded(flow, loss, repeat)) {
        this.#wrong(
          'twice',
          `${message.item.id} came again, and Redis had not forgotten that it was handled: ${written(flow)}; ${story(message)}; ${JSON.stringify(loss)}`,
        )
        continue
      }
      const isEarlyEnough = claimedAt <= loss.restoredAt + SLACK_MS
      if (isEarlyEnough && (loss.back > -Infinity || doneAt > loss.from)) continue
      if (drained >= all) {
        this.#wrong(
          'twice',
          `${message.item.id} came again though SQL knew it as handled: ${written(flow)}; ${story(message)}`,
        )
      } else if (doneAt < this.agreedAt || (loss.isAlone && doneAt < loss.from - DRAIN_MS)) {
        this.#wrong('twice', `${message.item.id} was handled long before, and SQL did not know: ${story(message)}`)
      }
    }
  }

  /**
   * The client repeats an addition that had no answer within its `commandTimeout`, or whose connection broke, and finds that what it had added
   * was handled.
   */
  #isRepeated({ askedAt = Infinity, acceptedAt = -Infinity }: Message, doneAt: number, claimedAt: number): boolean {
    const isMeanwhile = askedAt <= doneAt && doneAt <= acceptedAt + SLACK_MS && claimedAt <= acceptedAt + TAKEN_MS
    const isLate = acceptedAt - askedAt >= COMMAND_TIMEOUT_MS
    return isMeanwhile && (isLate || this.downs.some(({ from, to }) => from <= acceptedAt && to >= askedAt))
  }

  #wrong(wrong: Wrong, text: string): void {
    this.problems.push({ wrong, text })
  }
}

/**
 * What is handled later, SQL gets to know: a restore reads it before it puts anything back. An empty Redis records nothing before a journal has
 * seen it; any other one does as soon as it is there.
 */
function recordedFrom({ back, to, seenAt, restoredAt }: Loss): number {
  return Math.min(back > -Infinity ? to : seenAt, restoredAt)
}

/** Whether the message was added to an empty Redis that no journal had seen. */
function isAddedInto(
  { askedAt = Infinity, acceptedAt = -Infinity }: Message,
  { back, from, seenAt, restoredAt }: Loss,
): boolean {
  return back === -Infinity && acceptedAt >= from && askedAt <= Math.min(seenAt, restoredAt) + SLACK_MS
}

/** The due time of a message whose producer has not learned it. */
const NO_TIME = -1

/** The answer of the bench if there was no process to ask. */
export const NOT_SENT = 'no process is there'

/** The errors of calls that certainly changed nothing. */
const DEFINITE = new Set(['ERR_JOURNAL_FULL', 'ERR_JOURNAL_TOO_LARGE', 'ERR_JOURNAL_ACCESS', 'ERR_INVALID_ARGUMENT'])
const FAR_MS = 600_000

function isExpected({ state, cancel }: Message): boolean {
  return state === 'accepted' && (cancel === undefined || cancel.done === false)
}

function isFar({ item, deliveries }: Message): boolean {
  if (item.payload.kind !== 'park') return item.delay > FAR_MS
  return deliveries.some(({ how, effect }) => how === 'failed' && effect !== false)
}

function isDone({ how, effect }: Delivery): boolean {
  return how === 'done' && effect === true
}

/** Whether the message need not come again. */
function isOver({ item, deliveries, isDead = false }: Message): boolean {
  if (isDead) return true
  if (item.payload.kind !== 'poison') return deliveries.some(({ how, effect }) => how === 'done' && effect !== false)
  return deliveries.some(
    ({ how, effect, attempt }) => how === 'failed' && effect !== false && attempt >= item.deliveryLimit,
  )
}

/** A delivery of what was handled. Times of the machine, and of Redis. */
interface Repeat {
  readonly doneAt: number
  readonly claimedAt: number
  readonly atRedis: { readonly done: number; readonly claimed: number }
}

/** Each delivery after one that was done with. */
function repeats({ deliveries, judged }: Message): Repeat[] {
  return deliveries.flatMap(({ at, polledAt }, index) => {
    if (index < judged) return []
    const done = deliveries.slice(0, index).filter((delivery) => isDone(delivery) && (delivery.answeredAt ?? 0) <= at)
    const last = done.at(-1)
    if (last?.answeredAt === undefined) return []
    return [{ doneAt: last.answeredAt, claimedAt: at, atRedis: { done: last.polledAt, claimed: polledAt } }]
  })
}

/** Whether the message was handled after Redis had returned. Uses only the Redis clock, so that waits of a process for its turn do not matter. */
function isRecorded(flow: Flow, { toAtRedis }: Loss, { atRedis: { done, claimed } }: Repeat): boolean {
  return flow.some(({ change, at }) => change === 'acknowledged' && at >= Math.max(toAtRedis, done) && at <= claimed)
}

function written(flow: Flow): string {
  return flow.map(({ change, at }) => `${change} ${at}`).join(', ')
}

function story({
  item,
  state,
  outcome,
  refusal,
  acceptedAt,
  dueAt,
  cancel,
  deliveries,
  payloads,
  dues,
}: Message): string {
  const took = deliveries.map(
    ({ at, polledAt, attempt, how, effect, answeredAt }) =>
      `claimed ${at} (Redis ${polledAt}), attempt ${attempt}, ${how ?? 'no answer'} ${effect} ${answeredAt}`,
  )
  const parts = [`${state} ${outcome ?? ''} at ${acceptedAt}, due ${dueAt}, ${item.payload.kind}`]
  if (refusal !== undefined) parts.push(refusal)
  if (cancel !== undefined) parts.push(`cancel ${cancel.from} to ${cancel.to}: ${cancel.done}`)
  parts.push(`payloads ${String(payloads)}`)
  if (dues !== undefined) parts.push(`due ${String(dues)}`)
  return [...parts, ...took].join('; ')
}
