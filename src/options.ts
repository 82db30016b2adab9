import { InvalidArgumentError, inQuotes } from './errors.js'
import { durationMs, type Duration, type InMillis } from './duration.js'

/** The tuning options; every default suits almost all applications. Durations are milliseconds or texts such as `'5s'`. */
export interface Tuning {
  /**
   * Whose clock decides when a message is due. `'redis'` (default) compares due times inside Redis with its own clock, so
   * that clock skew between processes is harmless. `'local'` sends this process's clock, as Redisson does.
   */
  readonly clock?: 'redis' | 'local' | undefined
  /** How often each queue is transferred regardless of messages and timers. 100 to 3,600,000; default 5,000. */
  readonly sweepInterval?: Duration | undefined
  /**
   * How often the subscriber connection is pinged, to notice a half-open socket, and each sentinel is asked for the master. 100 to
   * 3,600,000; default 10,000.
   */
  readonly pingInterval?: Duration | undefined
  /**
   * How long opening a connection may take, from the search for the server to the last answer that it needs, before the client tries anew;
   * and how long a call may wait for a connection before it rejects. 10 to 600,000; default 10,000.
   */
  readonly connectTimeout?: Duration | undefined
  /** How long the server may be silent while it owes a reply, before the connection is replaced. 100 to 600,000; default 10,000. */
  readonly commandTimeout?: Duration | undefined
  /** How many connections the waiting takes of all queues share. 1 to 64; default 4. */
  readonly blockingConnections?: number | undefined
  /**
   * How offers are written: `'Bc0Lc0'` (default) as Redisson from 3.21.1 on, `'dLc0'` as Redisson before, for
   * older services that cannot read the default. Entries of both formats are always read and delivered. Only with `layout: 'redisson'`.
   */
  readonly entryFormat?: 'Bc0Lc0' | 'dLc0' | undefined
  /**
   * Whether turns of the event loop take the last fraction of a millisecond before a due time, because a timer of Node can be a millisecond
   * late. Only a client that serves a queue alone, or got its last messages, does so, for up to 2 % of its time; beyond that, it uses
   * timers. Default true.
   */
  readonly fineWaits?: boolean | undefined
  /** Whether `take()`, `poll(timeout)` and the iterator also transfer due messages of their queue. Default true. */
  readonly consumersDeliver?: boolean | undefined
  /** The largest encoded value that is accepted or decoded, in bytes. 1 to 536,870,912 (512 MiB, Redis's own limit); default 16 MiB. */
  readonly maxPayloadBytes?: number | undefined
}

/** Durations are milliseconds. */
export type Settings = Readonly<{ [K in keyof Tuning]-?: InMillis<NonNullable<Tuning[K]>> }> & {
  /** The local clock, epoch milliseconds; a test may pass its own. */
  readonly localTime: () => number
}

/** Checks the tuning options and fills in the defaults; a later change of the caller's object changes nothing. */
export function resolveSettings(tuning: Tuning, localTime: () => number = Date.now): Settings {
  return Object.freeze({
    localTime,
    clock: oneOf('clock', tuning.clock ?? 'redis', ['redis', 'local']),
    sweepInterval: durationMs('sweepInterval', tuning.sweepInterval ?? 5_000, 100, 3_600_000),
    pingInterval: durationMs('pingInterval', tuning.pingInterval ?? 10_000, 100, 3_600_000),
    connectTimeout: durationMs('connectTimeout', tuning.connectTimeout ?? 10_000, 10, 600_000),
    commandTimeout: durationMs('commandTimeout', tuning.commandTimeout ?? 10_000, 100, 600_000),
    blockingConnections: integer('blockingConnections', tuning.blockingConnections ?? 4, 1, 64),
    entryFormat: oneOf('entryFormat', tuning.entryFormat ?? 'Bc0Lc0', ['Bc0Lc0', 'dLc0']),
    fineWaits: boolean('fineWaits', tuning.fineWaits ?? true),
    consumersDeliver: boolean('consumersDeliver', tuning.consumersDeliver ?? true),
    maxPayloadBytes: integer('maxPayloadBytes', tuning.maxPayloadBytes ?? 16 * 1024 * 1024, 1, 512 * 1024 * 1024),
  })
}

/** The time argument of scripts: the caller's clock where that decides, or -1 for the server's. */
export function scriptTime({ clock, localTime }: Settings): number {
  return clock === 'local' ? localTime() : -1
}

export function integer(what: string, value: unknown, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw new InvalidArgumentError(what, `a whole number from ${min} to ${max}`, value)
  }
  return value
}

export function boolean(what: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw new InvalidArgumentError(what, 'true or false', value)
  return value
}

export function oneOf<T extends string>(what: string, value: unknown, allowed: readonly T[]): T {
  const found = allowed.find((candidate) => candidate === value)
  if (found === undefined) {
    throw new InvalidArgumentError(what, allowed.map((text) => JSON.stringify(text)).join(' or '), value)
  }
  return found
}

/** Refuses options that this version does not know, because a misspelt one would be ignored silently. */
export function onlyKnown(what: string, value: unknown, known: readonly string[]): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidArgumentError(what, 'an object', value)
  }
  for (const key of Object.keys(value)) {
    if (!known.includes(key))
      throw new InvalidArgumentError(`${what}.${key}`, `one of ${known.join(', ')}`, inQuotes(key))
  }
}

export function nonEmptyString(what: string, value: unknown): string {
  if (typeof value !== 'string' || value === '') throw new InvalidArgumentError(what, 'a non-empty string', value)
  return value
}
