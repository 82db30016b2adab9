import * as generated from './scripts/generated.js'
import { asArray, asBytes, asFlag, asInteger, asText, asTime } from './replies.js'
import { script } from './script.js'

/** The counts of a group. */
export interface GroupCountReply {
  readonly visible: number
  readonly delayed: number
  readonly inFlight: number
  /** The deliveries that its rate counts now. */
  readonly delivered: number
  readonly paused: boolean
}

export interface GroupNamesReply {
  /** The cursor of the next page; empty after the last. */
  readonly cursor: Buffer
  readonly names: readonly Buffer[]
}

/** The claims that groups count, and the most there can be. */
export interface ClaimsReply {
  readonly counted: number
  readonly held: number
  /** The group with the most claims. */
  readonly group: string
  readonly most: number
}

/** The numbers of messages held back by a limit or a pause, and of groups and batches. */
export interface TotalsReply {
  readonly visible: number
  readonly paused: number
  readonly limited: number
  /** Messages in flight, including those whose visibility timeout has ended until they come back. */
  readonly inFlight: number
  readonly pausedTasks: number
  /** Completed messages that the queue keeps. */
  readonly completed: number
  readonly addPaused: boolean
  readonly pollPaused: boolean
  readonly groups: { readonly ready: number; readonly later: number; readonly paused: number }
  readonly batches: { readonly unfinished: number; readonly finished: number }
  /** When the rate of the queue admits the next claim, epoch milliseconds; `null` for now. */
  readonly opensAt: number | null
}

/** The scripts about groups of messages with the decoders of their replies. */
export const pauseGroup = script(generated.reliablePauseGroup, asFlag)
export const pauseTask = script(generated.reliablePauseTask, asInteger)
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
  const [unfinished = 0, finished = 0, inFlight = 0, pausedTasks = 0, completed = 0, add = 0, poll = 0] = rest
  return {
    visible,
    paused,
    limited,
    inFlight,
    pausedTasks,
    completed,
    addPaused: add === 1,
    pollPaused: poll === 1,
    groups: { ready, later, paused: pausedGroups },
    batches: { unfinished, finished },
    opensAt: asTime(list.at(-1)),
  }
}

/** `null` if the script did not examine the groups. */
function asClaims(reply: unknown): ClaimsReply | null {
  const [counted, held, group, most] = asArray(reply)
  const sum = asInteger(counted)
  return sum < 0 ? null : { counted: sum, held: asInteger(held), group: asText(group), most: asInteger(most) }
}
