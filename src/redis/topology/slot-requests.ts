import type { Cluster, Redis } from 'ioredis'
import { abandon } from '../connections/disconnect.js'
import { firstAnswer, SLOW_MS } from './first-answer.js'

/** Of more nodes than any round needs, ioredis has these in random order: thousands that are not there would be asked for minutes. */
const MAX_ASKED = 100

type Callback = (error?: Error | null) => void

/** Private members of ioredis; a version may lack the optional ones. */
interface Internals {
  readonly isRefreshing: boolean
  refreshSlotsCache(callback?: Callback): void
  getInfoFromNode?: (node: Pick<Redis, 'duplicate'>, callback: Callback) => void
  readyCheck?: (this: Pick<Redis, 'cluster'>, callback: (error?: Error | null, state?: string) => void) => void
}

/** How long each node may take to answer when it is asked for the slots, its connection included. Other steps of opening need time, too. */
export function slotsTimeout(connectTimeout: number): number {
  return Math.max(SLOW_MS, Math.ceil(connectTimeout / 2))
}

/**
 * ioredis asks one node after the other for the slots. With a short limit for each it never connects over a slow line; with a long one a silent
 * node delays those that answer. So the next node is asked while a slow one is awaited, and the first reply counts. Returns a function that gives up
 * what is asked now.
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
  // no connection is left: ioredis begins anew with all nodes that it was given, and must not wait for those that it asks still
  cluster.on('close', () => round.giveUp())
  return () => round.giveUp()
}

/** ioredis asks a random node whether the cluster is ready, and waits for it also when it is silent. */
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

/** One refresh of the slots, in which ioredis goes through the nodes. */
class Round {
  readonly #request: NonNullable<Internals['getInfoFromNode']>
  readonly #copies = new Set<Redis>()
  /** The nodes that ioredis has not come to yet. */
  #left: number
  /** Passes to ioredis the result of the node that it came to last; with an error it goes on to the next one. */
  #next: Callback = () => {}
  #open = 0
  #isOver = false

  constructor(request: NonNullable<Internals['getInfoFromNode']>, nodes: number) {
    this.#request = request
    this.#left = nodes
  }

  ask(node: Pick<Redis, 'duplicate'>, next: Callback): void {
    if (this.#isOver) {
      process.nextTick(next, new Error('the request for the slots was given up')) // ioredis goes through all nodes: not in one stack
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

  /** The first answer, or the error of the last node that was left. */
  #end(error?: Error): void {
    this.#isOver = true
    for (const copy of this.#copies) abandon(copy)
    this.#next(error)
  }
}
