/** A message to add: checked and encoded, with the options in the script's format. */
export interface NewMessage {
  readonly id: string
  readonly priority: number
  /** When it becomes visible: a delay in milliseconds, `@` and epoch milliseconds, or empty for the queue's delay. */
  readonly visible: string
  readonly timeToLive: string
  readonly deliveryLimit: string
  readonly headers: Buffer
  readonly payload: Buffer
  /** Empty for none. */
  readonly group: Buffer
  /** The deduplication mark, which must not be added again for `markMs` milliseconds; empty for none. */
  readonly mark: string
  readonly markMs: string
}

/** How long a deduplication holds at most: no client writes a mark that ends later, and it has no effect. As in reliable-add.lua. */
export const MAX_MARK_MS = 365 * 86_400_000

/** The most messages that one script adds, which takes about two milliseconds. */
export const ADD_ITEMS = 250
const ADD_BYTES = 1024 * 1024

/** The outcomes of the script that adds; a message with a negative one was not added. */
export const ADD_OUTCOME = {
  kept: 0,
  added: 1,
  replaced: 2,
  postponed: 3,
  duplicate: -1,
  full: -2,
  tooLate: -3,
  disabled: -4,
  tooLarge: -5,
  behind: -6,
  batchClosed: -7,
  wrongType: -8,
} as const

/** Splits messages into parts for one script each. */
export function addPages<M extends Pick<NewMessage, 'payload' | 'headers'>>(messages: readonly M[]): M[][] {
  const pages: M[][] = []
  let bytes = Infinity
  for (const message of messages) {
    const size = message.payload.length + message.headers.length
    const page = pages.at(-1)
    if (page === undefined || page.length >= ADD_ITEMS || bytes + size > ADD_BYTES) {
      pages.push([message])
      bytes = size
    } else {
      page.push(message)
      bytes += size
    }
  }
  return pages
}

/** A message to restore. */
export interface RestoredMessage {
  readonly id: string
  /** Epoch milliseconds. */
  readonly dueAt: number
  readonly priority: number
  readonly attempts: number
  readonly headers: Buffer
  readonly payload: Buffer
  readonly expiresAt: number | null
  readonly deliveryLimit: number | null
  /** A line for each failed attempt. */
  readonly failures: Buffer
  /** The due time of the existing message of this id that it may replace; `null` for none. */
  readonly replaces: number | null
  /** Empty for none. */
  readonly group: Buffer
}

/** Options of restoring messages. */
export interface HowToRestore {
  /** Whether the change stream gets only the ids. */
  readonly known: boolean
  /** Whether they are dead letters, so that a message with a group takes no turns. */
  readonly deadLetters: boolean
}

export function restoreArgs(message: RestoredMessage, deadLetters: boolean): (Buffer | string)[] {
  const { id, dueAt, priority, attempts, headers, payload, expiresAt, deliveryLimit, failures, replaces, group } =
    message
  return [
    id,
    `${deadLetters && group.length > 0 ? deadPlaceOf(priority, group) : placeOf(priority, group)},${dueAt},${attempts},${expiresAt ?? ''},${deliveryLimit ?? ''},${headers.length},${failures.length},${replaces ?? ''}`,
    headers.length + failures.length + group.length === 0
      ? payload
      : Buffer.concat([failures, group, headers, payload]),
  ]
}

/** The script's arguments for a message, as few as possible, because each costs the connection more time than the rest. */
export function itemArgs(message: NewMessage): (Buffer | string)[] {
  const { id, priority, visible, timeToLive, deliveryLimit, headers, payload, mark, markMs, group } = message
  return [
    id,
    `${placeOf(priority, group)},${visible},${timeToLive},${deliveryLimit},${headers.length},${markMs},${mark}`,
    headers.length + group.length === 0 ? payload : Buffer.concat([group, headers, payload]),
  ]
}

/** The priority; for a message with a group, `g` and the length of the group. */
function placeOf(priority: number, group: Buffer): string {
  return group.length === 0 ? String(priority) : `g${group.length}`
}

/** The place of a dead letter with a group: its priority too, as for one without a group. */
function deadPlaceOf(priority: number, group: Buffer): string {
  return `${priority}d${group.length}`
}
