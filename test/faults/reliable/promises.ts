import { resultOf } from './consumers.js'
import type { Remains } from './contents.js'
import type { BatchHistory, History } from './history.js'
import { CROWD } from './job.js'

/** All that is known in the end. */
export interface Books {
  readonly histories: ReadonlyMap<string, History>
  readonly batches: ReadonlyMap<string, BatchHistory>
  readonly remains: Remains
  /** Whether no reply was lost, so that no message was added twice unnoticed. */
  readonly isExact: boolean
}

type Promised = (books: Books) => Iterable<string>

/** The promises of batches, waits and turns: each returns the violations as text. */
export const PROMISES = {
  /** A closed batch finishes, and its waiters learn of it. */
  *unfinished({ batches }) {
    for (const [name, { isClosed, late, finished }] of batches)
      if (isClosed && (late > 0 || finished === undefined)) yield `${name} did not finish in time`
  },

  /** What is closed stays closed. */
  *reopened({ batches }) {
    for (const [name, { reopened }] of batches) if (reopened > 0) yield `${name} was open after it was closed`
  },

  /** The counts of a batch agree with its messages. */
  *miscounted({ histories, batches, remains, isExact }) {
    for (const [name, { ids, finished }] of batches) {
      if (finished === undefined) continue
      const { state, total, pending, completed, dead } = finished
      const inState = (wanted: History['state']): number =>
        ids.filter((id) => histories.get(id)?.state === wanted).length
      const [added, perhaps] = [inState('added'), inState('trying')]
      const buried = remains.dead.filter(({ id }) => ids.includes(id)).length
      const isOver = state === 'finished' && pending === 0 && total >= added
      const isRight = total <= added + perhaps && completed + dead === total && dead === buried
      if (!isOver || (isExact && !isRight))
        yield `${name} has ${JSON.stringify(finished)}, of ${added} messages, perhaps ${perhaps} more, with ${buried} dead letters`
    }
  },

  /** A batch has one last message, however often it is delivered. */
  *unlike({ histories, batches }) {
    const lasts = lastsOf(histories)
    for (const [name, { finished }] of batches) {
      const count = lasts.get(name)?.length ?? 0
      if (finished !== undefined && count !== 1) yield `${name} has ${count} last messages`
      if (finished === undefined && count > 0) yield `${name} has not finished, and has a last message`
    }
  },

  /** The last message comes when all others have ended. */
  *premature({ histories, batches }) {
    const lasts = lastsOf(histories)
    for (const [name, { ids }] of batches) {
      const from = Math.min(...(lasts.get(name) ?? []).flatMap(({ deliveries }) => deliveries.map((one) => one.from)))
      const after = ids.find((id) =>
        histories
          .get(id)
          ?.deliveries.some(
            (delivery) =>
              delivery.from > from || delivery.answers.some(({ done, sentAt }) => done === true && sentAt > from),
          ),
      )
      if (after !== undefined) yield `the last message of ${name} came at ${from}, and ${after} ended later`
    }
  },

  /** A wait ends when its message has ended. */
  *hung({ histories }) {
    for (const [id, { wait }] of histories) {
      const outcomes = wait?.map(({ how }) => how)
      if (outcomes !== undefined && (outcomes.includes('late') || [undefined, 'open'].includes(outcomes.at(-1))))
        yield `the wait for ${id} ended ${outcomes.join() || 'never'}`
    }
  },

  /** And of the right one. */
  *missed({ histories, remains }) {
    for (const [id, { wait = [], change }] of histories) {
      const { how, result } = wait.at(-1) ?? {}
      const isCancelled = (change?.how === 'cancel' || change?.how === 'remove') && change.done !== false
      const isDead = remains.dead.some((letter) => letter.id === id)
      if (how === 'completed' && result !== resultOf(id)) yield `${id} has the result ${String(result)}`
      if (how === 'dead' && !isDead) yield `${id} is no dead letter`
      if (how === 'gone' && !isCancelled) yield `${id} is gone, and was not cancelled`
    }
  },

  /** At most one message of a group comes before the waiting message of another group. */
  *outrun({ histories }) {
    const crowd = [...histories.values()]
      .filter(({ plan }) => plan?.group === CROWD)
      .flatMap(({ deliveries }) => deliveries.map(({ from }) => from))
    for (const [id, { plan, deliveries }] of histories) {
      const [first] = deliveries
      if (plan?.group === undefined || plan.group === CROWD || first === undefined) continue
      const before = crowd.filter((from) => from > first.visibleAt && from < first.from).length
      if (before > 1) yield `${id} was visible at ${first.visibleAt}, and ${before} of the crowd came before it`
    }
  },
} satisfies Record<string, Promised>

export type Broken = keyof typeof PROMISES
export const BROKEN = Object.keys(PROMISES) as Broken[]

/** By batch. */
function lastsOf(histories: ReadonlyMap<string, History>): ReadonlyMap<string, History[]> {
  const lasts = new Map<string, History[]>()
  for (const history of histories.values()) {
    if (history.last === undefined) continue
    lasts.set(history.last, [...(lasts.get(history.last) ?? []), history])
  }
  return lasts
}
