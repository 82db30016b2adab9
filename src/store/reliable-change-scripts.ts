import { InternalError } from '../errors.js'
import * as generated from './scripts/generated.js'
import { asArray, asBytes, asFlag, asInteger, asStreamId, asText } from './replies.js'
import { script } from './script.js'

/** Whether an entry is still there: the queue keeps no changes, has begun another epoch, has gone back in time, or has trimmed it. */
export type ReadStatus = 'ok' | 'off' | 'epoch' | 'rewound' | 'trimmed'

export interface ReadReply {
  readonly status: ReadStatus
  readonly epoch: string | null
  readonly last: string | null
  /** The entries of XRANGE. */
  readonly entries: readonly unknown[]
}

/** Where a reader begins, or why it cannot. */
export type OpenReply =
  | { readonly outcome: 'ok'; readonly after: string; readonly epoch: string }
  | { readonly outcome: 'off' | 'epoch' | 'rewound' | 'trimmed' }

/** One entry of a stream. */
export interface StreamEntry {
  readonly id: string
  /** `null` for an entry that is not of this package. */
  readonly value: Buffer | null
  /** Whether the entry was removed while it was pending. */
  readonly isGone: boolean
}

export interface StatusReply {
  readonly epoch: string | null
  readonly first: string | null
  readonly last: string | null
  readonly length: number
  readonly limit: number | null
  readonly groupCount: number
  readonly groups: readonly {
    readonly name: string
    readonly pending: number
    readonly lag: number | null
    readonly oldest: string | null
    readonly consumers: number
    readonly idleMs: number | null
  }[]
}

/** The scripts of the change stream with the decoders of their replies. */
export const openChanges = script(generated.reliableOpenChanges, asOpenReply)
export const readChanges = script(generated.reliableReadChanges, asReadReply)
export const followChanges = script(generated.reliableFollowChanges, asEntries)
export const releaseChanges = script(generated.reliableReleaseChanges, asFlag)
export const acknowledgeChanges = script(generated.reliableAcknowledgeChanges, asAcknowledged)
export const removeChangeGroup = script(generated.reliableRemoveChangeGroup, asRemoved)
export const inspectChanges = script(generated.reliableInspectChanges, asInspected)
export const changeStatus = script(generated.reliableChangeStatus, asStatusReply)

/** `groups`: the number of groups, 0 if the script did not count them. */
function asAcknowledged(reply: unknown): { done: number; groups: number } {
  const [done, groups] = asArray(reply)
  return { done: asInteger(done), groups: asInteger(groups) }
}

function asEntries(reply: unknown): StreamEntry[] {
  const flat = asArray(reply)
  const entries: StreamEntry[] = []
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const value = flat[at + 1]
    const isOurs = typeof value !== 'number'
    entries.push({ id: asStreamId(flat[at]), value: isOurs ? asBytes(value) : null, isGone: value === 1 })
  }
  return entries
}

function asRemoved(reply: unknown): { isRemoved: boolean; from: string } {
  const [removed, from] = asArray(reply)
  return { isRemoved: asFlag(removed), from: asText(from) }
}

function asInspected(reply: unknown): { examined: number; foreign: number } {
  const [examined, foreign] = asArray(reply)
  return { examined: asInteger(examined), foreign: asInteger(foreign) }
}

const READ_STATUSES: readonly string[] = ['ok', 'off', 'epoch', 'rewound', 'trimmed'] satisfies ReadStatus[]

function asReadReply(reply: unknown): ReadReply {
  const [first, epoch, last, entries] = asArray(reply)
  const status = asText(first)
  if (!READ_STATUSES.includes(status)) throw new InternalError('read-changes-reply', 'it has an unknown status')
  return { status: status as ReadStatus, epoch: orNull(epoch), last: orNull(last), entries: asArray(entries) }
}

function asOpenReply(reply: unknown): OpenReply {
  const [outcome, after, epoch] = asArray(reply).map(asText)
  switch (outcome) {
    case 'ok':
      return { outcome, after: after ?? '', epoch: epoch ?? '' }
    case 'off':
    case 'epoch':
    case 'rewound':
    case 'trimmed':
      return { outcome }
    default:
      throw new InternalError('open-changes-reply', 'it has an unknown outcome')
  }
}

function asStatusReply(reply: unknown): StatusReply {
  const [epoch, first, last, length, limit, groupCount, ...flat] = asArray(reply)
  const groups: StatusReply['groups'][number][] = []
  for (let at = 0; at + 5 < flat.length; at += 6) {
    const lag = asInteger(flat[at + 2])
    const idleMs = asInteger(flat[at + 5])
    groups.push({
      name: asText(flat[at]),
      pending: asInteger(flat[at + 1]),
      lag: lag < 0 ? null : lag,
      oldest: orNull(flat[at + 3]),
      consumers: asInteger(flat[at + 4]),
      idleMs: idleMs < 0 ? null : idleMs,
    })
  }
  const most = asInteger(limit)
  return {
    epoch: orNull(epoch),
    first: orNull(first),
    last: orNull(last),
    length: asInteger(length),
    limit: most === 0 ? null : most,
    groupCount: asInteger(groupCount),
    groups,
  }
}

function orNull(reply: unknown): string | null {
  const text = asText(reply)
  return text === '' ? null : text
}
