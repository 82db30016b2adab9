import type { ServerSettings } from '../config/server-settings.js'

/** How deep causes are followed. */
const MOST_CAUSES = 3

/** What the log has of an error. */
export type LoggedError = {
  readonly type: string
  readonly message: string
  readonly stack: string
  readonly code?: string
  readonly cause?: LoggedError
}

/**
 * What says which error it is, and nothing else: ioredis hangs whole commands on its errors, with passwords and answers of endpoints, and other
 * libraries hang requests on theirs.
 */
export function loggedError(error: Error, depth = 0): LoggedError {
  const { message, stack, cause } = error
  const { code } = error as { code?: unknown }
  return {
    type: error.name,
    message,
    stack: stack ?? '',
    ...(typeof code === 'string' && { code }),
    ...(cause instanceof Error && depth < MOST_CAUSES && { cause: loggedError(cause, depth + 1) }),
  }
}

/** How the service logs: as JSON lines without keys and without what errors carry. */
export function loggerOf(level: Exclude<ServerSettings['logLevel'], 'silent'>): {
  level: string
  redact: string[]
  serializers: { err: (error: Error) => LoggedError }
} {
  return {
    level,
    redact: ['req.headers.authorization', 'req.headers["x-api-key"]'],
    serializers: { err: (error: Error) => loggedError(error) },
  }
}
