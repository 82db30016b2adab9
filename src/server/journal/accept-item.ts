import { InvalidArgumentError, type AddItem } from 'redelayed'

/** What the journal accepts: the options of `add` that can be stored. Durations are milliseconds. */
export interface AcceptItem<T> extends Omit<AddItem<T>, 'deduplicate'> {
  readonly delay?: number | undefined
  readonly timeToLive?: number | undefined
  /**
   * For this time, adding the id again adds nothing: it is the same message, even if a consumer has handled it since. In `sync` mode that
   * holds as long as SQL has the row. At most 31,536,000,000 (365 days), as the queue's `deduplicate`.
   */
  readonly onceForMs?: number | undefined
  /** The id was drawn for this message: no other message has it, and SQL need not be asked. */
  readonly isDrawn?: boolean
}

/** The longest `forMs` of the queue's `deduplicate`, `MAX_MARK_MS` of the library. */
const MOST_ONCE_MS = 365 * 86_400_000

const OPTIONS = [
  'payload',
  'id',
  'delay',
  'date',
  'priority',
  'group',
  'headers',
  'timeToLive',
  'deliveryLimit',
  'onceForMs',
  'isDrawn',
]
const MOST_ID_BYTES = 512
const MOST_GROUP_BYTES = 255
const MOST_HEADER_BYTES = 64 * 1024
const MOST_DELIVERIES = 1_000_000
const MOST_PRIORITY = 9

/** Refuses, before SQL has it, what the queue would refuse: every committed row has to make a message. */
export function checkItem(item: AcceptItem<unknown>, at: number): void {
  const what = (name: string): string => `items[${at}].${name}`
  for (const name of Object.keys(item)) {
    if (!OPTIONS.includes(name)) throw new InvalidArgumentError(what(name), `one of ${OPTIONS.join(', ')}`, name)
  }
  const { id, delay, date, priority, group, headers, timeToLive, deliveryLimit, onceForMs } = item
  if (id !== undefined && !isName(id, MOST_ID_BYTES))
    throw new InvalidArgumentError(what('id'), `a text of 1 to ${MOST_ID_BYTES} bytes without lone surrogates`, id)
  if (group !== undefined && !isName(group, MOST_GROUP_BYTES))
    throw new InvalidArgumentError(
      what('group'),
      `a text of 1 to ${MOST_GROUP_BYTES} bytes without lone surrogates`,
      group,
    )
  if (group !== undefined && (priority ?? 0) !== 0)
    throw new InvalidArgumentError(what('priority'), 'no priority together with a group', priority)
  if (date !== undefined && delay !== undefined)
    throw new InvalidArgumentError(what('delay'), 'no delay together with a date', delay)
  if (date !== undefined && (!(date instanceof Date) || Number.isNaN(date.getTime())))
    throw new InvalidArgumentError(what('date'), 'a valid Date', date)
  whole(what('delay'), delay, 0, Number.MAX_SAFE_INTEGER)
  whole(what('priority'), priority, 0, MOST_PRIORITY)
  whole(what('timeToLive'), timeToLive, 1, Number.MAX_SAFE_INTEGER)
  whole(what('onceForMs'), onceForMs, 1, MOST_ONCE_MS)
  whole(what('deliveryLimit'), deliveryLimit, 1, MOST_DELIVERIES)
  if (headers !== undefined && !areHeaders(headers))
    throw new InvalidArgumentError(what('headers'), 'an object of texts of at most 64 KiB together', headers)
}

function isName(name: unknown, mostBytes: number): boolean {
  return typeof name === 'string' && name !== '' && name.isWellFormed() && Buffer.byteLength(name) <= mostBytes
}

function areHeaders(headers: unknown): boolean {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) return false
  if (!Object.values(headers).every((value) => typeof value === 'string')) return false
  return Buffer.byteLength(JSON.stringify(headers)) <= MOST_HEADER_BYTES
}

function whole(what: string, value: unknown, least: number, most: number): void {
  if (value === undefined) return
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return
  throw new InvalidArgumentError(what, `a whole number from ${least} to ${most}`, value)
}
