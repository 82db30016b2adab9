import { deadLettersOf, queueOfDeadLetters, twinOf } from '../keys.js'
import type { Access } from './access.js'
import { checkClock } from './checks/clock.js'
import { checkDelivery } from './checks/delivery.js'
import { checkEntries } from './checks/entries.js'
import { checkKeys } from './checks/keys.js'
import { checkOrder } from './checks/order.js'
import { checkReliable } from './checks/reliable.js'
import { checkReplication } from './checks/replication.js'
import { checkRights } from './checks/rights.js'
import { checkStorage } from './checks/storage.js'
import { discoverQueues, type Discovered } from './discover.js'
import { beyond, findFamilies, MOST_QUEUES, namesOf } from './families.js'
import { aboutServer, type Finding } from './finding.js'
import { inspectQueue, type QueueState } from './inspect-queue.js'
import { inspectReliable, type ReliableState } from './inspect-reliable.js'
import { inspectServer, type ServerState } from './inspect-server.js'
import { repair, planOf, type Repaired, type Step } from './repair.js'
import { TimeLimit, UNLIMITED } from './time-limit.js'

/** Receives texts about the progress, to show them to the user. */
export type OnProgress = (what: string) => void

export interface Examination {
  readonly isCluster: boolean
  readonly servers: readonly ServerState[]
  readonly queues: readonly QueueState[]
  readonly reliable: readonly ReliableState[]
  readonly findings: readonly Finding[]
  /** The number of queues, with shards and dead-letter queues, that were found and not examined. */
  readonly left: number
}

const SERVER_CHECKS = [checkStorage, checkReplication, checkClock, checkRights]
const QUEUE_CHECKS = [checkKeys, checkDelivery, checkOrder, checkEntries]

/** How many reliable queues are examined at once: each takes a few short commands, most of whose time is the way to the server. */
const AT_ONCE = 8
/** With a limit a queue gets this part of the time at most, so that one of ten million entries does not take that of all others. */
const SHARE = 0.25

/**
 * Examines the servers and the named queues, or all queues; changes nothing.
 *
 * @param withinMs after this time it begins with no other queue. The search for queues takes at most half of it. The order of the queues is
 *   then random, so that each run leaves out other queues
 */
export async function examine(
  access: Access,
  given: readonly string[],
  onProgress: OnProgress,
  withinMs = Infinity,
  now?: () => number,
): Promise<Examination> {
  const limit = new TimeLimit(withinMs, now)
  const servers: ServerState[] = []
  for (const server of access.masters) {
    onProgress(`server ${server.address}`)
    servers.push(await inspectServer(server, access.isCluster))
  }
  const named = new Set(given)
  const found =
    named.size > 0
      ? await namedQueues(access, [...named])
      : await discoverQueues(access.masters, (n) => onProgress(`${n} queues found`), limit.part(0.5))
  const most = named.size > 0 ? Infinity : MOST_QUEUES
  const inTurn = <T>(all: readonly T[]): T[] => (withinMs === Infinity ? [...all] : shuffled(all))
  const names = { delayed: found.delayed, reliable: [...new Set(found.reliable)] }
  const delayed = inTurn(names.delayed).slice(0, most)
  const others = inTurn(names.reliable).slice(0, most)
  const queues: QueueState[] = []
  // both kinds get some of the time
  const ofDelayed = others.length === 0 ? limit : limit.part(0.5)
  for (const name of delayed) {
    if (ofDelayed.isOver) break
    const twin = twinOf(name)
    const rival = named.size === 0 || (twin !== null && named.has(twin)) ? twin : null
    const which = `queue ${queues.length + 1} of ${delayed.length}`
    const own = ofDelayed.part(1, withinMs * SHARE)
    const buckets = named.size > 0 ? 'unknown' : found.buckets.get(name)
    queues.push(await examineQueue(access, { name, rival, found: buckets }, servers, which, onProgress, own))
  }
  const reliable: ReliableState[] = []
  let next = 0
  const examineOthers = async (): Promise<void> => {
    for (;;) {
      const name = others[next]
      if (name === undefined || limit.isOver) return
      next++
      onProgress(`reliable queue ${name}`)
      const state = await inspectReliable(access.sender, name)
      if (state !== undefined) reliable.push(state)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, examineOthers))
  inOrderOf(names.delayed, queues)
  inOrderOf(names.reliable, reliable)
  const findings = [
    ...servers.flatMap((state) => SERVER_CHECKS.flatMap((check) => check(state))),
    ...queues.flatMap((state) => QUEUE_CHECKS.flatMap((check) => check(state))),
    ...reliable.flatMap(checkReliable),
    ...(found.isCut === true ? [searchWasCut(names)] : []),
  ]
  const tooLate = delayed.length - queues.length + others.length - next
  const left = tooLate + (named.size > 0 ? 0 : beyond(names.delayed) + beyond(names.reliable))
  return { isCluster: access.isCluster, servers, queues, reliable, findings, left }
}

function searchWasCut({ delayed, reliable }: Pick<Discovered, 'delayed' | 'reliable'>): Finding {
  const count = delayed.length + reliable.length
  const found = `The doctor stopped the search for queues at ${count.toLocaleString('en')}, because of the time limit.`
  return aboutServer('all servers', 'not-examined', 'info', found, { queues: count })
}

function shuffled<T>(all: readonly T[]): T[] {
  const mixed = [...all]
  for (let at = mixed.length - 1; at > 0; at--) {
    const other = Math.floor(Math.random() * (at + 1))
    const [one, two] = [mixed[at], mixed[other]] as [T, T]
    mixed[at] = two
    mixed[other] = one
  }
  return mixed
}

/** Sorts what was found of queues as their names are. */
function inOrderOf(names: readonly string[], states: { readonly name: string }[]): void {
  const places = new Map(names.map((name, place) => [name, place]))
  states.sort((a, b) => (places.get(a.name) ?? 0) - (places.get(b.name) ?? 0))
}

/** The named queues, each with its shards, if any; only the name if it has no keys. */
async function namedQueues(access: Access, names: readonly string[]): Promise<Discovered> {
  const families = await findFamilies(access, names)
  const isSharded = (name: string): boolean => {
    const own = families.delayed.filter(({ queue }) => queue === name)
    return own.length > 0 && own.every(({ shards }) => shards !== null)
  }
  const reliable = [...names, ...namesOf(families.reliable)]
  return {
    delayed: [...new Set([...names.filter((name) => !isSharded(name)), ...namesOf(families.delayed)])],
    reliable: reliable.flatMap((name) => [name, deadLettersOf(name)]),
    buckets: new Map(),
  }
}

/** The queues and the numbers of their stored repeats. Dead letters are a part of their queue, even if nothing else of it is left. */
export function reliableQueues(states: readonly ReliableState[]): Map<string, number> {
  const queues = new Map<string, number>()
  for (const { name, repeats } of states) {
    const queue = queueOfDeadLetters(name) ?? name
    queues.set(queue, (queues.get(queue) ?? 0) + repeats.stored)
  }
  return queues
}

/** The plan of `--fix`, and the function that carries it out and examines the changed queues again. */
export function treatment(
  access: Access,
  before: Examination,
  onProgress: OnProgress,
): { plan: Step[]; carryOut: () => Promise<{ fixed: Repaired[]; left: Finding[] }> } {
  const plan = planOf(before.findings)
  const carryOut = async () => {
    const fixed: Repaired[] = []
    const touched = new Set(plan.map(({ queue }) => queue))
    const left = before.findings.filter(({ queue }) => queue === null || !touched.has(queue))
    for (const state of before.queues.filter(({ name }) => touched.has(name))) {
      onProgress(`repairing ${state.name}`)
      const steps = plan.filter(({ queue }) => queue === state.name)
      fixed.push(...(await repair(access.sender, state, steps)))
      const after = await examineQueue(access, state, before.servers, 'recheck', onProgress, UNLIMITED)
      left.push(...QUEUE_CHECKS.flatMap((check) => check(after)))
      left.push(...before.reliable.filter(({ name }) => name === state.name).flatMap(checkReliable))
    }
    return { fixed, left }
  }
  return { plan, carryOut }
}

async function examineQueue(
  access: Access,
  queue: Pick<QueueState, 'name' | 'rival' | 'found'>,
  servers: readonly ServerState[],
  which: string,
  onProgress: OnProgress,
  limit: TimeLimit,
): Promise<QueueState> {
  let entries = 0
  const onEntries = (more: number): void => {
    entries += more
    onProgress(`${which}, ${queue.name}: ${entries.toLocaleString('en')} entries`)
  }
  onEntries(0)
  return inspectQueue(access, queue, servers[0]?.acl?.user, onEntries, limit)
}
