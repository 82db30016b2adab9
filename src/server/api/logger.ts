import type { ServerSettings } from '../config/server-settings.js'

/** How many nested causes are logged. */
const MOST_CAUSES = 3

/** An error as the log has it. */
export type LoggedError = {
  readonly type: string
  readonly message: string
  readonly stack: string
  readonly code?: string
  readonly cause?: LoggedError
}

/**
 * The identity of an error and nothing else: ioredis attaches whole commands to its errors, with passwords and answers of endpoints, and
 * other libraries attach requests.
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

/** The logger options: JSON lines, without API keys and without data attached to errors. */
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
