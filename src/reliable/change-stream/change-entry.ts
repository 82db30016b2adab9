import { DecodeError } from '../../errors.js'
import { clean } from '../../text.js'
import { TurnTime } from '../../timing/turn-time.js'
import { readRecord } from '../record.js'
import type { ChangeKind, MessageChange } from './change.js'

/** The entry of one script call in the stream. */
export interface ChangeEntry {
  readonly epoch: string
  readonly client: string
  readonly changes: readonly MessageChange[]
}

/** The kinds of changes by the letters of the scripts. */
const KINDS = new Map<string, ChangeKind>([
  ['a', 'added'],
  ['p', 'polled'],
  ['k', 'acknowledged'],
  ['l', 'released'],
  ['f', 'failed'],
  ['d', 'dead'],
  ['e', 'expired'],
  ['x', 'removed'],
  ['r', 'rescheduled'],
  ['u', 'updated'],
  ['m', 'moved'],
  ['b', 'redriven'],
  ['s', 'restored'],
  ['g', 'progress'],
  ['c', 'cleared'],
])

const HAVE_RECORDS: readonly ChangeKind[] = ['added', 'updated', 'redriven']
const HAVE_ERRORS: readonly ChangeKind[] = ['failed', 'dead']
const LINE_BYTES = 200
/** The longest reason or name that a script writes. */
const TEXT_BYTES = 65_536
const NEWLINE = 10
/** The most messages that a script changes. */
const MOST_CHANGES = 10_000
/**
 * The most empty ids in a part, which another program can write into each schedule: an entry of a hundred bytes could claim thousands of
 * them.
 */
const MOST_EMPTY = 16
const FIRST_LINE = /^([\w-]{1,32}) ([\x21-\x7e]{1,64})$/
const PART_LINE = /^([a-z]),([^,]{0,32}),([^,]{0,32}),(\d?),(\d{1,9}),(\d{1,9}),(\d{1,9})$/

/**
 * `<epoch> <client>\n`, then parts: `<kind>,<attempt>,<due>,<priority>,<bytes of each id>,<how many>,<bytes of extra>\n`, the extra,
 * the ids. Any client can write into the stream, so every field is checked; and the headers
 * of 16 MiB of records take a second, so decoding yields to the event loop.
 *
 * @throws DecodeError
 */
export async function readEntry(bytes: Buffer, time = new TurnTime()): Promise<ChangeEntry> {
  const [line, from] = lineAt(bytes, 0)
  const [, epoch, client] = FIRST_LINE.exec(line) ?? []
  if (epoch === undefined || client === undefined) throw unreadable('without an epoch')
  const changes: MessageChange[] = []
  for (let at = from; at < bytes.length;) {
    at = readPart(bytes, at, changes)
    if (time.isOver) await time.giveWay()
  }
  return { epoch, client, changes }
}

/** Where the next part begins. */
function readPart(bytes: Buffer, start: number, changes: MessageChange[]): number {
  const [line, from] = lineAt(bytes, start)
  const [, letter = '', attempt, due, priority, size, count, extraSize] = PART_LINE.exec(line) ?? []
  const change = KINDS.get(letter)
  const [idBytes, ids, extraBytes] = [Number(size), Number(count), Number(extraSize)]
  const end = from + extraBytes + idBytes * ids
  const areTooMany = changes.length + ids > MOST_CHANGES || (idBytes === 0 && ids > MOST_EMPTY)
  if (change === undefined || ids === 0 || end > bytes.length || areTooMany)
    throw unreadable('with a part that is none')
  const common = {
    change,
    ...numberIn('attempt', attempt),
    ...numberIn('dueAt', due),
    ...numberIn('priority', priority),
    ...readExtra(change, bytes.subarray(from, from + extraBytes)),
  }
  for (let n = 0, at = from + extraBytes; n < ids; n++, at += idBytes) {
    changes.push({ id: bytes.toString('utf8', at, at + idBytes), ...common })
  }
  return end
}

function readExtra(change: ChangeKind, extra: Buffer): Partial<MessageChange> {
  if (extra.length === 0) return {}
  if (HAVE_ERRORS.includes(change)) {
    const error = textIn(extra.subarray(0, TEXT_BYTES))
    return error === '' ? {} : { error: clean(error) }
  }
  if (change === 'progress') return { progress: Buffer.from(extra) }
  if (change === 'moved') return { to: textIn(extra.subarray(0, TEXT_BYTES)) }
  if (change === 'rescheduled') return numberIn('expiresAt', extra.toString('latin1'))
  if (!HAVE_RECORDS.includes(change)) return {}
  try {
    const { payload, headers, expiresAt, deliveryLimit, group } = readRecord(extra)
    const own = { ...(expiresAt !== null && { expiresAt }), ...(deliveryLimit !== null && { deliveryLimit }) }
    return { payload, headers, ...own, ...(group !== undefined && { group }) }
  } catch {
    return {} // a record of another program; the other changes of the entry are not affected
  }
}

/** The text of a JSON string; any other bytes unchanged, because other JSON can take minutes to parse. */
function textIn(bytes: Buffer): string {
  const json = bytes.toString()
  if (!json.startsWith('"')) return json
  try {
    const text: unknown = JSON.parse(json)
    return typeof text === 'string' ? text : json
  } catch {
    return json
  }
}

/** A number of a part; leaves out what another program has written into a schedule. */
function numberIn<K extends string>(name: K, text: string | undefined): { readonly [P in K]?: number } {
  const number = text === undefined || text === '' ? NaN : Math.ceil(Number(text))
  return (Number.isSafeInteger(number) ? { [name]: number } : {}) as { readonly [P in K]?: number }
}

function lineAt(bytes: Buffer, at: number): [line: string, next: number] {
  const end = bytes.subarray(at, at + LINE_BYTES).indexOf(NEWLINE)
  if (end < 0) throw unreadable('without a line')
  return [bytes.toString('latin1', at, at + end), at + end + 1]
}

function unreadable(why: string): DecodeError {
  return new DecodeError('changes', why)
}
