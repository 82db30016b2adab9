import { cleanError, isError, markClean } from './clean-error.js'
import { clean, quoted } from './text.js'

/** The queue and the cause of a `RedelayedError`. */
export interface ErrorDetails {
  /** The queue as the caller named it, where the error concerns one. */
  readonly queue?: string | undefined
  /** The error underneath: the server's reply, the socket's error, the codec's. The new error gets a clean copy of it. */
  readonly cause?: unknown
}

/**
 * The base of every error this package throws or emits. `code` is stable and meant for programs; the message is meant
 * for people and may change: one line of at most 2,000 characters without control characters, credentials or payload. A cause
 * that is not from this package is a copy with name, message, code and stack, cleaned in the same way.
 */
export class RedelayedError extends Error {
  override readonly name: string = this.constructor.name
  readonly code: string
  /** The queue as the caller named it, where the error concerns one. */
  queue: string | undefined
  /**
   * The method that the application called, such as `'offer'`, or `'batch.close'` of a batch. Undefined where no call waits for the work
   * that failed.
   */
  operation: string | undefined

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(clean(message), details.cause === undefined ? undefined : { cause: cleanCause(details.cause) })
    markClean(this)
    this.code = code
    if (details.queue !== undefined) attributeTo(this, details.queue)
  }
}

function cleanCause(cause: unknown): Error {
  return cleanError(toError(cause))
}

/** Converts anything thrown to an error of this package. */
export function toRedelayed(thrown: unknown): RedelayedError {
  if (thrown instanceof RedelayedError) return thrown
  return new RedelayedError('ERR_INTERNAL', toError(thrown).message, { cause: thrown })
}

/** The error of background work, for an `error` event: what failed, and the code of its cause. */
export function failureOf(
  what: string,
  thrown: unknown,
  { queue, code = 'ERR_INTERNAL' }: { queue?: string | undefined; code?: string } = {},
): RedelayedError {
  const cause = toError(thrown)
  const known = cause instanceof RedelayedError ? cause.code : code
  return new RedelayedError(known, `${what}: ${cause.message}`, { queue, cause })
}

/** Adds the queue's name to an error, unless it has one. */
export function attributeTo<E extends RedelayedError>(error: E, queue: string): E {
  if (error.queue !== undefined) return error
  error.queue = queue
  error.message = `queue ${quoted(queue)}: ${error.message}`
  return error
}

/** The most lines of a stack to which callers are added. */
const MAX_STACK = 30

/**
 * Adds the calling functions to the stack. An error that began in a timer or at a socket has no frame of them; V8 knows them in
 * the async function that caught the error.
 */
export function withCallers<E>(error: E): E {
  if (!(error instanceof RedelayedError)) return error
  const stack = error.stack?.split('\n') ?? []
  const callers = (new Error().stack?.split('\n') ?? []).filter((frame) => frame.startsWith('    at async '))
  const further = callers.filter((frame) => !stack.includes(frame))
  if (further.length > 0 && stack.length < MAX_STACK) error.stack = [...stack, ...further].join('\n')
  return error
}

/** A copy of an error for one more caller, because each caller adds its own queue. */
export function copyOf<E extends RedelayedError>(error: E): E {
  const properties = Object.getOwnPropertyDescriptors<Error>(error)
  const stack = { value: error.stack, writable: true, configurable: true, enumerable: false }
  const copy = Object.create(Object.getPrototypeOf(error) as object, { ...properties, stack }) as E
  markClean(copy)
  return copy
}

/** The error for one of several callers: a copy, unless another library made it. */
export function ownCopy<E extends Error | undefined>(error: E): E | RedelayedError {
  return error instanceof RedelayedError ? copyOf(error) : error
}

/** An argument or option is not what the call takes. The message says what was expected, and describes what was received. */
export class InvalidArgumentError extends RedelayedError {
  constructor(what: string, expected: string, received: unknown, details: ErrorDetails = {}) {
    super('ERR_INVALID_ARGUMENT', `${what}: expected ${expected}, got ${describe(received)}`, details)
  }
}

/** A ticket that was not issued by this queue, or was damaged on the way. */
export class InvalidTicketError extends RedelayedError {
  constructor(message: string, details: ErrorDetails = {}) {
    super('ERR_INVALID_TICKET', message, details)
  }
}

const MAX_PATH = 500

/** The codec cannot represent a value. `path` leads to the culprit, e.g. `$.items[3].price`. */
export class EncodeError extends RedelayedError {
  readonly path: string

  constructor(codec: string, path: string, message: string, details: ErrorDetails = {}) {
    super('ERR_ENCODE', `codec ${codec} cannot encode the value at ${clean(path, MAX_PATH)}: ${message}`, details)
    this.path = clean(path, MAX_PATH)
  }
}

/** Bytes that the codec cannot read. */
export class DecodeError extends RedelayedError {
  constructor(codec: string, message: string, details: ErrorDetails = {}) {
    super('ERR_DECODE', `codec ${codec} cannot decode the bytes: ${message}`, details)
  }
}

/** The encoded value is larger than `maxPayloadBytes`. */
export class PayloadTooLargeError extends RedelayedError {
  constructor(bytes: number, limit: number | 'what the queue allows', details: ErrorDetails = {}) {
    super('ERR_PAYLOAD_TOO_LARGE', `the encoded value has ${bytes} bytes, the limit is ${limit}`, details)
  }
}

/**
 * The server could not be reached, or went away. `outcome` says whether the command may have been carried out:
 * `'not-applied'` when it never left this process, `'unknown'` when the connection broke after it was written.
 */
export class ConnectionError extends RedelayedError {
  readonly outcome: 'not-applied' | 'unknown'

  constructor(message: string, outcome: 'not-applied' | 'unknown', details: ErrorDetails = {}) {
    super('ERR_CONNECTION', message, details)
    this.outcome = outcome
  }
}

/** Wrong user or password, or a command or key that this user may not touch (`NOAUTH`, `WRONGPASS`, `NOPERM`). */
export class AuthError extends RedelayedError {
  constructor(message: string, details: ErrorDetails = {}) {
    super('ERR_AUTH', message, details)
  }
}

/** A key of the queue holds another type of value (`WRONGTYPE`). */
export class WrongTypeError extends RedelayedError {
  constructor(details: ErrorDetails = {}) {
    super('ERR_WRONG_TYPE', 'a key of this queue holds another type of value; nothing was changed', details)
  }
}

/** The server is a read-only replica (`READONLY`). */
export class ReadOnlyError extends RedelayedError {
  constructor(details: ErrorDetails = {}) {
    super('ERR_READ_ONLY', 'the server is a read-only replica; connect to the master', details)
  }
}

/** In a cluster, the keys of this queue are in different slots (`CROSSSLOT`). */
export class CrossSlotError extends RedelayedError {
  constructor(
    details: ErrorDetails = {},
    message = 'its keys lie in different cluster slots; a name with "{" needs a non-empty {tag}',
  ) {
    super('ERR_CROSS_SLOT', message, details)
  }
}

const MAX_CODE = 40

/** The server answered with an error that has no class of its own; `redisCode` is its first word, e.g. `OOM`. */
export class CommandError extends RedelayedError {
  readonly redisCode: string

  constructor(redisCode: string, message: string, details: ErrorDetails = {}) {
    super('ERR_COMMAND', `the server refused the command: ${message}`, details)
    this.redisCode = clean(redisCode, MAX_CODE)
  }
}

/** The server is too old for the call. */
export class UnsupportedServerError extends RedelayedError {
  constructor(message: string, details: ErrorDetails = {}) {
    super('ERR_UNSUPPORTED_SERVER', message, details)
  }
}

/** The client was shut down, or this queue object destroyed. */
export class ShutdownError extends RedelayedError {
  constructor(what: string, details: ErrorDetails = {}) {
    super('ERR_SHUTDOWN', `${what}; no further calls are possible`, details)
  }
}

/** Whether a shutdown ended the call, also one that had been sent and may have been carried out. */
export function isOfShutdown(error: Error): boolean {
  return error instanceof ShutdownError || error.cause instanceof ShutdownError
}

/** `remove()` and `element()` on an empty queue, as `NoSuchElementException` in Java. */
export class NoSuchElementError extends RedelayedError {
  constructor(details: ErrorDetails = {}) {
    super('ERR_NO_SUCH_ELEMENT', 'the queue is empty', details)
  }
}

/** The operation exists in Java's interface, but makes no sense on this object. */
export class UnsupportedOperationError extends RedelayedError {
  constructor(message: string, details: ErrorDetails = {}) {
    super('ERR_UNSUPPORTED_OPERATION', message, details)
  }
}

/** One item of `offerAll` that was not accepted, or not with the requested `durability`. */
export interface OfferFailure {
  /** Its position in the array given to `offerAll`. */
  readonly index: number
  readonly error: RedelayedError
}

/**
 * Some items of an `offerAll` were not accepted. The others were: `tickets[i]` is `null` exactly for the failed ones. An item
 * that was accepted without the requested durability has failed too; its error is a `DurabilityError` with its ticket.
 */
export class OfferAllError extends RedelayedError {
  readonly tickets: readonly (string | null)[]
  readonly failures: readonly OfferFailure[]

  constructor(tickets: readonly (string | null)[], failures: readonly OfferFailure[], details: ErrorDetails = {}) {
    const first = failures[0]
    const example = first === undefined ? '' : `; item ${first.index}: ${first.error.message}`
    const accepted = failures.length > 0 && failures.every(({ error }) => error instanceof DurabilityError)
    const what = accepted ? 'are not as durable as asked' : 'were not accepted'
    super('ERR_OFFER_ALL', `${failures.length} of ${tickets.length} items ${what}${example}`, details)
    this.tickets = tickets
    this.failures = failures
  }
}

/** A reliable queue holds as many messages as its configuration allows. */
export class QueueFullError extends RedelayedError {
  constructor(details: ErrorDetails = {}) {
    super('ERR_QUEUE_FULL', 'the queue holds as many messages as its maxSize allows', details)
  }
}

/** A reliable queue adds no more messages, because its change stream is full: its groups have left too many changes unread. */
export class ChangesBehindError extends RedelayedError {
  constructor(details: ErrorDetails = {}) {
    super('ERR_CHANGES_BEHIND', 'the change stream is full: its groups have left too many changes unread', details)
  }
}

/**
 * The change stream no longer has the entry of a position. `reason`: `'epoch'` when changes may have been lost since,
 * `'rewound'` when Redis has gone back to an earlier state, `'trimmed'` when the entry was removed.
 */
export class ChangesLostError extends RedelayedError {
  readonly reason: 'epoch' | 'rewound' | 'trimmed'

  constructor(reason: 'epoch' | 'rewound' | 'trimmed', details: ErrorDetails = {}) {
    super('ERR_CHANGES_LOST', `the change stream of the queue does not have that position: ${LOST[reason]}`, details)
    this.reason = reason
  }
}

const LOST = {
  epoch: 'it is of another epoch',
  rewound: 'it is after the last entry, so Redis has gone back to an earlier state',
  trimmed: 'its entry was removed',
} as const

/**
 * A message or a batch that a call waited for was not completed. `reason`: `'timeout'`: the time of the call was over first; `'dead'`: it
 * is a dead letter, and `failure` says why; `'gone'`: it was removed, has expired, was moved, or was completed so long ago that the queue
 * no longer keeps it.
 */
export class NotCompletedError extends RedelayedError {
  readonly reason: 'timeout' | 'dead' | 'gone'
  /** Why the last attempt failed; empty where that is not known. */
  readonly failure: string

  constructor(
    reason: 'timeout' | 'dead' | 'gone',
    failure = '',
    details: ErrorDetails = {},
    what: 'message' | 'batch' = 'message',
  ) {
    const why = failure === '' ? '' : `: ${failure}`
    super('ERR_NOT_COMPLETED', `the ${what} was not completed: ${NOT_COMPLETED[reason]}${why}`, details)
    this.reason = reason
    this.failure = failure
  }
}

const NOT_COMPLETED = {
  timeout: 'the time of the call is over',
  dead: 'it is a dead letter',
  gone: 'there is nothing of it in the queue',
} as const

/** The messages were not added, because their batch is closed. */
export class BatchClosedError extends RedelayedError {
  constructor(details: ErrorDetails = {}) {
    super('ERR_BATCH_CLOSED', 'the batch is closed: nothing is added to it any more', details)
  }
}

/** The operation of a reliable queue is disabled for all processes. */
export class OperationDisabledError extends RedelayedError {
  constructor(operation: string, details: ErrorDetails = {}) {
    super('ERR_OPERATION_DISABLED', `the operation ${quoted(operation)} of the queue is disabled`, details)
  }
}

/** One item of `addMany` that was not added, or not with the requested `durability`. */
export interface AddFailure {
  readonly index: number
  readonly error: RedelayedError
}

/** Some items of `addMany` were not added, or, with a `DurabilityError`, not as durably as requested; the others were. */
export class AddManyError extends RedelayedError {
  /** The outcomes of the items in order; `null` for the items of `failures`. */
  readonly results: readonly ({ readonly id: string; readonly outcome: string } | null)[]
  readonly failures: readonly AddFailure[]

  constructor(results: AddManyError['results'], failures: readonly AddFailure[], details: ErrorDetails = {}) {
    const [first] = failures
    const example = first === undefined ? '' : `; item ${first.index}: ${first.error.message}`
    const accepted = failures.length > 0 && failures.every(({ error }) => error instanceof DurabilityError)
    const what = accepted ? 'are not as durable as asked' : 'were not added'
    super('ERR_ADD_MANY', `${failures.length} of ${results.length} items ${what}${example}`, details)
    this.results = results
    this.failures = failures
  }
}

/** Where an offer or an `add` is stored, besides the memory of the server that accepted it. */
export interface Acknowledgement {
  /** How many replicas have received it; with `aof`, how many have synced it to their append-only file. */
  readonly replicas: number
  /** Whether the server itself has synced it to its append-only file. */
  readonly aof: boolean
}

/**
 * An offer, or an `add` of a reliable queue, was accepted, but had not reached its `durability` when the time was over. The
 * message is there and will be delivered unless Redis loses it; a caller that does not want that cancels it by its `ticket`.
 */
export class DurabilityError extends RedelayedError {
  /** The ticket of an offer; in a reliable queue the id of the message. */
  readonly ticket: string
  /** The value that `add` of a reliable queue would have resolved with. */
  readonly added: { readonly id: string; readonly outcome: string } | undefined
  readonly asked: Acknowledgement
  readonly acknowledged: Acknowledgement

  /** `accepted`: the ticket, or what became of the message. */
  constructor(
    accepted: string | NonNullable<DurabilityError['added']>,
    asked: Acknowledgement,
    acknowledged: Acknowledgement,
    timeoutMs: number,
    details: ErrorDetails = {},
  ) {
    const how = `within ${timeoutMs} ms it was only ${reachedOf(asked, acknowledged)}`
    const why = details.cause instanceof Error ? `the server did not wait: ${details.cause.message}` : how
    super('ERR_DURABILITY', `the message was accepted, but ${why}`, details)
    this.ticket = typeof accepted === 'string' ? accepted : accepted.id
    this.added = typeof accepted === 'string' ? undefined : accepted
    this.asked = asked
    this.acknowledged = acknowledged
  }
}

function reachedOf(asked: Acknowledgement, acknowledged: Acknowledgement): string {
  const replicas = `${acknowledged.replicas} of ${asked.replicas} replicas`
  if (!asked.aof) return `received by ${replicas}`
  const local = acknowledged.aof ? 'synced by the server' : 'in the memory of the server, not synced'
  return asked.replicas === 0 ? local : `${local}, and synced by ${replicas}`
}

/** A fault of this package. `id` is a fixed text to search the source for. */
export class InternalError extends RedelayedError {
  constructor(id: string, message: string, details: ErrorDetails = {}) {
    super('ERR_INTERNAL', `[${id}] ${message}; please report this`, details)
  }
}

/** Words of this package in the place of a value whose description would say nothing: `got both`. */
class Words {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Words for the received value of an `InvalidArgumentError`; never a text from outside. */
export function inWords(text: string): unknown {
  return new Words(text)
}

/** A text from outside that may be shown: names of options, queues and classes. Any other value is described. */
export function inQuotes(value: unknown): unknown {
  return typeof value === 'string' ? new Words(quoted(value)) : value
}

const MAX_SHOWN = 2n ** 128n

/** A short description of any value for error messages; never the content of strings or objects, which may be secret. */
export function describe(value: unknown): string {
  if (value === null) return 'null'
  switch (typeof value) {
    case 'string':
      return value === '' ? 'an empty string' : `a string of ${value.length} character${value.length === 1 ? '' : 's'}`
    case 'number':
    case 'boolean':
    case 'undefined':
      return String(value)
    case 'bigint':
      return value < MAX_SHOWN && value > -MAX_SHOWN ? `${value}n` : 'a bigint of more than 128 bits'
    case 'function':
      return 'a function'
    case 'symbol':
      return 'a symbol'
    default:
      if (value instanceof Words) return value.text
      if (Array.isArray(value)) return `an array of ${value.length}`
      if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid Date' : value.toISOString()
      return `an object (${classOf(value) ?? 'no prototype'})`
  }
}

function classOf(value: object): string | undefined {
  try {
    const { constructor } = (Object.getPrototypeOf(value) ?? {}) as { constructor?: { name?: unknown } }
    const name = Object.getPrototypeOf(value) === null ? undefined : constructor?.name
    return typeof name === 'string' ? clean(name, MAX_CLASS) : undefined
  } catch {
    return 'unknown class' // a proxy or a getter that throws
  }
}

const MAX_CLASS = 100

/** Any thrown thing as an `Error`, so that a listener always gets one. */
export function toError(thrown: unknown): Error {
  if (isError(thrown)) return thrown
  return new Error(typeof thrown === 'string' ? clean(thrown) : describe(thrown))
}
