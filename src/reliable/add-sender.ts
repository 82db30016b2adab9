import {
  BatchClosedError,
  ChangesBehindError,
  ConnectionError,
  DurabilityError,
  InternalError,
  InvalidArgumentError,
  OperationDisabledError,
  PayloadTooLargeError,
  QueueFullError,
  RedelayedError,
  WrongTypeError,
  copyOf,
  inWords,
  toError,
  toRedelayed,
} from '../errors.js'
import type { QueueHandle } from '../queues/queue-handle.js'
import { runsOf } from '../queues/runs.js'
import { warnOfTimestamp } from '../queues/warn-of-timestamp.js'
import { shortfall } from '../redis/durable/durability.js'
import { mayConcernOne } from '../redis/replies/server-errors.js'
import { TurnCollector } from '../timing/turn-collector.js'
import { ADD_ITEMS, ADD_OUTCOME, addPages } from '../store/new-message.js'
import type { AddReply } from '../store/reliable-scripts.js'
import { FIRST_ADD, type ReliableStore } from '../store/reliable-store.js'
import type { WaitedFor } from '../store/durable-scripts.js'
import type { How, PendingMessage } from './add-options.js'
import type { AddRoute, Added } from './adder.js'
import { drawnId } from './message-id.js'

const OUTCOMES = new Map<number, Added['outcome']>(
  (['added', 'replaced', 'postponed', 'kept', 'duplicate'] as const).map((name) => [ADD_OUTCOME[name], name]),
)

const SCRIPTS_IN_FLIGHT = 4
/** The most attempts of a script that may have been carried out. */
const MAX_ATTEMPTS = 5

/** Temporary refusals: the queue may have accepted the same message at an earlier attempt. */
const PASSING = [QueueFullError, OperationDisabledError, ChangesBehindError, BatchClosedError]

/** The reply of the script, and the durability reached if the call waited for it. */
type Answer = Partial<WaitedFor<AddReply>> & Pick<WaitedFor<AddReply>, 'reply'>

/** A call whose messages are sent at the end of this turn of the event loop. */
interface JoinedCall {
  readonly pending: readonly PendingMessage[]
  readonly how: How
  readonly resolve: (results: (Added | RedelayedError)[]) => void
  readonly reject: (error: unknown) => void
}

/** Sends messages to a queue. A message is added at most once, however often it is sent: its id identifies a repeated attempt. */
export class AddSender<T> implements AddRoute {
  readonly #handle: QueueHandle<T>
  readonly #store: ReliableStore

  /** The calls of this turn of the event loop. */
  readonly #joined = new TurnCollector<JoinedCall>((joined) => {
    for (const alike of runsOf(joined, ({ how }) => `${how.existing} ${how.batch}`))
      for (const calls of scriptsOf(alike)) void this.#sendTogether(calls)
  })
  /** Whether the server is known to have the script. */
  #isScriptKnown = false

  constructor(handle: QueueHandle<T>, store: ReliableStore) {
    this.#handle = handle
    this.#store = store
  }

  drawId(): string {
    return drawnId(this.#handle.context.ids)
  }

  /** Resolves with one result or error per message, in order. A shutdown lets the call finish. */
  send(pending: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]> {
    const { durable, commands } = this.#handle.context
    // tracked, so that a shutdown in this turn lets them be sent
    if (how.wait === undefined && pending.length > 0 && pending.length < ADD_ITEMS)
      return commands.trackOperation(() => this.#join(pending, how))
    this.#joined.flush() // earlier messages go first
    if (how.wait === undefined) return this.#sendAll(pending, how)
    return durable.trackOperation(() => this.#sendAll(pending, how))
  }

  /** Joins the messages to those of the other calls of this turn of the event loop: for many callers that is one script. */
  #join(pending: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]> {
    return new Promise((resolve, reject) => this.#joined.add({ pending, how, resolve, reject }))
  }

  async #sendTogether(calls: readonly JoinedCall[]): Promise<void> {
    const [first] = calls
    if (first === undefined) return
    try {
      const pending = calls.length === 1 ? first.pending : calls.flatMap((call) => call.pending)
      const results = await this.#sendAll(pending, first.how, Infinity)
      let at = 0
      for (const call of calls) call.resolve(results.slice(at, (at += call.pending.length)))
    } catch (error) {
      for (const { reject } of calls) reject(copyOf(toRedelayed(error)))
    }
  }

  async #sendAll(
    pending: readonly PendingMessage[],
    how: How,
    inFlight = SCRIPTS_IN_FLIGHT,
  ): Promise<(Added | RedelayedError)[]> {
    for (const { visible } of pending) {
      // dates begin with `@`
      if (!visible.startsWith('@')) warnOfTimestamp(this.#handle.context, this.#handle.name, Number(visible))
    }
    const pages = addPages(pending)
    const results: (Added | RedelayedError)[][] = pages.map(() => [])
    const left = pages.entries()
    const one = async ([at, page]: [number, PendingMessage[]]): Promise<void> => {
      results[at] = await this.#sendPage(page, how)
    }
    if (pages.length > inFlight && !this.#isScriptKnown) {
      const first = left.next()
      if (first.done !== true) await one(first.value) // alone, so that the script is known before several are under way
    }
    const worker = async (): Promise<void> => {
      for (const page of left) await one(page)
    }
    await Promise.all(Array.from({ length: Math.min(inFlight, pages.length) }, worker))
    const all = results.length === 1 ? (results[0] ?? []) : results.flat()
    this.#emit(pending, all)
    return all
  }

  /** Sends a page in one script. After an error that one message may have caused, each is sent once more, alone. */
  async #sendPage(
    page: readonly PendingMessage[],
    how: How,
    earlierSentAt?: number,
  ): Promise<(Added | RedelayedError)[]> {
    const startedAt = performance.now()
    try {
      const { answer, isRepeated } = await this.#attempt(page, how, startedAt, earlierSentAt)
      this.#isScriptKnown = true
      const results = page.map((message, at) => resultIn(answer, at, message, how))
      return isRepeated ? results.map(asAfterUnknown) : results
    } catch (thrown) {
      const error = earlierSentAt !== undefined ? asAfterUnknown(toRedelayed(thrown)) : toRedelayed(thrown)
      // the script may have added some of them before it failed
      if (page.length > 1 && how.existing !== 'postpone' && mayConcernOne(error))
        return (
          await Promise.all(page.map((message) => this.#sendPage([message], how, earlierSentAt ?? startedAt)))
        ).flat()
      return page.map(() => copyOf(error))
    }
  }

  /** `earlierSentAt`: when an earlier script was sent, which may have added the messages. */
  async #attempt(
    page: readonly PendingMessage[],
    { existing, wait, batch }: How,
    startedAt: number,
    earlierSentAt: number | undefined,
  ): Promise<{ readonly answer: Answer; readonly isRepeated: boolean }> {
    const { commands, durable } = this.#handle.context
    let unknown: ConnectionError | undefined
    const waitMs = wait?.timeoutMs ?? 0
    for (let attempt = 1; ; attempt++) {
      try {
        const isRepeated = earlierSentAt !== undefined || unknown !== undefined
        const sentAgoMs = isRepeated ? Math.ceil(performance.now() - (earlierSentAt ?? startedAt)) : FIRST_ADD
        const how = { sentAgoMs, existing, batch }
        if (wait === undefined) return { answer: { reply: await this.#store.add(page, how) }, isRepeated }
        const sender = durable.sender(this.#store.keys.messages, wait)
        return { answer: await this.#store.addDurably(sender, page, how), isRepeated }
      } catch (error) {
        if (!(error instanceof ConnectionError)) {
          if (unknown === undefined) throw error
          // this attempt was refused, but an earlier one may have been carried out
          throw new ConnectionError(toError(error).message, 'unknown', { cause: error })
        }
        if (error.outcome === 'unknown') unknown ??= error
        // once the outcome of an attempt is unknown, it stays unknown when a later attempt was never sent
        if (
          error.outcome === 'not-applied' ||
          existing === 'postpone' ||
          attempt >= MAX_ATTEMPTS ||
          !commands.isInTime(startedAt, waitMs)
        )
          throw unknown ?? error
        if (!(await commands.maySendAgain(this.#store.keys.messages, startedAt, waitMs).catch(() => false)))
          throw unknown ?? error
      }
    }
  }

  #emit(pending: readonly PendingMessage[], results: readonly (Added | RedelayedError)[]): void {
    const { name, context } = this.#handle
    const { hub } = context
    if (!hub.hasListener('added', name) && !hub.hasListener('full', name)) return
    const idsOf = (fits: (result: Added | RedelayedError) => boolean): string[] =>
      results.flatMap((result, at) => (fits(result) ? [pending[at]?.id ?? ''] : []))
    const isNew = (result: Added | RedelayedError): boolean => {
      const added = result instanceof DurabilityError ? result.added : result
      return added !== undefined && 'outcome' in added && (added.outcome === 'added' || added.outcome === 'replaced')
    }
    const isRefused = (result: Added | RedelayedError): boolean => result instanceof QueueFullError
    hub.messages('added', name, idsOf(isNew))
    hub.messages('full', name, idsOf(isRefused))
  }
}

/** Groups the calls so that each group fits into one script and no call is split. */
function scriptsOf(calls: readonly JoinedCall[]): JoinedCall[][] {
  const scripts: JoinedCall[][] = []
  let count = Infinity
  for (const call of calls) {
    count += call.pending.length
    if (count > ADD_ITEMS) {
      scripts.push([])
      count = call.pending.length
    }
    scripts.at(-1)?.push(call)
  }
  return scripts
}

/** The result after an earlier attempt that may have added the message: a refusal of this attempt leaves the outcome unknown. */
function asAfterUnknown<R extends Added | RedelayedError>(result: R): R | ConnectionError {
  if (!(result instanceof RedelayedError)) return result
  const isNeverSent = result instanceof ConnectionError && result.outcome === 'not-applied'
  if (!isNeverSent && !PASSING.some((type) => result instanceof type)) return result
  return new ConnectionError(result.message, 'unknown', { cause: result })
}

/** The result of the message at that position; an error also if its durability was not reached. */
function resultIn(answer: Answer, at: number, message: PendingMessage, { wait }: How): Added | RedelayedError {
  const result = resultOf(message, answer.reply.outcomes[at] ?? NaN)
  if (wait === undefined || result instanceof RedelayedError) return result
  return shortfall(result, wait, answer as WaitedFor<AddReply>) ?? result
}

function resultOf({ id, isDrawn, payload }: PendingMessage, outcome: number): Added | RedelayedError {
  // no other caller has a drawn id: an existing message is this one, which the connection sent twice
  if (isDrawn && outcome >= 0) return { id, outcome: 'added' }
  const known = OUTCOMES.get(outcome)
  if (known !== undefined) return { id, outcome: known }
  switch (outcome) {
    case ADD_OUTCOME.full:
      return new QueueFullError()
    case ADD_OUTCOME.disabled:
      return new OperationDisabledError('add')
    case ADD_OUTCOME.behind:
      return new ChangesBehindError()
    case ADD_OUTCOME.batchClosed:
      return new BatchClosedError()
    case ADD_OUTCOME.wrongType:
      return new WrongTypeError()
    case ADD_OUTCOME.tooLarge:
      return new PayloadTooLargeError(payload.length, 'what the queue allows')
    case ADD_OUTCOME.tooLate:
      return new InvalidArgumentError('delay and timeToLive', 'a time of at most 2^53-1 ms', inWords('a later one'))
    default:
      return new InternalError('add-reply', `unknown outcome ${outcome}`)
  }
}
