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
import type { Finding } from './finding.js'
import { inspectQueue, type QueueState } from './inspect-queue.js'
import { inspectReliable, type ReliableState } from './inspect-reliable.js'
import { inspectServer, type ServerState } from './inspect-server.js'
import { repair, planOf, type Repaired, type Step } from './repair.js'

/** Receives texts about the progress, to show them to the user. */
export type OnProgress = (what: string) => void

export interface Examination {
  readonly isCluster: boolean
  readonly servers: readonly ServerState[]
  readonly queues: readonly QueueState[]
  readonly reliable: readonly ReliableState[]
  readonly findings: readonly Finding[]
  /** How many queues, with shards and queues of dead letters, were found and not examined. */
  readonly left: number
}

const SERVER_CHECKS = [checkStorage, checkReplication, checkClock, checkRights]
const QUEUE_CHECKS = [checkKeys, checkDelivery, checkOrder, checkEntries]

/** Examines the servers and the named queues, or all queues; changes nothing. */
export async function examine(access: Access, names: readonly string[], onProgress: OnProgress): Promise<Examination> {
  const servers: ServerState[] = []
  for (const server of access.masters) {
    onProgress(`server ${server.address}`)
    servers.push(await inspectServer(server, access.isCluster))
  }
  const named = new Set(names)
  const found =
    named.size > 0
      ? await namedQueues(access, [...named])
      : await discoverQueues(access.masters, (n) => onProgress(`${n} queues found`))
  const all = found.delayed.slice(0, named.size > 0 ? Infinity : MOST_QUEUES)
  const others = [...new Set(found.reliable)]
  const queues: QueueState[] = []
  for (const [index, name] of all.entries()) {
    const twin = twinOf(name)
    const rival = named.size === 0 || (twin !== null && named.has(twin)) ? twin : null
    queues.push(await examineQueue(access, { name, rival }, servers, `queue ${index + 1} of ${all.length}`, onProgress))
  }
  const reliable: ReliableState[] = []
  for (const name of others.slice(0, named.size > 0 ? Infinity : MOST_QUEUES)) {
    onProgress(`reliable queue ${name}`)
    const state = await inspectReliable(access.sender, name)
    if (state !== undefined) reliable.push(state)
  }
  const findings = [
    ...servers.flatMap((state) => SERVER_CHECKS.flatMap((check) => check(state))),
    ...queues.flatMap((state) => QUEUE_CHECKS.flatMap((check) => check(state))),
    ...reliable.flatMap(checkReliable),
  ]
  const left = named.size > 0 ? 0 : beyond(found.delayed) + beyond(others)
  return { isCluster: access.isCluster, servers, queues, reliable, findings, left }
}

/** Each with its shards, if it has some; the name alone where there is nothing. */
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
  }
}

/** The queues and how many repeats they have stored. Dead letters are a part of their queue, also where nothing else of it is left. */
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
      const after = await examineQueue(access, state, before.servers, 'recheck', onProgress)
      left.push(...QUEUE_CHECKS.flatMap((check) => check(after)))
      left.push(...before.reliable.filter(({ name }) => name === state.name).flatMap(checkReliable))
    }
    return { fixed, left }
  }
  return { plan, carryOut }
}

async function examineQueue(
  access: Access,
  queue: Pick<QueueState, 'name' | 'rival'>,
  servers: readonly ServerState[],
  which: string,
  onProgress: OnProgress,
): Promise<QueueState> {
  let entries = 0
  const onEntries = (more: number): void => {
    entries += more
    onProgress(`${which}, ${queue.name}: ${entries.toLocaleString('en')} entries`)
  }
  onEntries(0)
  return inspectQueue(access, queue, servers[0]?.acl?.user, onEntries)
}
