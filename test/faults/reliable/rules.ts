import { FAR_AHEAD_MS, type Remains } from './contents.js'
import { endOf, type Change, type Delivery, type History } from './history.js'

/** The problem of a message, as text that follows its id; `undefined` if there is none. */
export type Rule = (history: History, id: string, remains: Remains) => string | undefined

/** The changes that give a message another time, and those that take it from its consumer. */
const MOVES: readonly Change['how'][] = ['move', 'postpone', 'replace']
const TAKES: readonly Change['how'][] = ['remove', 'replace']
const GONE = { cancel: 'cancelled', remove: 'removed' }
/** What another `add` within the window of the deduplication may say. */
const OUTCOMES = {
  keep: ['kept', 'duplicate'],
  replace: ['replaced', 'duplicate'],
  postpone: ['postponed', 'kept', 'duplicate'],
}

/** The promises of the reliable queue. Each is checked for every message at the end. */
export const RULES = {
  /** Each added message ends acknowledged or in the dead letters. */
  lost(history, id, { left, dead }) {
    if (!isExpected(history) || isFar(history)) return undefined
    if (left.has(id)) return 'is still there'
    const isOver = dead.some((letter) => letter.id === id) || mayBeDone(history)
    return isOver ? undefined : 'was added, and is neither acknowledged nor a dead letter'
  },

  /** Messages that are not due yet are there. */
  dropped(history, id, { left }) {
    return isExpected(history) && isFar(history) && !left.has(id) ? 'is due long after, and not there' : undefined
  },

  /** No consumer gets what another one still has. */
  overlapping({ deliveries, change }) {
    const [a, b] = pairs(deliveries).find(([a, b]) => b.from < endOf(a) && !mayBeTaken(change, a, b.from)) ?? []
    if (a === undefined || b === undefined) return undefined
    return `was claimed at ${b.from}, while another consumer had it from ${a.from} until ${endOf(a)}`
  },

  /** An answer that comes when the visibility is over, or another consumer has the message, is refused. */
  late({ deliveries }) {
    for (const [at, { until, unanswered, answers }] of deliveries.entries()) {
      const taken = answers.find(({ done }) => done === true)
      if (taken === undefined) continue
      const { said, sentAt } = taken
      if (unanswered === 0 && sentAt >= until) return `was ${said} at ${sentAt}, which counted after ${until}`
      const next = deliveries.slice(at + 1).find(({ from }) => from < sentAt)
      if (next !== undefined) return `was ${said} at ${sentAt}, which counted after the claim of ${next.from}`
    }
    return undefined
  },

  /** An acknowledged message does not come again, unless it was added again since because the outcome of an `add` was unknown. */
  again({ addedAt, anewAt = -Infinity, deliveries }, id, { dead }) {
    const dones = deliveries.flatMap(({ answers }, at) =>
      answers.flatMap(({ said, done, sentAt }) => (said === 'done' && done === true ? [{ at, sentAt }] : [])),
    )
    const first = dones.find(({ sentAt }) => sentAt >= Math.max(addedAt, anewAt))
    if (first === undefined) return undefined
    const next = deliveries.slice(first.at + 1).find(({ from }) => from >= first.sentAt)
    if (next !== undefined) return `was acknowledged at ${first.sentAt}, and delivered at ${next.from}`
    if (dead.some((letter) => letter.id === id)) return `was acknowledged at ${first.sentAt}, and is a dead letter`
    return undefined
  },

  /** Redis does not refuse the answer of the consumer that has the message. */
  denied({ deliveries, change }) {
    for (const delivery of deliveries) {
      const { until, answers } = delivery
      const [answer] = answers // after one that may have been carried out the next is refused
      const { heardAt = Infinity } = answer ?? {}
      if (answer?.done === false && heardAt < until && !mayBeTaken(change, delivery, heardAt))
        return `was ${answer.said} at ${answer.heardAt}, which did not count, and was its consumer's until ${until}`
    }
    return undefined
  },

  /** Nothing is delivered before its time. */
  early({ plan, change, deliveries }) {
    if (plan === undefined) return undefined
    for (const { from } of deliveries) {
      const isMoved = change !== undefined && MOVES.includes(change.how) && change.done !== false
      const moved = isMoved ? change.sentAt + change.delay : Infinity
      const isAfter = isMoved && change.done === true && from >= (change.heardAt ?? Infinity)
      const due = isAfter ? moved : Math.min(plan.at + plan.delay, moved)
      if (from < due) return `was due at ${due}, and delivered at ${from}`
    }
    return undefined
  },

  /**
   * A cancelled or removed message is gone until it is restored; a message that a consumer has is neither cancelled nor postponed. Who had a message that was
   * removed or replaced has it no more.
   */
  cancelled({ change, deliveries }, id, { left, dead }) {
    if (change?.done !== true) return undefined
    const { how, sentAt, heardAt = Infinity, restored } = change
    const isTaken = TAKES.includes(how)
    const held = deliveries.find((delivery) => delivery.from < sentAt && endOf(delivery) > heardAt)
    if (held !== undefined && !isTaken)
      return `was held from ${held.from} until ${endOf(held)}, and changed at ${sentAt}`
    const late = deliveries.find(
      ({ from, answers }) => from < sentAt && answers.some(({ done, sentAt: at }) => done === true && at > heardAt),
    )
    if (late !== undefined && isTaken)
      return `was ${how}d at ${heardAt}, and an answer for the claim of ${late.from} counted`
    if (how !== 'cancel' && how !== 'remove') return undefined
    // what was claimed in the same millisecond can have been claimed before it was removed
    const goneAt = how === 'remove' ? heardAt + 1 : heardAt
    const next = deliveries.find(({ from }) => from >= goneAt && from < (restored?.sentAt ?? Infinity))
    if (next !== undefined) return `was ${GONE[how]} at ${heardAt}, and delivered at ${next.from}`
    const isThere = left.has(id) || dead.some((letter) => letter.id === id)
    return isThere && restored === undefined ? `was ${GONE[how]} at ${heardAt}, and is there` : undefined
  },

  /** What a consumer has, `remove` finds. */
  unremoved({ change, deliveries }) {
    if (change?.how !== 'remove' || change.done !== false) return undefined
    const { sentAt, heardAt = Infinity } = change
    const held = deliveries.find((delivery) => delivery.from < sentAt && endOf(delivery) > heardAt)
    return held && `was held from ${held.from} until ${endOf(held)}, and not found for its removal at ${sentAt}`
  },

  /** A removed message that is restored is there again, and ends as any other. */
  unrestored(history, id, { left, dead }) {
    const { done, restored } = history.change ?? {}
    if (done !== true || restored?.found === undefined) return undefined
    if (!restored.found) return `was removed, and found there when it was restored at ${restored.sentAt}`
    const isOver = mayBeDone(history) || dead.some((letter) => letter.id === id) || left.has(id)
    return isOver ? undefined : `was restored at ${restored.sentAt}, and is neither acknowledged nor a dead letter`
  },

  /** Another `add` within the window of its deduplication adds nothing. */
  revived({ change }) {
    return change?.outcome === 'added' ? `was added anew at ${change.heardAt}, to ${change.how} it` : undefined
  },

  /** Another `add` changes what its answer says, and only that. */
  merged({ change, deliveries }) {
    if (change === undefined || !(change.how in OUTCOMES)) return undefined
    const { how, outcome, sentAt, heardAt = Infinity } = change
    if (outcome === undefined || outcome === 'added') return undefined
    if (!OUTCOMES[how as keyof typeof OUTCOMES].includes(outcome)) return `was ${outcome} by an add that ${how}s`
    const wrong = deliveries.find(({ from, revision }) =>
      outcome === 'replaced' ? from >= heardAt && revision === 0 : revision > 0,
    )
    if (wrong !== undefined) return `was ${outcome} at ${heardAt}, and had revision ${wrong.revision} at ${wrong.from}`
    const before = deliveries.filter(({ from }) => from <= heardAt)
    if (outcome === 'duplicate' && before.length === 0)
      return `was a duplicate at ${heardAt}, and never delivered before`
    if (how === 'postpone' && outcome === 'kept' && !before.some((delivery) => endOf(delivery) >= sentAt))
      return `was not postponed at ${heardAt}, though no consumer had it`
    return undefined
  },

  /** Each message that is there is found by its id. */
  unfound({ addedAt, change, asks, deliveries }) {
    const wrong = asks.find(
      ({ found, sentAt, heardAt = Infinity }) =>
        found === false &&
        sentAt >= addedAt &&
        (change === undefined || change.sentAt > heardAt) &&
        !deliveries.some(({ from }) => from <= heardAt),
    )
    return wrong && `was added at ${addedAt}, and not found at ${wrong.sentAt}`
  },

  /** Nothing comes that was not added. */
  stray({ state, deliveries }, id, { left, dead }) {
    if (state !== 'refused' && state !== 'unknown') return undefined
    const isThere = deliveries.length > 0 || left.has(id) || dead.some((letter) => letter.id === id)
    return isThere ? `was ${state === 'refused' ? 'refused' : 'never added'}, and came` : undefined
  },

  /** A dead letter has failed as often as its limit permits: once for each attempt. */
  buried({ plan }, id, { dead }) {
    const limit = plan?.limit ?? 0
    const wrong = dead.find(
      (letter) =>
        letter.id === id && (letter.attempts.length !== limit || letter.attempts.some((n, at) => n !== at + 1)),
    )
    return wrong && `is a dead letter after the attempts ${wrong.attempts.join()}, and had ${limit}`
  },

  /** Only a message that always fails becomes a dead letter: no fault here lasts for all attempts of another one. */
  spoilt({ plan }, id, { dead }) {
    return plan?.poison === false && dead.some((letter) => letter.id === id) ? 'is a dead letter' : undefined
  },
} satisfies Record<string, Rule>

export type Wrong = keyof typeof RULES

/** The deliveries of a message beyond its limit, without released ones and those that decision 0025 does not count. */
export function excessOf({ plan, addedAt, anewAt = -Infinity, deliveries }: History): number {
  if (plan === undefined) return 0
  const released = deliveries.filter(({ answers }) =>
    answers.some(({ said, done }) => said === 'released' && done !== false),
  )
  // taken beforehand, and over before the server learned that its handler began, or what became of it (the server refuses an answer that
  // comes too late): the next delivery is of the same attempt
  const overUnreported = deliveries.filter(
    (delivery, at) =>
      !released.includes(delivery) &&
      delivery.answers.every(({ done }) => done !== true) &&
      deliveries[at + 1]?.attempt === delivery.attempt,
  )
  const unbegun = overUnreported.filter(({ handled }) => handled === undefined)
  // its process died before the first heartbeat: from then on the message is a suspect, and every delivery counts until one has an answer
  const handledBefore = (delivery: Delivery): number =>
    deliveries
      .slice(0, deliveries.indexOf(delivery))
      .filter((each) => !overUnreported.includes(each) && each.answers.some(({ done }) => done !== false)).length
  const begun = new Set(overUnreported.filter(({ handled }) => handled !== undefined).map(handledBefore)).size
  // one more for each time that it may have been added again: it was over then, and it was unknown yet that it had been added
  const lives = deliveries.filter(
    ({ attempt }, at) => at === 0 || (attempt === 1 && (deliveries[at - 1]?.from ?? 0) <= Math.max(addedAt, anewAt)),
  ).length
  const beyond = Math.max(0, ...deliveries.map(({ attempt }) => attempt - plan.limit))
  return Math.max(beyond, deliveries.length - released.length - unbegun.length - begun - lives * plan.limit)
}

/** Added, and neither cancelled nor removed as far as anybody knows. */
function isExpected({ state, change }: History): boolean {
  return state === 'added' && ((change?.how !== 'cancel' && change?.how !== 'remove') || change.done === false)
}

function mayBeDone({ deliveries }: History): boolean {
  return deliveries.some(({ answers }) => answers.some(({ said, done }) => said === 'done' && done !== false))
}

/** Whether a change may have taken the message from the consumer of this delivery by then. */
function mayBeTaken(change: Change | undefined, { from }: Delivery, at: number): boolean {
  if (change === undefined || !TAKES.includes(change.how) || change.done === false) return false
  return from <= (change.heardAt ?? Infinity) && at >= change.sentAt
}

function isFar({ plan }: History): boolean {
  return plan !== undefined && plan.delay > FAR_AHEAD_MS
}

function pairs(deliveries: readonly Delivery[]): (readonly [Delivery, Delivery])[] {
  return deliveries.flatMap((a, at) => deliveries.slice(at + 1).map((b) => [a, b] as const))
}
