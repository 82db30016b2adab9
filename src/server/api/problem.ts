import {
  AuthError,
  ChangesBehindError,
  CommandError,
  ConnectionError,
  InvalidArgumentError,
  OperationDisabledError,
  PayloadTooLargeError,
  QueueFullError,
  ReadOnlyError,
  RedelayedError,
  ShutdownError,
  UnsupportedServerError,
} from 'redelayed'
import { CommandFailed } from '../console/library-command.js'
import { JournalError } from '../errors.js'
import { TopicError, type TopicErrorCode } from '../topics/errors.js'
import { redisFailureOf } from './redis-failure.js'

/** The problems of requests: a status and a title for each code. The codes never change. */
export const PROBLEMS = {
  'invalid-request': [400, 'The request is not valid for the operation'],
  'malformed-json': [400, 'The body is not JSON'],
  'invalid-utf8': [400, 'The body is not UTF-8'],
  'json-too-deep': [400, 'The body nests too deep'],
  'json-too-many-values': [400, 'The body has too many values'],
  'forbidden-key': [400, 'The body has a key that is not allowed'],
  'repeated-key': [400, 'The body has a key twice'],
  'unsafe-number': [400, 'The body has a number that would not arrive as it was sent'],
  'invalid-topic': [400, 'Not a name that a topic can have'],
  'invalid-message': [400, 'The message is not valid'],
  'invalid-lease': [400, 'Not a lease'],
  'invalid-cursor': [400, 'Not a cursor of this listing'],
  unauthorized: [401, 'The key is missing or unknown'],
  forbidden: [403, 'The key may not do this'],
  'read-only': [403, 'The service only reads'],
  'not-found': [404, 'There is nothing at this path'],
  'topic-not-found': [404, 'There is no such topic'],
  'message-not-found': [404, 'There is no such message'],
  'restore-not-found': [404, 'There is no such restore'],
  'endpoint-not-found': [404, 'There is no such endpoint'],
  'method-not-allowed': [405, 'The path does not allow this method'],
  'request-timeout': [408, 'The request took too long to arrive'],
  'topic-not-empty': [409, 'The topic has messages'],
  'topic-shards': [409, 'The number of shards cannot be changed'],
  'topic-paused': [409, 'The topic is paused'],
  'topic-busy': [409, 'The topic is busy'],
  'idempotency-key-removed': [409, 'Another program removes the idempotency key'],
  'message-in-flight': [409, 'A consumer has the message'],
  'message-has-bytes': [409, 'The message has bytes and not JSON'],
  'endpoint-in-use': [409, 'Topics use the endpoint'],
  'no-endpoint': [409, 'The topic has no endpoint'],
  'no-journal': [409, 'The service has no journal'],
  'no-events': [409, 'The topic keeps no events'],
  'not-with-journal': [409, 'Not possible with a journal'],
  'message-too-large': [413, 'The message is too large'],
  'body-too-large': [413, 'The body is too large'],
  'unsupported-media-type': [415, 'The operation does not take bodies of this type'],
  'expectation-failed': [417, 'The service does not support this expectation'],
  'idempotency-mismatch': [422, 'The idempotency key was used with another message'],
  'rate-limited': [429, 'Too many requests of this key'],
  'topic-full': [429, 'The topic is full'],
  'too-many-keys': [429, 'The service has too many idempotency keys'],
  'too-many-restores': [429, 'The instance runs too many restores'],
  'too-many-topics': [429, 'The service has too many topics'],
  'too-many-endpoints': [429, 'The service has too many endpoints'],
  'too-many-streams': [429, 'The service has too many event streams'],
  'headers-too-large': [431, 'The headers are too large'],
  'internal-error': [500, 'The service failed'],
  'redis-unavailable': [503, 'Redis does not answer'],
  'redis-refused': [503, 'Redis refused the command'],
  'journal-unavailable': [503, 'The journal does not answer'],
  'push-in-progress': [503, 'The same push is under way'],
  'too-many-connections': [503, 'The service has too many connections'],
  'too-many-bodies': [503, 'The bodies of all requests together are too large'],
  'too-many-answers': [503, 'The answers under way together are too large'],
  'ids-unavailable': [503, 'The service can draw no id'],
  'changes-behind': [503, 'Too many changes wait to be read'],
  'shutting-down': [503, 'The service is stopping'],
} as const satisfies Record<string, readonly [status: number, title: string]>

export type ProblemCode = keyof typeof PROBLEMS

/** RFC 9457. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly code: ProblemCode
  readonly detail?: string
  /** The id of the request; the log has it too. */
  readonly requestId?: string
  /** The invalid parts of the request. */
  readonly errors?: { readonly path: string; readonly message: string }[]
}

/** Thrown by a handler to answer with a problem. */
export class BadRequest extends Error {
  readonly code: ProblemCode
  readonly errors: Problem['errors']

  constructor(code: ProblemCode, detail: string, errors?: Problem['errors']) {
    super(detail)
    this.code = code
    this.errors = errors
  }
}

export function problem(code: ProblemCode, detail?: string, more: Pick<Problem, 'requestId' | 'errors'> = {}): Problem {
  const [status, title] = PROBLEMS[code]
  return { type: `urn:redelayed:problem:${code}`, title, status, code, ...(detail && { detail }), ...more }
}

const OF_TOPICS: Record<TopicErrorCode, ProblemCode> = {
  ERR_IDS_UNAVAILABLE: 'ids-unavailable',
  ERR_TOPIC_NAME: 'invalid-topic',
  ERR_TOPIC_NOT_FOUND: 'topic-not-found',
  ERR_TOPIC_NOT_EMPTY: 'topic-not-empty',
  ERR_TOPIC_SHARDS: 'topic-shards',
  ERR_TOPIC_BUSY: 'topic-busy',
  ERR_TOO_MANY_TOPICS: 'too-many-topics',
  ERR_MESSAGE_NOT_FOUND: 'message-not-found',
  ERR_MESSAGE_IN_FLIGHT: 'message-in-flight',
  ERR_MESSAGE_HAS_BYTES: 'message-has-bytes',
  ERR_MESSAGE_INVALID: 'invalid-message',
  ERR_MESSAGE_TOO_LARGE: 'message-too-large',
  ERR_IDEMPOTENCY_MISMATCH: 'idempotency-mismatch',
  ERR_IDEMPOTENCY_KEY_REMOVED: 'idempotency-key-removed',
  ERR_TOO_MANY_KEYS: 'too-many-keys',
  ERR_LEASE: 'invalid-lease',
  ERR_NO_EVENTS: 'no-events',
  ERR_NO_ENDPOINT: 'no-endpoint',
  ERR_CURSOR: 'invalid-cursor',
  ERR_ENDPOINT_NOT_FOUND: 'endpoint-not-found',
  ERR_ENDPOINT_IN_USE: 'endpoint-in-use',
  ERR_TOO_MANY_ENDPOINTS: 'too-many-endpoints',
  ERR_NOT_WITH_JOURNAL: 'not-with-journal',
}

/** The problems of Fastify's own errors. */
const OF_FASTIFY: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_VALIDATION: 'invalid-request',
  FST_ERR_BAD_URL: 'invalid-request',
  FST_ERR_CTP_BODY_TOO_LARGE: 'body-too-large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported-media-type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid-request',
  FST_ERR_CTP_EMPTY_TYPE: 'unsupported-media-type',
  FST_ERR_MAX_PARAM_LENGTH: 'invalid-request',
}

interface FastifyFailure {
  readonly code?: string
  readonly message: string
  readonly validation?: readonly { readonly instancePath: string; readonly message?: string }[]
  readonly validationContext?: string
}

const UNKNOWN = 'the outcome is unknown; repeating the request is safe with an id or an Idempotency-Key'

/** The problem for an error. It leaves out what a client must not know, such as addresses. */
export function problemOf(thrown: unknown): Problem {
  if (thrown instanceof BadRequest)
    return problem(thrown.code, thrown.message, thrown.errors && { errors: thrown.errors })
  if (thrown instanceof TopicError) return problem(OF_TOPICS[thrown.code], plain(thrown))
  if (thrown instanceof JournalError) {
    if (thrown.code === 'ERR_JOURNAL_TOO_LARGE') return problem('message-too-large', thrown.message)
    if (thrown.code === 'ERR_JOURNAL_IN_PROGRESS')
      return problem(
        'push-in-progress',
        'another request with this id or Idempotency-Key is under way; repeat the request to learn the outcome',
      )
    return problem(
      'journal-unavailable',
      thrown.outcome === 'not-applied'
        ? 'nothing was accepted; try again later'
        : 'it may or may not have been accepted; repeating the request is safe with an id or an Idempotency-Key',
    )
  }
  if (thrown instanceof RedelayedError) return ofLibrary(thrown)
  const failure = redisFailureOf(thrown)
  if (failure !== undefined)
    return failure === 'refused' ? problem('redis-refused') : problem('redis-unavailable', UNKNOWN)
  const { code = '', message, validation, validationContext } = thrown as FastifyFailure
  const known = OF_FASTIFY[code]
  if (known === undefined) return problem('internal-error')
  if (validation === undefined) return problem(known, message)
  const errors = validation.slice(0, 20).map(({ instancePath, message: what = 'is wrong' }) => {
    return { path: `${validationContext ?? 'body'}${instancePath}`, message: what }
  })
  return problem(known, `${errors[0]?.path ?? 'body'} ${errors[0]?.message ?? ''}`, { errors })
}

function ofLibrary(error: RedelayedError): Problem {
  if (error instanceof InvalidArgumentError) return problem('invalid-request', plain(error))
  if (error instanceof PayloadTooLargeError) return problem('message-too-large', plain(error))
  if (error instanceof QueueFullError) return problem('topic-full', plain(error))
  if (error instanceof OperationDisabledError) return problem('topic-paused', 'pushing is paused')
  if (error instanceof ChangesBehindError) return problem('changes-behind', plain(error))
  if (error instanceof ShutdownError) return problem('shutting-down')
  if (error instanceof ConnectionError) {
    return problem('redis-unavailable', error.outcome === 'not-applied' ? 'nothing was done' : UNKNOWN)
  }
  if (error instanceof CommandError || error instanceof AuthError || error instanceof ReadOnlyError)
    return problem('redis-refused')
  if (error instanceof UnsupportedServerError) return problem('redis-refused', plain(error))
  return problem('internal-error')
}

/** The problem of a failed command of a plain Redis client, whose errors have no codes. */
export function redisProblem(thrown: unknown): never {
  const { message } = thrown as Error
  if (/^(NOPERM|READONLY|OOM|WRONGTYPE|MISCONF|NOAUTH)/.test(message))
    throw new BadRequest('redis-refused', 'the service needs a command that Redis refused')
  throw new BadRequest('redis-unavailable', 'try again later')
}

/** The problem of a failed command line tool of the library, which runs beside the service. */
export function commandProblem(thrown: unknown): never {
  if (!(thrown instanceof CommandFailed)) throw thrown
  throw new BadRequest(thrown.isUsage ? 'invalid-request' : 'redis-unavailable', thrown.message)
}

/** The message without the name of the queue at its start, which the path has. */
function plain({ message, queue }: RedelayedError): string {
  const prefix = queue === undefined ? '' : `queue ${JSON.stringify(queue)}: `
  return message.startsWith(prefix) ? message.slice(prefix.length) : message
}
