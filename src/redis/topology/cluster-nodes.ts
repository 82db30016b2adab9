import type { Cluster, Redis } from 'ioredis'
import { endEachWithFirstError } from '../connections/first-error.js'
import { lastErrorOf } from '../connections/last-error.js'
import { checkOrder } from '../replies/order-check.js'
import { guardReplies } from '../replies/reply-guard.js'
import { refuseOutsideCluster } from './cluster-mode.js'
import { ownNodesOf, type OwnNodes } from './own-nodes.js'
import { paceRedirections } from './redirections.js'

const SLOTS = 16_384
const PORTS = 65_536
/** The most nodes: twice the number that Redis recommends at most. */
const MAX_NODES = 2_000
/** The longest name of a host. */
const MAX_HOST = 255

type Callback = (error: Error | null | undefined, reply?: unknown) => void

/**
 * Guards the present and future nodes of an ioredis Cluster against faults of ioredis that end the process or keep it busy. If the cluster
 * is `owned`, checks their replies, and refuses servers that are no nodes of a cluster. Returns a function that stops guarding nodes found
 * later.
 */
export function guardNodes(cluster: Cluster, owned: boolean): () => void {
  const ownNodes = ownNodesOf(cluster)
  const guard = (node: Redis): void => guardNode(node, owned, ownNodes)
  if (owned) guardSubscriber(cluster)
  for (const node of cluster.nodes('all')) guard(node)
  cluster.on('+node', guard)
  paceRedirections(cluster)
  return () => cluster.off('+node', guard)
}

/** Guards the subscriber, a connection that ioredis opens to one of the nodes without an event. */
function guardSubscriber(cluster: Cluster): void {
  const { subscriber: own } = cluster as unknown as { subscriber?: { selectSubscriber(): void; subscriber?: Redis } }
  const select = own?.selectSubscriber.bind(own)
  if (own === undefined || select === undefined) return
  own.selectSubscriber = () => {
    select()
    if (own.subscriber) guardReplies(own.subscriber)
  }
}

/** The guarded nodes of the user's Clusters, which several clients can share. */
const lent = new WeakSet<Redis>()

function guardNode(node: Redis, owned: boolean, ownNodes: OwnNodes): void {
  if (owned) refuseOutsideCluster(checkOrder(guardReplies(node)))
  else if (!lent.has(node)) {
    lent.add(node)
    endEachWithFirstError(node)
  }
  // Before a command that follows an ASK, ioredis sends ASKING and ignores its promise, which would be an unhandled rejection
  // if that node is gone. The command itself reports the error.
  const asking = node.asking.bind(node)
  node.asking = (...args: Parameters<typeof asking>) => {
    const reply = asking(...args)
    reply.catch(() => {})
    return reply
  }
  // ioredis asks for the slots on a copy of the connection; waits, announcements and durable offers have copies as well
  const duplicate = node.duplicate.bind(node)
  node.duplicate = (...args: Parameters<typeof duplicate>) => {
    const copy = duplicate(...args)
    if (owned) refuseOutsideCluster(guardReplies(copy))
    else endEachWithFirstError(copy)
    return checkSlots(copy, ownNodes)
  }
}

/**
 * Checks replies to CLUSTER SLOTS, which ioredis trusts: a huge range fills the memory, overlapping ranges and thousands of nodes keep the
 * process busy, nil stops all further refreshes, and another cluster's table leads away from this one.
 */
function checkSlots(redis: Redis, ownNodes: OwnNodes): Redis {
  const whyOf = lastErrorOf(redis)
  const own = redis as unknown as { cluster: (...args: unknown[]) => unknown }
  const cluster = own.cluster.bind(redis)
  own.cluster = (...args) => {
    const callback = args.at(-1)
    if (args[0] !== 'SLOTS' || typeof callback !== 'function') return cluster(...args)
    const pass = callback as Callback
    const refuse = (why: string): void => {
      ownNodes.refuse()
      pass(new Error(why))
    }
    const checked: Callback = (error, reply) => {
      if (error) return pass(whyOf(error))
      if (!isSlotTable(reply)) return refuse('the reply to CLUSTER SLOTS is not a table of slots')
      const table = withHosts(reply, redis.options.host)
      if (ownNodes.accepts(table)) pass(null, table)
      else cluster('NODES', withNodes(table))
    }
    // the table may name no known node: it omits a replica that has just begun, and the old master once that replica has all slots
    const withNodes =
      (table: readonly unknown[]): Callback =>
      (error, nodes) => {
        if (error && error.name !== 'ReplyError') pass(error)
        else if (!error && ownNodes.accepts(table, nodes)) pass(null, table)
        else refuse('the node belongs to another cluster')
      }
    return cluster(...args.slice(0, -1), checked)
  }
  return redis
}

/**
 * Whether a reply is a list of slot ranges, each with the addresses of its master and its replicas; a node that has left its cluster
 * returns none.
 */
export function isSlotTable(reply: unknown): reply is Range[] {
  return (
    Array.isArray(reply) &&
    reply.length <= SLOTS &&
    reply.every(isRange) &&
    reply.some(hasMaster) &&
    slotsIn(reply) <= SLOTS &&
    nodesIn(reply) <= MAX_NODES
  )
}

type Range = readonly [first: unknown, last: unknown, ...nodes: readonly [host: unknown, port: unknown][]]

/** The number of slots in all ranges, overlapping ones counted twice, because ioredis walks through all slots of each range. */
function slotsIn(table: readonly Range[]): number {
  return table.reduce((sum, [first, last]) => sum + Number(last) - Number(first) + 1, 0)
}

/** The number of different nodes; ioredis makes a client for each. */
function nodesIn(table: readonly Range[]): number {
  const addresses = new Set<string>()
  for (const [, , ...nodes] of table) for (const [host, port] of nodes) addresses.add(`${String(host)}:${String(port)}`)
  return addresses.size
}

function isRange(range: unknown): range is Range {
  if (!Array.isArray(range)) return false
  const [first, last, ...nodes] = range as unknown[]
  return isBelow(first, SLOTS) && isBelow(last, SLOTS) && Number(first) <= Number(last) && nodes.every(isNode)
}

function hasMaster([, , master]: Range): boolean {
  return master !== undefined && (Boolean(master[0]) || hasOnlyPort(master))
}

/** Fills in missing hosts: a node that has met no other, or announces no address, is the one that was asked. */
function withHosts(table: readonly Range[], host: string | undefined): readonly Range[] {
  return table.map(([first, last, ...nodes]) => [
    first,
    last,
    ...nodes.map((node) => (hasOnlyPort(node) ? ([host, ...node.slice(1)] as unknown as typeof node) : node)),
  ])
}

function hasOnlyPort([host, port]: readonly unknown[]): boolean {
  return !host && Number(port) > 0
}

/** Whether a node is valid; ioredis skips nodes without a host and a port, and trusts the others. */
function isNode(node: unknown): boolean {
  if (!Array.isArray(node)) return false
  const [host, port] = node as unknown[]
  if (!host) return port === undefined || port === null || isBelow(port, PORTS)
  return typeof host === 'string' && host.length <= MAX_HOST && isBelow(port, PORTS)
}

/** Whether a number is below a limit; with the user's ioredis option `stringNumbers`, numbers are texts. */
function isBelow(value: unknown, limit: number): boolean {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  return Number.isInteger(number) && (number as number) >= 0 && (number as number) < limit
}
