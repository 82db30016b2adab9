import { InvalidArgumentError } from 'redelayed'
import { JournalError } from '../errors.js'

/** `'sync'`: SQL before Redis; `'async'`: Redis first, SQL follows by the change stream; `'off'`: no journal. */
export type JournalMode = 'sync' | 'async' | 'off'

export interface JournalOptions {
  /**
   * `sqlite:<path>`, `postgres://user:password@host/database`, or `mysql://user:password@host/database` (also for MariaDB). Not needed
   * with the mode `'off'`.
   */
  readonly url?: string | undefined
  /** Default `'sync'`. */
  readonly mode?: JournalMode | undefined
  /** Whether the journal creates its tables, or brings them to this version, when it opens. Default true. */
  readonly migrate?: boolean | undefined
  /** How long a commit waits for others to join it, in milliseconds. 0 to 1,000; default 2. */
  readonly lingerMs?: number | undefined
  /** How often each queue is checked for what Redis has lost, in milliseconds. Default 5,000. */
  readonly sweepMs?: number | undefined
  /**
   * How long an accepted message can be missing from Redis before another instance adds it, in milliseconds. More than twice the client's
   * `commandTimeout`, so that the instance that accepted it has ended its attempts. Default 30,000.
   */
  readonly adoptAfterMs?: number | undefined
  /** How long handled, expired and removed messages are kept, in milliseconds. Default 7 days. */
  readonly retentionMs?: number | undefined
  /** The most messages that a restore checks per second; a limit below 200 cannot be kept. Default: no limit. */
  readonly restoreRate?: number | undefined
  /** The number of connections to PostgreSQL or MySQL. 2 to 100; default 5. */
  readonly connections?: number | undefined
  /**
   * Whether the journal works in the background: reads the changes of its queues, puts back what Redis has lost, and removes what is older
   * than the retention. False for a tool that only compares or restores by hand. Default true.
   */
  readonly background?: boolean | undefined
}

export type DatabaseTarget =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres' | 'mysql'; readonly url: string; readonly connections: number }

export interface JournalSettings {
  readonly target: DatabaseTarget | undefined
  readonly mode: JournalMode
  readonly migrate: boolean
  readonly lingerMs: number
  readonly sweepMs: number
  readonly adoptAfterMs: number
  readonly retentionMs: number
  readonly restoreRate: number
  readonly background: boolean
}

const DAY_MS = 86_400_000
const NAMES: readonly string[] = [
  'url',
  'mode',
  'migrate',
  'lingerMs',
  'sweepMs',
  'adoptAfterMs',
  'retentionMs',
  'restoreRate',
  'connections',
  'background',
] satisfies (keyof JournalOptions)[]

/** Checks the options and fills in their defaults. */
export function resolveJournalOptions(options: JournalOptions): JournalSettings {
  for (const name of Object.keys(options)) {
    if (!NAMES.includes(name)) throw new InvalidArgumentError('options', `only ${NAMES.join(', ')}`, options)
  }
  const mode = options.mode ?? 'sync'
  if (!['sync', 'async', 'off'].includes(mode)) throw new InvalidArgumentError('mode', "'sync', 'async' or 'off'", mode)
  const connections = integer('connections', options.connections ?? 5, 2, 100)
  if (mode !== 'off' && options.url === undefined)
    throw new InvalidArgumentError('url', 'one for the journal', options.url)
  return Object.freeze({
    target: mode === 'off' || options.url === undefined ? undefined : parseJournalUrl(options.url, connections),
    mode,
    migrate: options.migrate ?? true,
    lingerMs: integer('lingerMs', options.lingerMs ?? 2, 0, 1_000),
    sweepMs: integer('sweepMs', options.sweepMs ?? 5_000, 100, DAY_MS),
    adoptAfterMs: integer('adoptAfterMs', options.adoptAfterMs ?? 30_000, 100, DAY_MS),
    retentionMs: integer('retentionMs', options.retentionMs ?? 7 * DAY_MS, 1_000, Number.MAX_SAFE_INTEGER),
    background: options.background ?? true,
    restoreRate: options.restoreRate === undefined ? Infinity : integer('restoreRate', options.restoreRate, 1, 1e9),
  })
}

/** @throws JournalError ERR_JOURNAL_URL */
export function parseJournalUrl(url: string, connections = 5): DatabaseTarget {
  const [, scheme = ''] = /^([a-z0-9+.-]*):/i.exec(url) ?? []
  switch (scheme.toLowerCase()) {
    case 'sqlite': {
      const path = url.slice('sqlite:'.length).replace(/^\/\/(?=\/|$)/, '')
      if (path === '') break
      return { kind: 'sqlite', path }
    }
    case 'postgres':
    case 'postgresql':
      if (isServerUrl(url)) return { kind: 'postgres', url, connections }
      break
    case 'mysql':
    case 'mariadb':
      if (isServerUrl(url)) return { kind: 'mysql', url: url.replace(/^mariadb:/i, 'mysql:'), connections }
      break
  }
  const known = 'sqlite:<path>, postgres://user:password@host/database or mysql://user:password@host/database'
  // never the URL itself: it can have a password
  throw new JournalError(
    'ERR_JOURNAL_URL',
    `the journal's URL${scheme && ` with the scheme "${scheme}"`} must be ${known}`,
  )
}

function isServerUrl(url: string): boolean {
  return /^[a-z]+:\/\/[^/]/i.test(url) && URL.canParse(url)
}

function integer(what: string, value: unknown, least: number, most: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
  throw new InvalidArgumentError(what, `a whole number from ${least} to ${most}`, value)
}
