import { cleanError } from '../clean-error.js'
import {
  RedelayedError,
  type EventName,
  type SettledOutcome,
  type RedelayedClient,
  type RedelayedEvents,
} from '../index.js'
import { printable } from '../text.js'

/** A logger such as pino's, or `console`: the fields, then a text. */
export interface EventLogger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

type Level = keyof EventLogger

const LEVELS: Readonly<Record<EventName, Level>> = {
  error: 'error',
  warning: 'warn',
  quarantined: 'warn',
  reconnecting: 'warn',
  full: 'warn',
  rejected: 'warn',
  expired: 'warn',
  settled: 'warn', // successful outcomes: debug
  subscribed: 'info',
  transferred: 'debug',
  added: 'debug',
  polled: 'debug',
  acknowledged: 'debug',
  failed: 'debug',
  removed: 'debug',
  progress: 'debug',
}

const WENT_WELL: readonly (SettledOutcome | undefined)[] = ['completed', 'deferred']

/**
 * Logs the events of a client, with the event's name in `event` and never a payload, until the returned function is
 * called. Errors are in `err`, as cleaned copies if handlers threw them; names and ids are one line without characters
 * that steer a terminal.
 *
 * @throws nothing; an error of the logger becomes a process warning
 *
 * @example
 * ```ts
 * import { logEvents } from 'redelayed/logging'
 *
 * const stop = logEvents(client, console)
 * ```
 */
export function logEvents(client: RedelayedClient, logger: EventLogger): () => void {
  const ends = (Object.keys(LEVELS) as EventName[]).map((name) => listen(client, name, logger))
  return () => {
    for (const end of ends.splice(0)) end()
  }
}

function listen(client: RedelayedClient, name: EventName, logger: EventLogger): () => void {
  const listener = (event: RedelayedEvents[EventName]): void => {
    const { err, ...fields } = fieldsOf(event)
    const level = 'outcome' in fields && WENT_WELL.includes(fields.outcome) ? 'debug' : LEVELS[name]
    logger[level]({ event: name, ...fields, ...(err !== undefined && { err }) }, `redelayed ${name}`)
  }
  client.on(name, listener)
  return () => client.off(name, listener)
}

function fieldsOf(event: RedelayedEvents[EventName]): {
  readonly err?: Error | undefined
  readonly outcome?: SettledOutcome
} {
  if (event instanceof RedelayedError) {
    return { ...(event.queue !== undefined && { queue: shown(event.queue) }), err: event }
  }
  const { error, ...fields } = 'error' in event ? event : { ...event, error: undefined }
  const entries = Object.entries(fields).filter(([key]) => key !== 'progress') // a handler's progress is as secret as a payload
  const known = entries.map(([key, value]) => [key, shown(value)] as const)
  return { ...Object.fromEntries(known), err: error && cleanError(error) }
}

const MAX_SHOWN = 200

/** A value for a log: ids and names of tasks come with messages, so they are cleaned. */
function shown(value: unknown): unknown {
  if (typeof value === 'string') return printable(value, MAX_SHOWN)
  return Array.isArray(value) ? value.map(shown) : value
}
