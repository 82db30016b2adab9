import {
  BatchClosedError,
  ChangesBehindError,
  ConnectionError,
  DurabilityError,
  InvalidArgumentError,
  OperationDisabledError,
  PayloadTooLargeError,
  QueueFullError,
  RedelayedError,
  WrongTypeError,
  inWords,
  toError,
  toRedelayed,
} from '../errors.js'
import type { QueueHandle } from '../queues/queue-handle.js'
import { warnOfTimestamp } from '../queues/warn-of-timestamp.js'
import { shortfall } from '../redis/durable/durability.js'
import { nextTurn } from '../timing/pause.js'
import { addPages } from '../store/new-message.js'
import type { AddReply } from '../store/reliable-scripts.js'
import type { ReliableStore } from '../store/reliable-store.js'
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
/** A call with so many messages needs no company. */
const MOST_JOINED = 250
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

  /** The calls of this turn of the event loop, by how their messages are added. */
  readonly #joined = new Map<string, JoinedCall[]>()

  constructor(handle: QueueHandle<T>, store: ReliableStore) {
    this.#handle = handle
    this.#store = store
  }

  drawId(): string {
    return drawnId(this.#handle.context.ids)
  }

  /** One result or error per message, in order. A shutdown lets what is waited for finish. */
  send(pending: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]> {
    if (how.wait !== undefined) return this.#handle.context.durable.trackOperation(() => this.#sendAll(pending, how))
    if (pending.length === 0 || pending.length >= MOST_JOINED) return this.#sendAll(pending, how)
    // a shutdown of this turn lets them be sent
    return this.#handle.context.commands.trackOperation(() => this.#join(pending, how))
  }

  /** With those of the other calls of this turn of the event loop: for many callers that is one script. */
  #join(pending: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]> {
    return new Promise((resolve, reject) => {
      const key = `${how.existing} ${how.batch}`
      const calls = this.#joined.get(key) ?? []
      if (this.#joined.size === 0) void nextTurn().then(() => this.#sendJoined())
      this.#joined.set(key, calls)
      calls.push({ pending, how, resolve, reject })
    })
  }

  #sendJoined(): void {
    const joined = [...this.#joined.values()]
    this.#joined.clear()
    for (const calls of joined) void this.#sendTogether(calls)
  }

  async #sendTogether(calls: readonly JoinedCall[]): Promise<void> {
    const [first] = calls
    if (first === undefined) return
    try {
      const results = await this.#sendAll(
        calls.length === 1 ? first.pending : calls.flatMap(({ pending }) => pending),
        first.how,
      )
      let at = 0
      for (const { pending, resolve } of calls) resolve(results.slice(at, (at += pending.length)))
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
  }

  /** Of each script all of them or none. */
  async #sendAll(pending: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]> {
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
    const first = left.next()
    if (first.done !== true) await one(first.value) // alone, so that the script is known before several are under way
    const worker = async (): Promise<void> => {
      for (const page of left) await one(page)
    }
    if (pages.length > 1) await Promise.all(Array.from({ length: SCRIPTS_IN_FLIGHT }, worker))
    const all = results.length === 1 ? (results[0] ?? []) : results.flat()
    this.#emit(pending, all)
    return all
  }

  async #sendPage(page: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]> {
    try {
      const answer = await this.#attempt(page, how)
      return page.map((message, at) => resultIn(answer, at, message, how))
    } catch (thrown) {
      const error = toRedelayed(thrown)
      return page.map(() => error)
    }
  }

  async #attempt(page: readonly PendingMessage[], { existing, wait, batch }: How): Promise<Answer> {
    const { commands, durable } = this.#handle.context
    let unknown: ConnectionError | undefined
    const startedAt = performance.now()
    const waitMs = wait?.timeoutMs ?? 0
    for (let attempt = 1; ; attempt++) {
      try {
        const how = { resent: unknown !== undefined, existing, batch }
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
  return new InvalidArgumentError('delay and timeToLive', 'a time of at most 2^53-1 ms', inWords('a later one'))
}
