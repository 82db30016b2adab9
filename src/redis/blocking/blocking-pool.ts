import { type ConnectionError, CrossSlotError, type RedelayedError, ShutdownError, toError } from '../../errors.js'
import type { Emit } from '../../events.js'
import type { End } from '../../store/list-store.js'
import type { Sender } from '../../store/sender.js'
import type { Settings } from '../../options.js'
import { pause } from '../../timing/pause.js'
import { systemClock } from '../../timing/clock.js'
import { DeadlineTimer } from '../../timing/deadline-timer.js'
import { onAbort } from './abort-signals.js'
import {
  BlockingMove,
  BlockingPop,
  moveKey,
  parseMoveKey,
  type BlockingCommand,
  type Drain,
  type ListMove,
} from './blocking-commands.js'
import { BlockingConnection } from './blocking-connection.js'
import { Predecessors } from '../connections/predecessors.js'
import { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { isTransient, translateError } from '../replies/server-errors.js'
import type { IsStale } from '../connections/remote-address.js'
import { ClientEndedError, noConnectionYet, type Topology } from '../topology/topology.js'
import { learnClientId } from './unblocking.js'
import type { Waiter } from './waiters.js'

export interface WaitOptions {
  /** The most elements to take at once. */
  readonly max: number
  /** The limit of the wait in milliseconds; without it, without end. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Taken elements and their key. */
export interface Taken {
  readonly key: string
  readonly elements: Buffer[]
}

/** The kind of a blocking connection; different kinds cannot share a command. */
type Kind = End | 'move'

/** How long a wait on several groups of keys waits for one group before the turn of the next. */
const TURN_MS = 100

/** The pause before the pool asks again for the node of a key. */
const RETRY_MS = 100

/** All waiting takes of a client, on a few connections (per node, in a cluster). */
export class BlockingPool {
  readonly #topology: Topology
  readonly #settings: Settings
  readonly #emit: Emit
  /** The connections by kind and node. */
  readonly #connections = new Map<string, BlockingConnection[]>()
  readonly #connectionOf = new WeakMap<Waiter, BlockingConnection>()
  readonly #commands: Readonly<Record<Kind, () => BlockingCommand>>
  readonly #shared = { left: { hasServed: false }, right: { hasServed: false }, move: { hasServed: false } }
  readonly #predecessors = new Predecessors()
  /** When the first wait began, until a wait has worked. */
  #triedSince: number | undefined
  #closed = false

  constructor(params: { topology: Topology; settings: Settings; sender: Sender; drain: Drain; emit: Emit }) {
    this.#topology = params.topology
    this.#settings = params.settings
    this.#emit = params.emit
    const { sender, drain } = params
    this.#commands = {
      left: () => new BlockingPop(sender, drain, 'left'),
      right: () => new BlockingPop(sender, drain, 'right'),
      move: () => new BlockingMove(sender),
    }
  }

  /**
   * Waits for at least one element at one end of the first of some lists that has any; `null` when the time is over.
   * In a cluster one command can name keys of one slot only. Keys of several slots take turns, one at a time, so that one wait never
   * gets two elements, and none has to be put back.
   */
  async wait(keys: readonly string[], end: End, options: WaitOptions): Promise<Taken | null> {
    if (keys.length === 1) return this.#wait(end, keys, options)
    const groups = this.#groups(keys)
    const [only] = groups
    if (groups.length === 1 && only !== undefined) return this.#wait(end, only, options)
    const deadline = options.timeoutMs === undefined ? Infinity : performance.now() + options.timeoutMs
    for (let turn = 0; ; turn++) {
      const remaining = deadline - performance.now()
      if (remaining <= 0) return null
      const timeoutMs = Math.min(TURN_MS, remaining)
      const taken = await this.#wait(end, groups[turn % groups.length] ?? [], { ...options, timeoutMs })
      if (taken !== null) return taken
    }
  }

  /** Waits for an element to move from one list to another; `null` when the time is over. */
  async move(move: ListMove, options: Omit<WaitOptions, 'max'>): Promise<Buffer | null> {
    if (this.#topology.slotOf(move.source) !== this.#topology.slotOf(move.target)) throw new CrossSlotError()
    const taken = await this.#wait('move', [moveKey(move)], { ...options, max: 1 })
    return taken?.elements[0] ?? null
  }

  /** Waits until commands can be sent, before a read without waiting; false when the time is over. */
  async reach({ timeoutMs, signal }: Omit<WaitOptions, 'max'>): Promise<boolean> {
    const connected = this.#topology.commands()
    if (!(connected instanceof Promise)) return true
    this.#triedSince ??= performance.now()
    return new Promise((resolve, reject) => {
      let isWanted = true
      const settle = (action: () => void): void => {
        isWanted = false
        timer.clear()
        unlisten?.()
        action()
      }
      const timer = new DeadlineTimer(systemClock, () => {
        const why = this.#whyNone('left')
        settle(() => (why === null ? resolve(false) : reject(why)))
      })
      if (timeoutMs !== undefined) timer.replace(systemClock.now() + timeoutMs)
      const unlisten = signal && onAbort(signal, () => settle(() => reject(toError(signal.reason))))
      this.#connected(connected, () => isWanted).then(
        () => settle(() => resolve(true)),
        (error: RedelayedError) => settle(() => reject(error)),
      )
    })
  }

  /** Waits for a connection. As in `#assign`, a failure does not end the wait if waits have worked before. */
  async #connected(connected: Promise<unknown>, isWanted: () => boolean): Promise<void> {
    for (let attempt = connected; ; attempt = Promise.resolve(this.#topology.commands())) {
      try {
        await attempt
        return
      } catch (thrown) {
        const error = this.#closed ? new ShutdownError('the client was shut down') : translateError(thrown)
        const isPatient = Object.values(this.#shared).some(({ hasServed }) => hasServed)
        if (!isWanted() || !isPatient || !isTransient(error) || error instanceof ClientEndedError) throw error
      }
      await pause(RETRY_MS)
    }
  }

  /** This client has just moved elements to `key`. */
  prefer(key: string): void {
    for (const connections of this.#connections.values()) {
      for (const connection of connections) if (connection.has(key)) connection.prefer(key)
    }
  }

  /** Drops the connections to a server that is no longer the master. */
  leave(isStale: IsStale): void {
    for (const connection of [...this.#connections.values()].flat()) connection.leave(isStale)
  }

  /** Whether a command waits at a server now. */
  get blocked(): boolean {
    return [...this.#connections.values()].flat().some((connection) => connection.blocked)
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#connections.values()].flat().map((connection) => connection.close()))
  }

  async #wait(kind: Kind, keys: readonly string[], options: WaitOptions): Promise<Taken | null> {
    const { signal, timeoutMs } = options
    if (signal?.aborted === true) throw toError(signal.reason)
    this.#triedSince ??= performance.now()
    return new Promise((resolve, reject) => {
      const timer = new DeadlineTimer(systemClock, () => end(this.#whyNone(kind))) // setTimeout has a limit of 24 days
      if (timeoutMs !== undefined) timer.replace(systemClock.now() + timeoutMs)
      const unlisten = signal && onAbort(signal, () => end(toError(signal.reason)))
      const settled = (): void => {
        timer.clear()
        unlisten?.()
      }
      const waiter: Waiter = {
        keys,
        group: 0,
        max: options.max,
        resolve: (elements, key = '') => {
          settled()
          resolve(elements === null ? null : { key, elements })
        },
        reject: (error) => {
          settled()
          reject(error)
        },
      }
      const end = (how: Error | null): void => {
        if (waiter.ended === undefined) waiter.ended = how
        const connection = this.#connectionOf.get(waiter)
        if (connection === undefined)
          settleIfEnded(waiter) // it has no connection yet
        else connection.cancel(waiter)
      }
      void this.#assign(kind, waiter, this.#shared[kind].hasServed)
    })
  }

  /** The error for a wait whose time is over: until the first success it is unknown whether the lists hold elements. */
  #whyNone(kind: Kind): ConnectionError | null {
    if (this.#shared[kind].hasServed) return null
    return noConnectionYet(performance.now() - (this.#triedSince ?? Infinity), this.#topology) ?? null
  }

  /** `hasServed`: waits have worked before, so a failure does not end this one. */
  async #assign(kind: Kind, waiter: Waiter, hasServed: boolean): Promise<void> {
    for (;;) {
      try {
        const [key = ''] = waiter.keys
        const { node, slot } = await this.#topology.place(kind === 'move' ? parseMoveKey(key).source : key)
        waiter.group = kind === 'move' ? key : slot
        if (this.#closed) throw new ShutdownError('the client was shut down')
        if (settleIfEnded(waiter)) return
        const connection = this.#choose(kind, node, waiter.keys)
        this.#connectionOf.set(waiter, connection)
        connection.add(waiter)
        return
      } catch (thrown) {
        const error = this.#closed ? new ShutdownError('the client was shut down') : translateError(thrown)
        if (settleIfEnded(waiter)) return
        if (!hasServed || !isTransient(error) || error instanceof ClientEndedError) {
          waiter.reject(error)
          return
        }
      }
      await pause(RETRY_MS)
    }
  }

  /** A connection that waits for the keys already, or else a free one, a new one, or the one with the fewest keys. */
  #choose(kind: Kind, node: string, keys: readonly string[]): BlockingConnection {
    const place = `${kind} ${node}`
    const connections = this.#connections.get(place) ?? []
    this.#connections.set(place, connections)
    const found =
      connections.find((connection) => keys.every((key) => connection.has(key))) ??
      connections.find((connection) => connection.size === 0)
    if (found !== undefined) return found
    if (connections.length >= this.#settings.blockingConnections) {
      return connections.reduce((least, connection) => (connection.size < least.size ? connection : least))
    }
    const connection = this.#open(kind, node)
    connections.push(connection)
    return connection
  }

  #open(kind: Kind, node: string): BlockingConnection {
    const reconnecting = new ReconnectingConnection({
      address: node === '' ? this.#topology.address : node,
      role: 'blocking',
      open: (again) => this.#topology.dedicated(again, node === '' ? undefined : node),
      prepare: async (redis) => {
        const identity = await learnClientId(redis)
        this.#topology.arrived(redis, identity?.info)
        // a command still on its way would pop elements that no consumer gets
        if (identity !== undefined) await this.#predecessors.endAllowed(redis, identity)
      },
      connectTimeout: this.#settings.connectTimeout,
      emit: this.#emit,
    })
    const connection: BlockingConnection = new BlockingConnection({
      connection: reconnecting,
      beside: (redis) => this.#topology.beside(redis),
      commandTimeout: this.#settings.commandTimeout,
      command: this.#commands[kind](),
      shared: this.#shared[kind],
      isConnected: () => this.#topology.connected,
      onMoved: (waiters) => void this.#reassign(kind, waiters),
      onGone: (waiters) => {
        const place = `${kind} ${node}`
        this.#connections.set(
          place,
          (this.#connections.get(place) ?? []).filter((other) => other !== connection),
        )
        void connection.close() // otherwise it would search for the node for ever
        void this.#reassign(kind, waiters)
      },
    })
    return connection
  }

  async #reassign(kind: Kind, waiters: Waiter[]): Promise<void> {
    for (const waiter of waiters) this.#connectionOf.delete(waiter)
    await this.#topology.refresh().catch(() => undefined)
    for (const waiter of waiters) void this.#assign(kind, waiter, true)
  }

  /** The keys grouped by slot, in the order given. */
  #groups(keys: readonly string[]): string[][] {
    const bySlot = new Map<number, string[]>()
    for (const key of keys) {
      const slot = this.#topology.slotOf(key)
      bySlot.set(slot, [...(bySlot.get(slot) ?? []), key])
    }
    return [...bySlot.values()]
  }
}

/** Settles the waiter if its wait has ended, and returns whether it did. */
function settleIfEnded(waiter: Waiter): boolean {
  if (waiter.ended === undefined) return false
  if (waiter.ended === null) waiter.resolve(null)
  else waiter.reject(waiter.ended)
  return true
}
