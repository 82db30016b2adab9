/** A message that is added: checked and encoded, each option as the script takes it. */
export interface NewMessage {
  readonly id: string
  readonly priority: number
  /** When it becomes visible: a delay in milliseconds, `@` and epoch milliseconds, or empty for what the queue says. */
  readonly visible: string
  readonly timeToLive: string
  readonly deliveryLimit: string
  readonly headers: Buffer
  readonly payload: Buffer
  /** Empty for none. */
  readonly group: Buffer
  /** What must not be added again for `markMs` milliseconds; empty for nothing. */
  readonly mark: string
  readonly markMs: string
}

/** Bounds of what one script adds; with so many it takes about two milliseconds. */
export const ADD_ITEMS = 250
const ADD_BYTES = 1024 * 1024

/** The messages in parts that one script adds. */
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

/** A message that is put back as it was. */
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
  /** The due time of the message of this id that it may replace. */
  readonly replaces: number | null
  /** Empty for none. */
  readonly group: Buffer
}

/** How messages are put back. */
export interface HowToRestore {
  /** The change stream says only their ids. */
  readonly known: boolean
  /** One with a group takes no turns. */
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

/** As few arguments as can be: the layers below take more time for each than all else does. */
export function itemArgs(message: NewMessage): (Buffer | string)[] {
  const { id, priority, visible, timeToLive, deliveryLimit, headers, payload, mark, markMs, group } = message
  return [
    id,
    `${placeOf(priority, group)},${visible},${timeToLive},${deliveryLimit},${headers.length},${markMs},${mark}`,
    headers.length + group.length === 0 ? payload : Buffer.concat([group, headers, payload]),
  ]
}

/** The priority; for a message with a group the bytes of this. */
function placeOf(priority: number, group: Buffer): string {
  return group.length === 0 ? String(priority) : `g${group.length}`
}

/** Of a dead letter with a group: it has its priority as well, as one that has no group. */
function deadPlaceOf(priority: number, group: Buffer): string {
  return `${priority}d${group.length}`
}
