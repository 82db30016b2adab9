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
import { nextTurn } from '../timing/pause.js'
import { ADD_ITEMS, addPages } from '../store/new-message.js'
import type { AddReply } from '../store/reliable-scripts.js'
import { TOO_LATE, type ReliableStore } from '../store/reliable-store.js'
import type { WaitedFor } from '../store/durable-scripts.js'
import type { How, PendingMessage } from './add-options.js'
import type { AddRoute, Added } from './adder.js'
import { drawnId } from './message-id.js'

const OUTCOMES = new Map<number, Added['outcome']>([
  [1, 'added'],
  [2, 'replaced'],
  [3, 'postponed'],
  [0, 'kept'],
  [-1, 'duplicate'],
])

const SCRIPTS_IN_FLIGHT = 4
/** How often a script that may have been carried out is sent. */
const MAX_ATTEMPTS = 5

/** The reply of the script, and what was reached where it was waited for. */
type Answer = Partial<WaitedFor<AddReply>> & Pick<WaitedFor<AddReply>, 'reply'>

/** A call whose messages wait to be sent with those of the others of this turn. */
interface JoinedCall {
  readonly pending: readonly PendingMessage[]
  readonly how: How
  readonly resolve: (results: (Added | RedelayedError)[]) => void
  readonly reject: (error: unknown) => void
}

/** Sends messages to a queue, each at most once however often it is sent: its id distinguishes a repeated attempt from another message. */
export class AddSender<T> implements AddRoute {
  readonly #handle: QueueHandle<T>
  readonly #store: ReliableStore

  /** The calls of this turn of the event loop. */
  #joined: JoinedCall[] = []
  /** Whether the server has the script, as far as is known. */
  #isScriptKnown = false

  constructor(handle: QueueHandle<T>, store: ReliableStore) {
    this.#handle = handle
    this.#store = store
  }

  drawId(): string {
    return drawnId(this.#handle.context.ids)
  }

  /** One result or error per message, in order. A shutdown lets what is waited for finish. */
  send(pending: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]> {
    const { durable, commands } = this.#handle.context
    // a shutdown of this turn lets them be sent
    if (how.wait === undefined && pending.length > 0 && pending.length < ADD_ITEMS)
      return commands.trackOperation(() => this.#join(pending, how))
    this.#sendJoined() // what was added before goes first
    if (how.wait === undefined) return this.#sendAll(pending, how)
    return durable.trackOperation(() => this.#sendAll(pending, how))
  }

  /** With those of the other calls of this turn of the event loop: for many callers that is one script. */
  #join(pending: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]> {
    return new Promise((resolve, reject) => {
      this.#joined.push({ pending, how, resolve, reject })
      if (this.#joined.length === 1) void nextTurn().then(() => this.#sendJoined())
    })
  }

  /** In the order of the calls, and all at once, so that no call of the next turn overtakes one. */
  #sendJoined(): void {
    const joined = this.#joined
    this.#joined = []
    for (const alike of runsOf(joined, ({ how }) => `${how.existing} ${how.batch}`))
      for (const calls of scriptsOf(alike)) void this.#sendTogether(calls)
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
      // an `@` is before a date
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

  /** In one script. What one of the messages may be to blame for must not fail the others: each is sent once more, alone. */
  async #sendPage(page: readonly PendingMessage[], how: How, again = false): Promise<(Added | RedelayedError)[]> {
    try {
      const answer = await this.#attempt(page, how, again)
      this.#isScriptKnown = true
      return page.map((message, at) => resultIn(answer, at, message, how))
    } catch (thrown) {
      const error = toRedelayed(thrown)
      // the script may have added some of them before it failed
      if (page.length > 1 && how.existing !== 'postpone' && mayConcernOne(error))
        return (await Promise.all(page.map((message) => this.#sendPage([message], how, true)))).flat()
      return page.map(() => copyOf(error))
    }
  }

  /** `again`: the messages may be there from an earlier script. */
  async #attempt(page: readonly PendingMessage[], { existing, wait, batch }: How, again: boolean): Promise<Answer> {
    const { commands, durable } = this.#handle.context
    let unknown: ConnectionError | undefined
    const startedAt = performance.now()
    const waitMs = wait?.timeoutMs ?? 0
    for (let attempt = 1; ; attempt++) {
      try {
        const how = { resent: again || unknown !== undefined, existing, batch }
        if (wait === undefined) return { reply: await this.#store.add(page, how) }
        return await this.#store.addDurably(durable.sender(this.#store.keys.messages, wait), page, how)
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

/** Calls that one script takes, each of them whole. */
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

/** What became of the message at that place; an error also when it is not as safe as asked. */
function resultIn(answer: Answer, at: number, message: PendingMessage, { wait }: How): Added | RedelayedError {
  const result = resultOf(message, answer.reply.outcomes[at] ?? NaN)
  if (wait === undefined || result instanceof RedelayedError) return result
  return shortfall(result, wait, answer as WaitedFor<AddReply>) ?? result
}

function resultOf({ id, isDrawn, payload }: PendingMessage, outcome: number): Added | RedelayedError {
  // no other caller has a drawn id: the message there is this one, which the layer below has sent twice
  if (isDrawn && outcome >= 0) return { id, outcome: 'added' }
  const known = OUTCOMES.get(outcome)
  if (known !== undefined) return { id, outcome: known }
  if (outcome === -2) return new QueueFullError()
  if (outcome === -4) return new OperationDisabledError('add')
  if (outcome === -6) return new ChangesBehindError()
  if (outcome === -7) return new BatchClosedError()
  if (outcome === -8) return new WrongTypeError()
  if (outcome === -5) return new PayloadTooLargeError(payload.length, 'what the queue allows')
  if (outcome !== TOO_LATE) return new InternalError('add-reply', 'an outcome is none')
  return new InvalidArgumentError('delay and timeToLive', 'a time of at most 2^53-1 ms', inWords('a later one'))
}
