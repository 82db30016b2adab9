import {
  AuthError,
  CommandError,
  ConnectionError,
  CrossSlotError,
  ReadOnlyError,
  RedelayedError,
  UnsupportedServerError,
  WrongTypeError,
  toError,
} from '../../errors.js'

/** The message of ioredis when it refuses to send on a closing socket; then no byte was sent. */
const NOT_SENT = "Stream isn't writeable"

/** The beginning of the message of a broken connection. */
const BROKE = 'the connection to Redis broke: '

/** ioredis's error for commands in flight on a connection that has ended, whatever ended it. */
const CLOSED = 'Connection is closed.'

/** The error of ioredis's `socketTimeout`. */
const SILENT = /^Socket timeout\..* (\d+)ms\.$/

const WHERE = 'look at the url, or at username and password; for sentinels at sentinelUsername and sentinelPassword'

/** The error of a connection that was refused while it was opened: none of its calls was sent. */
export class NeverUsedError extends Error {
  override readonly name = 'NeverUsedError'
}

/** Turns an error of ioredis into one of the package's own. */
export function translateError(thrown: unknown): RedelayedError {
  if (thrown instanceof RedelayedError) return thrown
  const error = toError(thrown)
  if (error.name !== 'ReplyError') {
    const isUnsent = error instanceof NeverUsedError || error.message.startsWith(NOT_SENT)
    const outcome = isUnsent ? 'not-applied' : 'unknown'
    return new ConnectionError(`${BROKE}${reasonOf(error)}`, outcome, { cause: error })
  }
  const cause = error
  const message = withoutScriptTrace(error.message)
  switch (redisCodeOf(message)) {
    case 'WRONGTYPE':
      return new WrongTypeError({ cause })
    case 'READONLY':
      return new ReadOnlyError({ cause })
    case 'CROSSSLOT':
      return new CrossSlotError({ cause })
    case 'NOAUTH':
      return new AuthError(`the server asks for a password and got none (NOAUTH): ${WHERE}`, { cause })
    case 'WRONGPASS':
      return new AuthError(`the server knows no such user with this password (WRONGPASS): ${WHERE}`, { cause })
    case 'NOPERM':
      return new AuthError(message, { cause })
    default:
      if (/invalid (username-)?password/i.test(message)) return new AuthError(message, { cause })
      if (/unknown command/i.test(message)) return new UnsupportedServerError(message, { cause })
      return new CommandError(redisCodeOf(message), message, { cause })
  }
}

/**
 * The reason in an error. If a name has several addresses (`localhost` with ::1 and 127.0.0.1), Node's AggregateError has no message of its
 * own.
 */
function reasonOf(error: Error): string {
  const [, silentMs] = SILENT.exec(error.message) ?? []
  if (silentMs !== undefined) return `the server owed a reply and was silent for ${Number(silentMs) / 1000} s`
  if (error.message !== '' || !(error instanceof AggregateError)) return error.message
  return error.errors.map((each) => toError(each).message).join('; ')
}

/** The reason in a message, without its beginning. */
export function reasonIn(message: string): string {
  return message.startsWith(BROKE) ? message.slice(BROKE.length) : message
}

/** Adds the address of the broken connection to a command's error; `problem`: why it broke, if ioredis does not say so. */
export function brokenAt(address: string, error: RedelayedError, problem?: string): RedelayedError {
  if (!(error instanceof ConnectionError) || !error.message.startsWith(BROKE)) return error
  const reason = reasonIn(error.message)
  const why = reason === CLOSED && problem !== undefined ? reasonIn(problem) : reason
  const { outcome, cause } = error
  return new ConnectionError(`the connection to Redis at ${address} broke: ${why}`, outcome, { cause })
}

/** Whether the server is expected to recover, or another one to take over. */
export function isTransient(error: RedelayedError): boolean {
  if (error instanceof ConnectionError || error instanceof ReadOnlyError) return true
  return error instanceof CommandError && TRANSIENT.has(error.redisCode)
}

/**
 * Whether one of several messages may have caused a script's error: it alone uses a key of another type, or needs a right that the user
 * lacks. False for an error that does not mention scripts: proxies send such errors, also in place of the reply of a script that was
 * carried out.
 */
export function mayConcernOne(error: Error): boolean {
  if (error instanceof WrongTypeError || error instanceof AuthError) return true
  return error instanceof CommandError && error.redisCode === 'ERR' && /\bscript\b/.test(error.message)
}

/**
 * Whether a server's refusal is brief, so that it may be free again at any moment: a growing back-off would miss
 * its free moments.
 */
export function isBrief(error: Error): boolean {
  return error instanceof CommandError && TRANSIENT.has(error.redisCode)
}

const TRANSIENT = new Set([
  'LOADING',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'BUSY',
  'TRYAGAIN',
  'MOVED',
  'ASK',
  'UNBLOCKED',
  'NOREPLICAS',
])

/** Whether a replica refused the command without carrying it out, also one that still copies the data of its new master. */
export function isRefusedByReplica(error: unknown): boolean {
  if (error instanceof ReadOnlyError) return true
  return error instanceof CommandError && (error.redisCode === 'MASTERDOWN' || error.redisCode === 'LOADING')
}

/** The first word of a server error, e.g. `OOM`. */
function redisCodeOf(message: string): string {
  return /^[A-Z]+/.exec(message)?.[0] ?? 'ERR'
}

/** Up to Redis 6 an error inside a script arrives as `ERR Error running script (…): @user_script:1: WRONGTYPE …`. */
function withoutScriptTrace(message: string): string {
  const inner = /@user_script: ?\d+: (?:@user_script: ?\d+: )?-?([A-Z]+ .*)$/s.exec(message)?.[1]
  return inner ?? message
}
