import type { Remains } from './contents.js'
import { endOf, type BatchHistory, type Delivery, type History } from './history.js'
import { EVERY_MS, tickOf } from './job.js'
import { BROKEN, PROMISES, type Broken } from './promises.js'
import { RULES, excessOf, type Rule, type Wrong } from './rules.js'

/** What is counted over several messages. */
const COUNTED = ['excess', 'crowded', 'rushed', 'unused', 'skipped', 'doubled'] as const
type Counted = (typeof COUNTED)[number]

/** The number of messages of each kind that a fault may affect without a defect of the library. */
export type Allowance = { readonly [K in Wrong | Broken | Counted]?: number } & {
  /** Checked only where a scenario says so: after a data loss of Redis the order can differ. */
  readonly disordered?: number
  /** The additional milliseconds that messages may wait because more processes run. */
  readonly laterMs?: number
}

type Wrongs = { readonly [K in Wrong | Broken]: number }

export interface Findings extends Wrongs {
  readonly added: number
  readonly refused: number
  /** The messages for which it is unknown whether they were added, or whether a replica has them. */
  readonly unanswered: number
  readonly changed: number
  readonly delivered: number
  readonly acknowledged: number
  readonly dead: number
  /** The answers that were refused because they came too late, and answers with a lost reply that were sent after the visibility had ended. */
  readonly tooLate: number
  /** Handlings that were not answered for: their process was killed, or its lease was over. */
  readonly abandoned: number
  /** Batches that have finished, and waits for the end of a message that have ended. */
  readonly batches: number
  readonly waited: number
  /** The most deliveries that a message had beyond its limit. */
  readonly excess: number
  /** The number of deliveries that began while their queue or their group had its most messages in flight. */
  readonly crowded: number
  /** The number of deliveries that began while their queue or their group had had its most deliveries of the period. */
  readonly rushed: number
  /** The most deliveries of the queue in any period of its rate. */
  readonly fullest: number
  /** The number of slots of the queue that were never all in use after the fault, as if they had leaked. */
  readonly unused: number
  /** The number of undelivered ticks of schedules between delivered ones. */
  readonly skipped: number
  /** The number of ticks from two shards: a moving schedule is in both for a moment. */
  readonly doubled: number
  /** The number of messages that were visible while a message of a lower priority was claimed in their queue. */
  readonly disordered: number
  /** The milliseconds from when a message became visible, or from the repair, until a consumer got it. */
  readonly latestMs: number
  readonly medianMs: number
  /** The first of each wrong, in words. */
  readonly examples: readonly string[]
}

/** The limits of a queue over all processes. */
export interface Limits {
  /** The most messages that consumers may have at once, of a queue and of one group. */
  readonly concurrency?: number
  readonly groupConcurrency?: number
  /** The most deliveries in any period. */
  readonly rate?: Rate
  readonly groupRate?: Rate
}

interface Rate {
  readonly max: number
  readonly perMs: number
}

export interface More {
  readonly limits?: Limits | undefined
  /** When the fault was over. Servers can need seconds more until they are healed, and messages that were piled up are handled meanwhile. */
  readonly overAt?: number
  readonly batches?: ReadonlyMap<string, BatchHistory>
  /** No reply was lost. */
  readonly isExact?: boolean
}

export const WRONGS = Object.keys(RULES) as Wrong[]
const rules: Readonly<Record<Wrong, Rule>> = RULES

/** Judges all messages. */
export function findingsOf(
  histories: ReadonlyMap<string, History>,
  healedAt: number,
  remains: Remains,
  { limits = {}, overAt = healedAt, batches = new Map(), isExact = false }: More = {},
): Findings {
  const wrongs = Object.fromEntries(WRONGS.map((wrong) => [wrong, 0])) as Record<Wrong, number>
  const examples: string[] = []
  let excess = 0
  // what is in no history is a stranger's
  const strangers = [...remains.left, ...remains.dead.map(({ id }) => id)].filter((id) => !histories.has(id))
  const unknown: History = { state: 'unknown', addedAt: Infinity, asks: [], deliveries: [] }
  const doubled = [...histories].filter(([id, history]) => tickOf(id) !== undefined && inParts(history).length > 1)
  if (doubled[0] !== undefined) examples.push(`doubled: ${doubled[0][0]} ${JSON.stringify(doubled[0][1])}`)
  const known = [...histories].flatMap(([id, history]) =>
    tickOf(id) === undefined ? [[id, history] as const] : inParts(history).map((part) => [id, part] as const),
  )
  const all = [...known, ...strangers.map((id) => [id, unknown] as const)]
  for (const [id, history] of all) {
    for (const wrong of WRONGS) {
      const what = rules[wrong](history, id, remains)
      if (what !== undefined && wrongs[wrong]++ === 0) examples.push(`${wrong}: ${id} ${what}`)
    }
    if (excessOf(history) > 0 && excess++ === 0) examples.push(`excess: ${id} ${JSON.stringify(history)}`)
  }
  const broken = Object.fromEntries(
    BROKEN.map((kind) => {
      const found = [...PROMISES[kind]({ histories, batches, remains, isExact })]
      if (found[0] !== undefined) examples.push(`${kind}: ${found[0]}`)
      return [kind, found.length]
    }),
  ) as Record<Broken, number>
  const byQueue = claimsBy(histories, (_, { part }) => part ?? 'the queue')
  const byGroup = claimsBy(histories, ({ plan }) => plan?.group)
  const crowd = [...crowdedOf(byQueue, limits.concurrency), ...crowdedOf(byGroup, limits.groupConcurrency)]
  if (crowd[0] !== undefined) examples.push(`crowded: ${crowd[0]}`)
  const rush = [...rushedOf(byQueue, limits.rate), ...rushedOf(byGroup, limits.groupRate)]
  if (rush[0] !== undefined) examples.push(`rushed: ${rush[0]}`)
  const skips = skippedOf(histories)
  if (skips[0] !== undefined) examples.push(`skipped: ${skips[0]}`)
  const disorder = disorderOf(histories)
  if (disorder[0] !== undefined) examples.push(`disordered: ${disorder[0]}`)
  const messages = [...histories.values()]
  const deliveries = messages.flatMap((history) => history.deliveries)
  const answers = deliveries.flatMap((delivery) => delivery.answers)
  const inState = (state: History['state']): number => messages.filter((message) => message.state === state).length
  const lateness = deliveries
    .filter(({ from }) => from >= healedAt)
    .map(({ from, visibleAt }) => from - Math.max(visibleAt, healedAt))
    .sort((a, b) => a - b)
  return {
    ...wrongs,
    ...broken,
    added: inState('added'),
    refused: inState('refused'),
    unanswered: inState('trying'),
    changed: messages.filter(({ change }) => change?.done === true).length,
    delivered: deliveries.length,
    acknowledged: answers.filter(({ said, done }) => said === 'done' && done === true).length,
    dead: remains.dead.length,
    tooLate: deliveries.flatMap(({ until, answers }) =>
      answers.filter(({ done, sentAt }) => done === false || (done === undefined && sentAt > until)),
    ).length,
    abandoned: deliveries.filter(({ handled, answers }) => handled !== undefined && answers.length === 0).length,
    batches: [...batches.values()].filter(({ finished }) => finished !== undefined).length,
    waited: messages.filter(({ wait }) => wait?.at(-1)?.how === 'completed').length,
    crowded: crowd.length,
    rushed: rush.length,
    fullest: fullestOf(byQueue, limits.rate),
    unused: unusedOf(byQueue, limits.concurrency, overAt),
    skipped: skips.length,
    doubled: doubled.length,
    disordered: disorder.length,
    excess: Math.max(0, ...messages.map(excessOf)),
    latestMs: lateness.at(-1) ?? 0,
    medianMs: lateness[lateness.length >> 1] ?? 0,
    examples,
  }
}

interface Claim extends Delivery {
  readonly id: string
}

type Claims = ReadonlyMap<string, readonly Claim[]>

/** The deliveries by what has a limit of its own, in the order of their claims. */
function claimsBy(
  histories: ReadonlyMap<string, History>,
  placeOf: (history: History, delivery: Delivery) => string | undefined,
): Claims {
  const claims = new Map<string, Claim[]>()
  for (const [id, history] of histories)
    for (const delivery of history.deliveries) {
      const place = placeOf(history, delivery)
      if (place === undefined) continue
      const own = claims.get(place) ?? []
      claims.set(place, own)
      own.push({ ...delivery, id })
    }
  for (const own of claims.values()) own.sort((a, b) => a.from - b.from)
  return claims
}

interface Step {
  readonly at: number
  readonly change: 1 | -1
  readonly id: string
  /** The number of messages in flight after it. */
  readonly now: number
}

/** Each begin and end of a claim. */
function stepsOf(claims: readonly Claim[]): Step[] {
  const steps = claims.flatMap((claim) => [
    { at: claim.from, change: 1, id: claim.id } as const,
    { at: Math.max(claim.from, endOf(claim)), change: -1, id: claim.id } as const,
  ])
  let now = 0
  // what ends at the moment at which another begins has ended before
  return steps
    .sort((a, b) => a.at - b.at || a.change - b.change)
    .map((step) => ({ ...step, now: (now += step.change) }))
}

/** The deliveries that began while consumers had as many messages of their queue or group as the limit is. */
function crowdedOf(claims: Claims, limit = Infinity): string[] {
  return Array.from(claims, ([place, own]) =>
    stepsOf(own)
      .filter(({ change, now }) => change > 0 && now > limit)
      .map(({ id, at, now }) => `${id} was claimed at ${at}, while ${place} had ${now - 1}`),
  ).flat()
}

/** The slots that were free whenever a message was claimed after the fault: what leaks a slot never uses it again. */
function unusedOf(claims: Claims, limit: number | undefined, overAt: number): number {
  if (limit === undefined) return 0
  const peaks = Array.from(claims.values(), (own) =>
    Math.max(0, ...stepsOf(own).flatMap(({ at, now }) => (at >= overAt ? [now] : []))),
  )
  return Math.max(0, ...peaks.map((peak) => limit - peak))
}

/** The deliveries that began less than the period after the one that is as many before as the limit is: a claim counts for the whole period. */
function rushedOf(claims: Claims, rate: Rate | undefined): string[] {
  if (rate === undefined) return []
  return Array.from(claims, ([place, own]) =>
    own.flatMap(({ id, from }, at) => {
      const first = own[at - rate.max]
      if (first === undefined || from - first.from >= rate.perMs) return []
      return [`${id} was claimed at ${from}, and ${place} had had ${rate.max} since ${first.from}`]
    }),
  ).flat()
}

function fullestOf(claims: Claims, rate: Rate | undefined): number {
  if (rate === undefined) return 0
  const counts = Array.from(claims.values(), (own) => {
    let first = 0
    return own.map(({ from }, at) => {
      while (from - (own[first]?.from ?? from) >= rate.perMs) first++
      return at - first + 1
    })
  }).flat()
  return counts.reduce((most, count) => Math.max(most, count), 0)
}

/** A tick is a message of its own in each shard that made it. */
function inParts(history: History): History[] {
  const parts = new Set(history.deliveries.map(({ part }) => part))
  if (parts.size < 2) return [history]
  return Array.from(parts, (part) => ({
    ...history,
    deliveries: history.deliveries.filter((delivery) => delivery.part === part),
  }))
}

/** The messages that waited, visible, while their queue handed out another one of a lower priority. */
function disorderOf(histories: ReadonlyMap<string, History>): string[] {
  interface Claimed extends Delivery {
    readonly id: string
    readonly priority: number
    readonly isFirst: boolean
    readonly waitsFrom: number
  }
  const byPart = new Map<string | undefined, Claimed[]>()
  for (const [id, history] of histories) {
    const { plan, deliveries } = history
    const priority = plan?.priority
    if (priority === undefined) continue
    deliveries.forEach((delivery, at) => {
      const own = byPart.get(delivery.part) ?? []
      byPart.set(delivery.part, own)
      const waitsFrom = Math.max(delivery.visibleAt, inPlaceFrom(history))
      own.push({ ...delivery, id, priority, isFirst: at === 0, waitsFrom })
    })
  }
  const found: string[] = []
  for (const own of byPart.values())
    for (const { id, priority, waitsFrom, from } of own.filter(({ isFirst }) => isFirst)) {
      // both times are whole milliseconds
      const before = own.find((other) => other.priority < priority && other.from > waitsFrom + 1 && other.from < from)
      if (before !== undefined)
        found.push(
          `${id} of priority ${priority} was visible at ${waitsFrom} and claimed at ${from}, ${before.id} of ${before.priority} at ${before.from}: ${JSON.stringify([histories.get(id), histories.get(before.id)])}`,
        )
    }
  return found
}

/**
 * From when on a message is surely in its place: a removed message that is restored has the time at which it was visible before, and a call
 * that is repeated after a lost reply is later than the client knows.
 */
function inPlaceFrom({ change, deliveries }: History): number {
  const claimedAt = deliveries[0]?.from ?? Infinity
  if (change === undefined || change.sentAt > claimedAt) return 0
  const { heardAt = Infinity, restored = { heardAt } } = change
  return Math.max(heardAt, restored.heardAt ?? Infinity)
}

/** The ticks that no consumer got, though the same schedule had earlier and later ones. */
function skippedOf(histories: ReadonlyMap<string, History>): string[] {
  const bySchedule = new Map<string, number[]>()
  for (const [id, { deliveries }] of histories) {
    const tick = tickOf(id)
    if (tick === undefined || deliveries.length === 0) continue
    const ticks = bySchedule.get(tick.schedule) ?? []
    bySchedule.set(tick.schedule, ticks)
    ticks.push(tick.at)
  }
  const skipped: string[] = []
  for (const [schedule, ticks] of bySchedule) {
    ticks.sort((a, b) => a - b)
    for (const [n, tick] of ticks.entries())
      for (let at = (ticks[n - 1] ?? tick) + EVERY_MS; at < tick; at += EVERY_MS) skipped.push(`${schedule}@${at}`)
  }
  return skipped
}

/** The problems in a result. */
export function problemsOf(findings: Findings, allowed: Allowance, latenessMs: number): string[] {
  const problems: string[] = []
  for (const kind of [...WRONGS, ...BROKEN, ...COUNTED]) {
    const limit = allowed[kind] ?? 0
    if (findings[kind] > limit) problems.push(`${findings[kind]} ${kind}, at most ${limit} may be`)
  }
  const { disordered = Infinity } = allowed
  if (findings.disordered > disordered) problems.push(`${findings.disordered} disordered, at most ${disordered} may be`)
  const latest = latenessMs + (allowed.laterMs ?? 0)
  if (findings.latestMs > latest)
    problems.push(`${findings.latestMs} ms late after the healing, at most ${latest} may be`)
  if (findings.acknowledged === 0) problems.push('nothing was acknowledged')
  if (findings.dead === 0) problems.push('there is no dead letter')
  return problems.length === 0 ? [] : [...problems, ...findings.examples]
}

/** The numbers that the report names only if they are not 0. */
const NAMES: readonly string[] = [
  ...WRONGS,
  ...BROKEN,
  'batches',
  'waited',
  'rushed',
  'fullest',
  'unused',
  'doubled',
  'disordered',
]

/** One line for people. */
export function lineOf(findings: Findings): string {
  const { examples, latestMs, medianMs, ...rest } = findings
  const counts = Object.entries(rest).filter(([, count]) => typeof count === 'number')
  const usual = counts.filter(([name, count]) => count > 0 || !NAMES.includes(name))
  const text = usual.map(([name, count]) => `${name} ${count}`).join(', ')
  return `${text}; after the healing late by ${medianMs} ms (median), ${latestMs} ms (at most)`
}
