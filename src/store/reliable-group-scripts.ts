import * as generated from './scripts/generated.js'
import { asArray, asBytes, asFlag, asInteger, asText, asTime } from './replies.js'
import { script } from './script.js'

/** How many messages a group has. */
export interface GroupCountReply {
  readonly visible: number
  readonly delayed: number
  readonly inFlight: number
  /** Deliveries that its rate counts now. */
  readonly delivered: number
  readonly paused: boolean
}

export interface GroupNamesReply {
  /** Of the next page; empty after the last. */
  readonly cursor: Buffer
  readonly names: readonly Buffer[]
}

/** The claims of groups by their counts, and how many there are at most. */
export interface ClaimsReply {
  readonly counted: number
  readonly held: number
  /** The group with most of them. */
  readonly group: string
  readonly most: number
}

/** What waits for a limit or a pause, and the groups and batches, in numbers. */
export interface TotalsReply {
  readonly visible: number
  readonly paused: number
  readonly limited: number
  /** Also those whose visibility has ended, until they come back. */
  readonly inFlight: number
  readonly groups: { readonly ready: number; readonly later: number; readonly paused: number }
  readonly batches: { readonly unfinished: number; readonly finished: number }
  /** When the rate of the queue admits the next claim, epoch milliseconds; `null` for now. */
  readonly opensAt: number | null
}

/** The scripts about groups of messages with the decoders of their replies. */
export const pauseGroup = script(generated.reliablePauseGroup, asFlag)
export const refreshGroups = script(generated.reliableRefreshGroups, asText)
export const countGroups = script(generated.reliableCountGroups, asCounts)
export const listGroups = script(generated.reliableListGroups, asNames)
export const lostClaims = script(generated.reliableLostClaims, asClaims)
export const totals = script(generated.reliableTotals, asTotals)

const FIGURES = 5

function asCounts(reply: unknown): GroupCountReply[] {
  const flat = asArray(reply).map(asInteger)
  return Array.from({ length: Math.floor(flat.length / FIGURES) }, (_, n) => {
    const [visible = 0, delayed = 0, inFlight = 0, delivered = 0, paused = 0] = flat.slice(n * FIGURES)
    return { visible, delayed, inFlight, delivered, paused: paused === 1 }
  })
}

function asNames(reply: unknown): GroupNamesReply {
  const [cursor, ...names] = asArray(reply)
  return { cursor: asBytes(cursor), names: names.map(asBytes) }
}

function asTotals(reply: unknown): TotalsReply {
  const list = asArray(reply)
  const [visible = 0, paused = 0, limited = 0, ready = 0, later = 0, pausedGroups = 0, ...rest] = list
    .slice(0, -1)
    .map(asInteger)
  const [unfinished = 0, finished = 0, inFlight = 0] = rest
  return {
    visible,
    paused,
    limited,
    inFlight,
    groups: { ready, later, paused: pausedGroups },
    batches: { unfinished, finished },
    opensAt: asTime(list.at(-1)),
  }
}

/** `null` where nothing was looked at. */
function asClaims(reply: unknown): ClaimsReply | null {
  const [counted, held, group, most] = asArray(reply)
  const sum = asInteger(counted)
  return sum < 0 ? null : { counted: sum, held: asInteger(held), group: asText(group), most: asInteger(most) }
}
