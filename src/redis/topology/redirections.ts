import type { Cluster, Redis } from 'ioredis'

/** The least time between replacements of a connection to one address, redirections of one command, and requests for the slots. */
const EVERY_MS = 250
/** The redirections without a pause: a moving slot takes two, MOVED to its old node, which replies ASK. */
const FREE_REDIRECTIONS = 2
const LAST_PORT = 65_535

type Callback = (error?: Error) => void

interface Handlers {
  /** Sends the command to the node that has the slot now, and notes that node. */
  moved(slot: number, address: string): void
  /** Rejects the command with the error. */
  defaults(): void
}

type HandleError = (error: Error, ttl: object, handlers: Handlers) => void

/** Private members of ioredis; a version may lack `recreate`. */
interface Internals {
  handleError: HandleError
  /** The addresses of each slot's master and replicas, as this client knows them. */
  readonly slots: (string[] | undefined)[]
  natMapper?: (address: string | Address) => Address
  refreshSlotsCache(callback?: Callback): void
  readonly connectionPool: {
    recreate?: (node: Address, readOnly?: boolean) => Redis
    findOrCreate(node: Address, readOnly?: boolean): Redis
  }
}

interface Address {
  readonly host?: string
  readonly port?: number
}

/** The guarded Clusters: the user can pass one Cluster to several clients. */
const paced = new WeakSet<Cluster>()

/**
 * Guards an ioredis Cluster against nodes that redirect without end or without an address: a redirection without one would end the process,
 * and one to the node's own address makes ioredis open some hundred connections a second. The guard stays after the client's shutdown.
 */
export function paceRedirections(cluster: Cluster): void {
  if (paced.has(cluster)) return
  paced.add(cluster)
  const own = cluster as unknown as Internals
  const pool = own.connectionPool

  const turns = new Turns()
  const redirections = new WeakMap<object, number>()
  const handleError = own.handleError.bind(own)
  const noted = noteMoves(own)
  own.handleError = (error, ttl, handlers) => {
    const address = redirectedTo(error)
    if (address === undefined) {
      handleError(error, ttl, handlers)
      return
    }
    if (!isAddress(address)) {
      handlers.defaults()
      return
    }
    const count = (redirections.get(ttl) ?? 0) + 1
    redirections.set(ttl, count)
    const follow = (): void => handleError(error, ttl, noted(handlers))
    if (count <= FREE_REDIRECTIONS) follow()
    else turns.next(follow)
  }

  const refresh = own.refreshSlotsCache.bind(own)
  let askedAt = -Infinity
  let asking: NodeJS.Timeout | undefined
  let callbacks: Callback[] = []
  const ask = (): void => {
    clearTimeout(asking)
    asking = undefined
    askedAt = performance.now()
    const waiting = callbacks
    callbacks = []
    refresh((error) => waiting.forEach((callback) => callback(error)))
  }
  own.refreshSlotsCache = (callback) => {
    if (callback !== undefined) callbacks.push(callback)
    const waitMs = askedAt + EVERY_MS - performance.now()
    if (waitMs <= 0) ask()
    else asking ??= setTimeout(ask, waitMs)
  }

  // no command waits any more, so no timer may keep the process alive
  cluster.on('end', () => {
    turns.go()
    if (asking !== undefined) ask()
  })

  const recreatedAt = new Map<string, number>()
  if (pool.recreate !== undefined) {
    const recreate = pool.recreate.bind(pool)
    pool.recreate = (node, readOnly) => {
      const key = `${node.host}:${node.port}`
      const now = performance.now()
      if (now - (recreatedAt.get(key) ?? -Infinity) < EVERY_MS) return pool.findOrCreate(node, readOnly)
      recreatedAt.set(key, now)
      return recreate(node, readOnly)
    }
  }
}

/**
 * Corrects how ioredis notes the new node of a MOVED. ioredis uses the address in the error. If the client knows the nodes by other
 * addresses (`natMap`), it has no connection of that name, and sends to any node. And all slots of a node share one array, so the note
 * would apply to all of them. Each redirection would cause others, without end.
 */
function noteMoves(own: Internals): (handlers: Handlers) => Handlers {
  const map = own.natMapper?.bind(own)
  let mapped: string | undefined
  if (map !== undefined) {
    // ioredis maps the address below again
    own.natMapper = (address) => (address === mapped ? toAddress(mapped) : map(address))
  }
  return (handlers) => ({
    ...handlers,
    moved: (slot, address) => {
      const keys = own.slots[slot]
      if (keys !== undefined) own.slots[slot] = [...keys]
      const { host, port } = map?.(address) ?? toAddress(address)
      mapped = `${host}:${port}`
      try {
        handlers.moved(slot, mapped)
      } finally {
        mapped = undefined
      }
    },
  })
}

function toAddress(text: string): Address {
  const at = text.lastIndexOf(':')
  return { host: text.slice(0, at), port: Number(text.slice(at + 1)) }
}

/** Waiting commands continue together, so that all that use the same connection replace it once. */
class Turns {
  #waiting: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined

  next(action: () => void): void {
    this.#waiting.push(action)
    this.#timer ??= setTimeout(() => this.go(), EVERY_MS)
  }

  go(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const waiting = this.#waiting
    this.#waiting = []
    for (const action of waiting) action()
  }
}

/** The address of a redirection; `undefined` for another error. */
function redirectedTo({ message }: Error): string | undefined {
  const [code, , address = ''] = message.split(' ')
  return code === 'MOVED' || code === 'ASK' ? address : undefined
}

/** Whether a text has a host and a port; a node that does not know its name leaves the host out. */
function isAddress(text: string): boolean {
  const port = /:(\d{1,5})$/.exec(text)?.[1]
  return port !== undefined && Number(port) >= 1 && Number(port) <= LAST_PORT
}
