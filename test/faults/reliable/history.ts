import type { Added, BatchCounts } from '../../../src/index.js'
import { LIMIT, tickOf, type Entry, type Plan, type Said, type Waited } from './job.js'

/** A consumer's answer to a delivery. */
export interface Answer {
  readonly said: Said
  readonly sentAt: number
  /** Whether the change was carried out, and when the answer came; neither without an answer. */
  done?: boolean
  heardAt?: number
}

/** One delivery of a message, as its consumer saw it. Times are Redis's. */
export interface Delivery {
  readonly attempt: number
  /** The queue, or the shard, that it came from. */
  readonly part?: string | undefined
  /** That of its payload: 0 until it was added again. */
  readonly revision: number
  readonly visibleAt: number
  readonly from: number
  /** The end of the visibility timeout as the consumer knows it; later while an extension is unanswered. */
  until: number
  unanswered: number
  /** When a handler began, and whether it takes long. */
  handled?: { readonly long: boolean; readonly at: number }
  readonly answers: Answer[]
}

/** A change of a message; those from `keep` on are another `add` under its id. */
export interface Change {
  readonly how: 'cancel' | 'move' | 'remove' | 'keep' | 'replace' | 'postpone'
  readonly delay: number
  readonly sentAt: number
  /** Of another `add`: whether it has replaced or postponed the message; unknown also where it has added the message anew. */
  done?: boolean
  heardAt?: number
  outcome?: Added['outcome']
  /** What was removed is put back. */
  restored?: Ask
}

/** A wait for the end of a message: the outcome of each attempt. */
export type Wait = { readonly how: Waited; readonly result: unknown }[]

/** A search of the message by its id, or another call with its answer. */
export interface Ask {
  readonly sentAt: number
  found?: boolean
  heardAt?: number
}

/** The record of one message. */
export interface History {
  /** `trying`: it is unknown whether it was added; `unknown`: it was never added. */
  state: 'unknown' | 'trying' | 'added' | 'refused'
  plan?: Plan
  /** When the state became known: until then the message may have been added again. */
  addedAt: number
  /** Until then another `add` may have begun the message anew; `Infinity` while that is unknown. */
  anewAt?: number | undefined
  change?: Change
  /** The batch whose last message it is. */
  last?: string
  wait?: Wait
  asks: Ask[]
  /** The deliveries in the order of their claims. */
  deliveries: Delivery[]
}

/** All that is known of one batch. */
export interface BatchHistory {
  readonly ids: readonly string[]
  isClosed: boolean
  late: number
  reopened: number
  finished?: BatchCounts
}

/** The batches of all processes. */
export function batchesOf(entries: Iterable<Entry>): ReadonlyMap<string, BatchHistory> {
  const batches = new Map<string, BatchHistory>()
  for (const entry of entries) {
    if (entry[0] !== 'batch') continue
    const [, name, what, about] = entry
    if (what === 'opened') batches.set(name, { ids: about, isClosed: false, late: 0, reopened: 0 })
    const batch = batches.get(name)
    if (batch === undefined) throw new Error(`${name} was ${what}, and never opened`)
    if (what === 'closed') batch.isClosed = true
    if (what === 'late') batch.late++
    if (what === 'reopened') batch.reopened++
    if (what === 'finished') batch.finished = about
  }
  return batches
}

/** Puts together what all processes wrote, in whatever order their ledgers are read. */
export function historiesOf(entries: Iterable<Entry>): ReadonlyMap<string, History> {
  const histories = new Map<string, History>()
  const deliveries = new Map<string, Delivery>()
  for (const entry of entries) {
    const [kind, id] = entry
    if (kind === 'batch') continue
    let history = histories.get(id)
    if (history === undefined) histories.set(id, (history = begun(id)))
    if (kind === 'got') {
      const [, , lease, visibleAt, from, until, part, revision = 0] = entry
      const attempt = Number.parseInt(lease, 10)
      const delivery = { attempt, part, revision, visibleAt, from, until, unanswered: 0, answers: [] }
      deliveries.set(`${id} ${lease}`, delivery)
      history.deliveries.push(delivery)
    } else if (isOfDelivery(entry)) {
      const delivery = deliveries.get(`${id} ${entry[2]}`)
      if (delivery === undefined) throw new Error(`${kind} of a delivery of ${id} that never came`)
      noteDelivery(delivery, entry)
    } else noteMessage(history, entry)
  }
  for (const history of histories.values()) history.deliveries.sort((a, b) => a.from - b.from || a.attempt - b.attempt)
  return histories
}

/** The record of a message without any report yet; a message of a schedule comes without an `add`. */
function begun(id: string): History {
  const tick = tickOf(id)
  if (tick === undefined) return { state: 'unknown', addedAt: Infinity, asks: [], deliveries: [] }
  const plan = { poison: false, at: tick.at, delay: 0, limit: LIMIT }
  return { state: 'added', plan, addedAt: 0, asks: [], deliveries: [] }
}

/** When the message stopped being this consumer's: the consumer gave it back, or its visibility ended. */
export function endOf({ until, answers }: Delivery): number {
  const left = answers.find(({ done }) => done !== false)
  return left === undefined ? until : Math.min(until, left.sentAt)
}

type OfDelivery = Extract<
  Entry,
  readonly ['handling' | 'extending' | 'extended' | 'answering' | 'answer', ...unknown[]]
>
type OfMessage = Exclude<Entry, OfDelivery | readonly ['got' | 'batch', ...unknown[]]>

function isOfDelivery(entry: Exclude<Entry, readonly ['got' | 'batch', ...unknown[]]>): entry is OfDelivery {
  return ['handling', 'extending', 'extended', 'answering', 'answer'].includes(entry[0])
}

function noteDelivery(delivery: Delivery, entry: OfDelivery): void {
  switch (entry[0]) {
    case 'handling':
      delivery.handled = { long: entry[3], at: entry[4] }
      break
    case 'extending':
      delivery.unanswered++
      break
    case 'extended':
      delivery.unanswered--
      delivery.until = Math.max(delivery.until, entry[3] ?? 0)
      break
    case 'answering':
      delivery.answers.push({ said: entry[3], sentAt: entry[4] })
      break
    case 'answer': {
      const answer = delivery.answers.at(-1)
      if (answer !== undefined) [answer.done, answer.heardAt] = [entry[3], entry[4]]
    }
  }
}

function noteMessage(history: History, entry: OfMessage): void {
  switch (entry[0]) {
    case 'try':
      history.state = 'trying'
      history.plan = entry[2]
      break
    case 'ok':
      history.state = 'added'
      history.addedAt = entry[2]
      break
    case 'no':
      history.state = 'refused'
      break
    case 'last':
      Object.assign(history, { state: 'added', addedAt: 0, last: entry[2] })
      break
    case 'waiting':
      history.wait = []
      break
    case 'waited':
      history.wait?.push({ how: entry[2], result: entry[3] })
      break
    case 'changing':
      history.change = { how: entry[2], delay: entry[3], sentAt: entry[4] }
      break
    case 'changed':
      if (history.change !== undefined) [history.change.done, history.change.heardAt] = [entry[2], entry[3]]
      break
    case 'restoring':
      if (history.change !== undefined) history.change.restored = { sentAt: entry[2] }
      break
    case 'restored':
      if (history.change?.restored !== undefined)
        [history.change.restored.found, history.change.restored.heardAt] = [entry[2], entry[3]]
      break
    case 'adding again':
      history.change = { how: entry[2], delay: entry[3], sentAt: entry[4] }
      history.anewAt = Infinity
      break
    case 'added again':
      if (history.change !== undefined) noteAgain(history, history.change, entry[2], entry[3])
      break
    case 'asking':
      history.asks.push({ sentAt: entry[2] })
      break
    case 'asked': {
      const ask = history.asks.at(-1)
      if (ask !== undefined) [ask.found, ask.heardAt] = [entry[2], entry[3]]
    }
  }
}

function noteAgain(history: History, change: Change, outcome: Added['outcome'], heardAt: number): void {
  Object.assign(change, { outcome, heardAt })
  if (outcome !== 'added') change.done = outcome === 'replaced' || outcome === 'postponed'
  history.anewAt = outcome === 'added' || outcome === 'replaced' ? heardAt : undefined
}
