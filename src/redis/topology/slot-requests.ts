import type { Cluster, Redis } from 'ioredis'
import { abandon } from '../connections/disconnect.js'
import { firstAnswer, SLOW_MS } from './first-answer.js'

/**
 * The most nodes to ask in a round, more than any needs; ioredis chooses them at random. Asking thousands of missing nodes would take
 * minutes.
 */
const MAX_ASKED = 100

type Callback = (error?: Error | null) => void

/** Private members of ioredis; a version may lack the optional ones. */
interface Internals {
  readonly isRefreshing: boolean
  refreshSlotsCache(callback?: Callback): void
  getInfoFromNode?: (node: Pick<Redis, 'duplicate'>, callback: Callback) => void
  readyCheck?: (this: Pick<Redis, 'cluster'>, callback: (error?: Error | null, state?: string) => void) => void
}

/** How long each node may take to answer a request for the slots, including its connection. Other steps of opening need time too. */
export function slotsTimeout(connectTimeout: number): number {
  return Math.max(SLOW_MS, Math.ceil(connectTimeout / 2))
}

/**
 * Makes ioredis ask the next node for the slots while a slow one is awaited; the first reply counts. ioredis itself asks one node after the
 * other: with a short limit it never connects over a slow line, and with a long one a silent node delays the others. Returns a function
 * that ends the current requests.
 */
export function askSideBySide(cluster: Cluster): () => void {
  const own = cluster as unknown as Internals
  const request = own.getInfoFromNode?.bind(cluster)
  if (request === undefined) return () => {}
  const refresh = own.refreshSlotsCache.bind(cluster)
  let round = new Round(request, 0)
  own.getInfoFromNode = (node, next) => round.ask(node, next)
  own.refreshSlotsCache = (callback) => {
    if (!own.isRefreshing) round = new Round(request, Math.min(MAX_ASKED, cluster.nodes('all').length))
    refresh(callback)
  }
  // without any connection ioredis begins anew with all configured nodes, and must not wait for the pending requests
  cluster.on('close', () => round.giveUp())
  return () => round.giveUp()
}

/** Checks several nodes for readiness: ioredis asks a random one, and waits for it even if it is silent. */
export function checkSideBySide(cluster: Cluster): void {
  const own = cluster as unknown as Internals
  const { readyCheck } = own
  if (readyCheck === undefined) return
  own.readyCheck = (callback) => {
    const check = (node: Redis): Promise<string | undefined> =>
      new Promise((resolve, reject) => {
        readyCheck.call(node, (error, state) => (error ? reject(error) : resolve(state)))
      })
    firstAnswer(cluster.nodes('all'), check).then((state) => callback(null, state), callback)
  }
}

/** One refresh of the slots, in which ioredis iterates over the nodes. */
class Round {
  readonly #request: NonNullable<Internals['getInfoFromNode']>
  readonly #copies = new Set<Redis>()
  /** The number of nodes that ioredis has not reached yet. */
  #left: number
  /** Passes the result of the last node to ioredis, which goes on to the next one after an error. */
  #next: Callback = () => {}
  #open = 0
  #isOver = false

  constructor(request: NonNullable<Internals['getInfoFromNode']>, nodes: number) {
    this.#request = request
    this.#left = nodes
  }

  ask(node: Pick<Redis, 'duplicate'>, next: Callback): void {
    if (this.#isOver) {
      process.nextTick(next, new Error('the request for the slots was given up')) // not in one stack, because ioredis iterates over all nodes
      return
    }
    this.#next = next
    this.#left--
    this.#open++
    const goOn = (error: Error): void => {
      if (this.#next === next && this.#left > 0) next(error)
    }
    const timer = setTimeout(() => goOn(new Error(`no answer within ${SLOW_MS / 1000} s`)), SLOW_MS)
    let copy: Redis | undefined
    const duplicate: Redis['duplicate'] = (override) => {
      copy = node.duplicate(override)
      this.#copies.add(copy)
      return copy
    }
    this.#request({ duplicate }, (error) => {
      clearTimeout(timer)
      this.#open--
      if (copy !== undefined) this.#copies.delete(copy)
      if (this.#isOver) return
      if (!error) this.#end()
      else if (this.#left > 0) goOn(error)
      else if (this.#open === 0) this.#end(error)
    })
  }

  giveUp(): void {
    if (!this.#isOver) this.#end(new Error('the request for the slots was given up'))
  }

  /** Ends the round with the first answer, or with the error of the last node. */
  #end(error?: Error): void {
    this.#isOver = true
    for (const copy of this.#copies) abandon(copy)
    this.#next(error)
  }
}
