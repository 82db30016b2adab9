import { InternalError } from '../errors.js'
import * as generated from './scripts/generated.js'
import { asArray, asFlag, asInteger, asText } from './replies.js'
import { script } from './script.js'

/** Where a reader begins, or why it cannot. */
export type OpenReply =
  { readonly outcome: 'ok'; readonly after: string } | { readonly outcome: 'off' | 'epoch' | 'rewound' | 'trimmed' }

export interface StatusReply {
  readonly epoch: string | null
  readonly first: string | null
  readonly last: string | null
  readonly length: number
  readonly limit: number | null
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
export const acknowledgeChanges = script(generated.reliableAcknowledgeChanges, asInteger)
export const removeChangeGroup = script(generated.reliableRemoveChangeGroup, asFlag)
export const inspectChanges = script(generated.reliableInspectChanges, asInspected)
export const changeStatus = script(generated.reliableChangeStatus, asStatusReply)

function asInspected(reply: unknown): { examined: number; foreign: number } {
  const [examined, foreign] = asArray(reply)
  return { examined: asInteger(examined), foreign: asInteger(foreign) }
}

function asOpenReply(reply: unknown): OpenReply {
  const [outcome, after] = asArray(reply).map(asText)
  switch (outcome) {
    case 'ok':
      return { outcome, after: after ?? '' }
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
  const [epoch, first, last, length, limit, ...flat] = asArray(reply)
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
    groups,
  }
}

function orNull(reply: unknown): string | null {
  const text = asText(reply)
  return text === '' ? null : text
}
