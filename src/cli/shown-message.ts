import type { Codec } from '../index.js'
import type { KeptMessage } from '../doctor/kept-completed.js'
import type { QueuedMessage } from '../doctor/next-messages.js'
import { isoTime, moment, preview } from './output.js'
import { orUndecodable, Undecodable } from './undecodable.js'

/** The last progress of a message; an undecodable value is an `Undecodable`. */
export interface ShownProgress {
  readonly value: unknown
  readonly attempt: number
  readonly at: number
}

/** A message with decoded payload and progress; an undecodable payload and an unreadable record are an `Undecodable`. */
export interface ShownMessage extends Omit<QueuedMessage, 'payload' | 'progress' | 'problem'> {
  /** The name of the shard, or of the queue. */
  readonly queue: string
  readonly payload: unknown
  readonly progress: ShownProgress | null
}

/** A completed message with its decoded result; `null` for none. */
export interface ShownCompleted extends Omit<KeptMessage, 'result'> {
  readonly result: unknown
}

export function shown(
  queue: string,
  { payload, progress, problem, ...rest }: QueuedMessage,
  codec: Codec,
): ShownMessage {
  const safe = orUndecodable(codec)
  return {
    queue,
    ...rest,
    payload: problem === null ? safe.decode(payload) : new Undecodable(payload, problem),
    progress: progress && { ...progress, value: safe.decode(progress.value) },
  }
}

export function shownCompleted({ result, ...rest }: KeptMessage, codec: Codec): ShownCompleted {
  return { ...rest, result: result === null ? null : orUndecodable(codec).decode(result) }
}

export function messageDocument({ payload, progress, visibleAt, failures, ...message }: ShownMessage): object {
  return {
    ...message,
    visibleAt,
    visibleAtTime: isoTime(visibleAt),
    failures: failures.map(({ attempt, at, reason }) => ({ attempt, at: isoTime(at.getTime()), reason })),
    progress: progress && {
      ...valueDocument('value', progress.value),
      ...{ attempt: progress.attempt, at: progress.at, atTime: isoTime(progress.at) },
    },
    ...valueDocument('payload', payload),
  }
}

export function completedDocument({ completedAt, result, ...rest }: ShownCompleted): object {
  return { ...rest, completedAt, completedAtTime: isoTime(completedAt), ...valueDocument('result', result) }
}

/** A value in a table. */
export function valueCell(value: unknown): string {
  return value instanceof Undecodable ? value.line : preview(value)
}

export function progressCell(progress: ShownProgress | null, now: number): string {
  if (progress === null) return '-'
  return `${valueCell(progress.value)} (attempt ${progress.attempt}, ${moment(progress.at, now)})`
}

/** The values that the codec cannot read. */
export function undecodableOf(values: readonly unknown[]): Undecodable[] {
  return values.filter((value) => value instanceof Undecodable)
}

/** A field with the value; `null` with the bytes in `undecodable` if the codec cannot read it. */
function valueDocument(name: string, value: unknown): object {
  return value instanceof Undecodable ? { [name]: null, undecodable: value.document } : { [name]: value }
}
