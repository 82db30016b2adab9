import type { Redis } from 'ioredis'
import {
  CommandError,
  ConnectionError,
  ShutdownError,
  UnsupportedServerError,
  type RedelayedError,
} from '../../errors.js'
import { asInteger } from '../../store/replies.js'
import { nextTurn, pause } from '../../timing/pause.js'
import type { BlockingCommand, Popped } from './blocking-commands.js'
import type { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { dropWhenOverdue } from '../replies/reply-watchdog.js'
import type { Identity } from '../connections/predecessors.js'
import type { IsStale } from '../connections/remote-address.js'
import { isTransient, translateError } from '../replies/server-errors.js'
import { ClientEndedError, NodeGoneError } from '../topology/topology.js'
import { SharedDemand } from './shared-demand.js'
import { Waiters, type Served, type Waiter } from './waiters.js'

/** How long one blocking command waits at the server before the next one is sent. */
const BLOCK_SECONDS = 10
/** The same when several groups of keys take turns, or when the command cannot be interrupted. */
const SHORT_BLOCK_SECONDS = 1
/** The connection is given up when its reply is overdue by this, or by `commandTimeout`, and no byte arrives. */
const OVERDUE_MS = 3_000
/** How many times `commandTimeout` a shutdown waits for an element whose bytes arrive. */
const CLOSE_TIMEOUTS = 2
const MAX_PER_CALL = 1_000
const RETRY_MS = 100
/** After so many waits in a row that ended empty at once, though this client ended none of them, each further one is paused for. */
const MAX_EARLY = 10
const EARLY_MS = 50
/** Of how many groups a connection knows that they may have more elements. */
const MAX_RICH = 1_000

export interface BlockingConnectionParams {
  /** Its `prepare` must be `learnClientId`. */
  readonly connection: ReconnectingConnection
  /** The connection that can unblock the given one, if there is one now. */
  readonly beside: (redis: Redis) => Redis | undefined
  /** How long the server may be silent while it owes a reply. */
  readonly commandTimeout: number
  /** The commands it waits with. */
  readonly command: BlockingCommand
  /** Whether any connection of this kind has ever worked. Until then failures reject the waits; later the waits continue. */
  readonly shared: { hasServed: boolean }
  /** Whether another connection to the server works now: then waits continue although this one cannot be opened. */
  readonly isConnected: () => boolean
  /** The keys are on another node now. */
  readonly onMoved: (waiters: Waiter[]) => void
  /** The server is gone, and this connection is of no use any more. */
  readonly onGone: (waiters: Waiter[]) => void
}

interface Call {
  readonly keys: ReadonlySet<string>
  readonly redis: Redis
  /** Per command: an interruption in flight for the last command must not replace the one that this command needs. */
  interrupted: boolean
  /** Further elements may still be fetched, by other means. */
  answered: boolean
  /** Stops the watchdog that gives the connection up when an interruption has no effect. */
  stopWatching: () => void
}

/**
 * One connection on which many waiting takes of many queues share one blocking command. The keys of a command cannot change
 * while it waits, so a new key or a cancelled wait interrupts the command with CLIENT UNBLOCK. The command then
 * ends either empty or with an element, and an element always has a waiter: cancelling loses nothing.
 */
export class BlockingConnection {
  readonly #params: BlockingConnectionParams
  readonly #overdueMs: number
  readonly #waiters = new Waiters()
  #loop: Promise<void> | undefined
  #call: Call | undefined
  #preferred: string | undefined
  /** The groups whose last turn brought elements, so that they may have more. */
  readonly #rich = new Set<number | string>()
  /** Waiters with their elements, to be resolved as soon as the next command is sent. */
  #served: Served | undefined
  readonly #sharedDemand = new SharedDemand()
  /** Waits in a row that ended empty at once without this client's doing. */
  #early = 0

  constructor(params: BlockingConnectionParams) {
    this.#params = params
    this.#overdueMs = Math.min(OVERDUE_MS, params.commandTimeout)
  }

  /** The number of keys that it waits for. */
  get size(): number {
    return this.#waiters.keyCount
  }

  /** Whether its command waits at the server now. */
  get blocked(): boolean {
    return this.#call?.answered === false
  }

  has(key: string): boolean {
    return this.#waiters.has(key)
  }

  add(waiter: Waiter): void {
    this.#waiters.add(waiter)
    const call = this.#call
    if (call !== undefined && waiter.keys.some((key) => !call.keys.has(key))) this.#interrupt()
    // a turn later, so that the takes of one turn share the command
    this.#loop ??= nextTurn().then(() => this.#run())
  }

  /** The waiter's wait has ended; it is settled as soon as no element can arrive for it any more. */
  cancel(waiter: Waiter): void {
    const call = this.#call
    if (call !== undefined && waiter.keys.some((key) => call.keys.has(key))) this.#interrupt()
    else for (const key of waiter.keys) this.#waiters.settleEnded(key)
  }

  /** An element has just arrived at `key`: wait for that key next if the command waits for others. */
  prefer(key: string): void {
    if (this.#call === undefined || this.#call.keys.has(key)) return
    this.#preferred = key
    this.#interrupt()
  }

  /** Called when the server is not the master any more: elements popped there now are still at the new master. */
  leave(isStale: IsStale): void {
    this.#params.connection.leave(isStale)
  }

  async close(): Promise<void> {
    this.#waiters.endAll(new ShutdownError('the client was shut down'))
    const call = this.#call
    if (call === undefined) this.#waiters.settleAllEnded()
    else {
      // the reply is awaited: it may carry an element
      this.#interrupt()
      const stopWatching = this.#dropWhenOverdue(call.redis, 0, CLOSE_TIMEOUTS * this.#params.commandTimeout)
      await this.#loop
      stopWatching()
    }
    await this.#params.connection.close()
    await this.#loop
  }

  async #run(): Promise<void> {
    try {
      for (;;) {
        if (this.#served !== undefined && (!this.#waiters.has(this.#served.key) || this.#sharedDemand.isIdle)) {
          this.#deliverServed()
          await nextTurn() // callers in a loop take again at once; the next command should include them
        }
        if (this.#waiters.keyCount === 0) break
        const redis = this.#params.connection.current ?? (await this.#connect())
        if (redis === undefined) continue
        this.#waiters.settleAllEnded()
        const keys = this.#waiters.nextGroup(this.#preferred)
        this.#preferred = undefined
        if (keys.length > 0) await this.#wait(redis, keys)
      }
    } finally {
      this.#loop = undefined
    }
  }

  /** Resolves the served waiters. Decoding takes time, in which the server should run the next command. */
  #deliverServed(): void {
    const served = this.#served
    this.#served = undefined
    if (served === undefined) return
    for (const [waiter, elements] of served.shares) waiter.resolve(elements, served.key)
  }

  async #connect(): Promise<Redis | undefined> {
    this.#deliverServed()
    try {
      return await this.#params.connection.get()
    } catch (thrown) {
      const error = translateError(thrown)
      this.#waiters.settleAllEnded()
      if (error instanceof ConnectionError && this.#params.isConnected()) this.#params.shared.hasServed = true
      const isFinal = error instanceof ShutdownError || error instanceof ClientEndedError
      if (!this.#params.shared.hasServed || isFinal) this.#waiters.failAll(error)
      else if (error instanceof NodeGoneError) {
        await pause(RETRY_MS) // without a node to ask, the waiters would return at once
        this.#params.onGone(this.#waiters.removeAll())
      }
      return undefined
    }
  }

  async #wait(redis: Redis, keys: string[]): Promise<void> {
    const call: Call = { keys: new Set(keys), redis, interrupted: false, answered: false, stopWatching: () => {} }
    this.#call = call
    const group = this.#waiters.groupOf(keys[0] ?? '')
    const id = clientIds.get(redis)
    const short = id === undefined || this.#waiters.groupCount > 1 || this.#params.beside(redis) === undefined
    const seconds = short ? SHORT_BLOCK_SECONDS : BLOCK_SECONDS
    const stopWatching = this.#dropWhenOverdue(redis, seconds * 1000)
    const sentAt = performance.now()
    let popped: Popped | null = null
    try {
      const asked = this.#demand(keys)
      const reply = this.#params.command.wait(redis, keys, asked, seconds)
      this.#endAtOnceForOthers(group)
      this.#deliverServed()
      this.#sharedDemand.sent()
      popped = await reply
      this.#sharedDemand.came(popped?.[1].length ?? 0, asked)
    } catch (thrown) {
      const error = translateError(thrown)
      if (!isUnblocked(error)) {
        stopWatching()
        call.stopWatching()
        this.#call = undefined
        await this.#onError(redis, keys, error)
        return
      }
    }
    stopWatching()
    call.stopWatching()
    call.answered = true
    this.#params.shared.hasServed = true
    if (group !== undefined) this.#learn(group, popped !== null)
    if (popped !== null) {
      const [key, elements] = popped
      elements.push(...(await this.#more(key, elements.length)))
      this.#served = this.#waiters.serve(key, elements)
    }
    this.#call = undefined
    this.#waiters.settleAllEnded()
    const isEarly = popped === null && !call.interrupted && performance.now() - sentAt < EARLY_MS
    this.#early = isEarly ? this.#early + 1 : 0
    if (this.#early > MAX_EARLY) await pause(RETRY_MS)
  }

  /**
   * A group whose turn it is would wait for a second although another one has elements and waiters. So its command ends at once, and where
   * this group brought nothing the last time, the other one comes next.
   */
  #endAtOnceForOthers(group: number | string | undefined): void {
    if (group === undefined || this.#rich.size === 0) return
    const others = new Set(this.#rich)
    others.delete(group)
    const key = this.#waiters.keyOf(others)
    if (key === undefined) return
    if (!this.#rich.has(group)) this.#preferred = key
    this.#interrupt()
  }

  #learn(group: number | string, isRich: boolean): void {
    if (this.#rich.size >= MAX_RICH) this.#rich.clear()
    if (isRich) this.#rich.add(group)
    else this.#rich.delete(group)
  }

  /** At most as many elements as have a waiter, whichever key they come from; some waiters are left for the next command. */
  #demand(keys: readonly string[]): number {
    return Math.min(MAX_PER_CALL, ...keys.map((key) => this.#waiters.demand(key, this.#sharedDemand.now)))
  }

  async #more(key: string, already: number): Promise<Buffer[]> {
    const count = this.#demand([key]) - already
    if (count <= 0) return []
    return this.#params.command.more(key, count).catch(() => []) // the next round tries again
  }

  async #onError(redis: Redis, keys: string[], error: RedelayedError): Promise<void> {
    // the server works or did a moment ago, so the waits continue
    if (error instanceof ConnectionError || isElsewhere(error)) this.#params.shared.hasServed = true
    if (error instanceof ConnectionError) {
      this.#waiters.settleAllEnded() // ended waits need not wait for the next connection
      await nextTurn() // immediate refusals must not keep the connection from ending
      return
    }
    if (isTransient(error)) {
      if (!this.#params.shared.hasServed) {
        this.#waiters.failAll(error)
        return
      }
      this.#params.connection.drop(redis, error)
      await pause(RETRY_MS)
      this.#params.onMoved(this.#waiters.removeAll(keys))
      return
    }
    // one bad key fails the command for all keys: find it
    let found = false
    for (const key of keys) {
      try {
        await this.#params.command.probe(key)
      } catch (thrown) {
        found = true
        this.#waiters.fail(key, translateError(thrown))
      }
    }
    if (found) return
    if (error instanceof UnsupportedServerError) for (const key of keys) this.#waiters.fail(key, error)
    else if (!this.#params.shared.hasServed) this.#waiters.failAll(error)
    else this.#params.connection.drop(redis, error) // `reconnecting` says why nothing arrives
  }

  #dropWhenOverdue(redis: Redis, dueMs: number, mostMs?: number): () => void {
    const overdue = { dueMs, graceMs: this.#overdueMs, ...(mostMs !== undefined && { mostMs }) }
    return dropWhenOverdue(this.#params.connection, redis, overdue)
  }

  #interrupt(): void {
    const call = this.#call
    // a command that has ended needs no interruption, and a watchdog for it would never be stopped
    if (call === undefined || call.interrupted || call.answered) return
    call.interrupted = true
    void this.#unblock(call)
  }

  /**
   * The command may not have reached the server yet, so this repeats until the command ends. A connection whose command does not end, and
   * on which no byte arrives, is given up, so that ended waits settle. A reply that has begun may be an element:
   * it is awaited.
   */
  async #unblock(call: Call): Promise<void> {
    const id = clientIds.get(call.redis)
    if (id === undefined) return
    call.stopWatching = this.#dropWhenOverdue(call.redis, 0)
    for (let wait = 1; this.#call === call && !call.answered; wait = Math.min(wait * 2, RETRY_MS)) {
      try {
        const beside = this.#params.beside(call.redis)
        if (beside !== undefined && (await unblock(beside, call.redis, id))) return
      } catch {
        wait = RETRY_MS
      }
      await pause(wait)
    }
  }
}

/**
 * Whether the server has ended the connection's command. Redis 7.0 ends with a panic when it is asked to unblock a command that
 * `CLIENT PAUSE … WRITE` holds back, as manual failovers do. It holds back a script, too, so nothing is unblocked in a pause.
 */
async function unblock(beside: Redis, blocked: Redis, id: number): Promise<boolean> {
  if (!panicking.has(blocked)) return asInteger(await beside.call('CLIENT', 'UNBLOCK', id)) === 1
  const replies = await beside.pipeline().eval('return 0', 0).call('CLIENT', 'UNBLOCK', id).exec()
  const [error, reply] = replies?.[1] ?? []
  if (error) throw error
  return asInteger(reply) === 1
}

/** Whether a server ended a wait because it became a replica or because the slot moved. */
function isElsewhere(error: RedelayedError): boolean {
  return error instanceof CommandError && ELSEWHERE.includes(error.redisCode)
}

/** Whether another client has ended a wait by `CLIENT UNBLOCK … ERROR`; nothing is wrong with the server then. */
function isUnblocked(error: RedelayedError): boolean {
  return error instanceof CommandError && error.redisCode === 'UNBLOCKED' && /via CLIENT UNBLOCK/.test(error.message)
}

const ELSEWHERE = ['UNBLOCKED', 'MOVED', 'ASK']

const clientIds = new WeakMap<Redis, number>()

/** Connections to servers that hold paused commands back as blocked ones, and panic when one is unblocked; or of an unknown version. */
const panicking = new WeakSet<Redis>()
const PANICKING = /^redis_version:(6\.2|7\.0)\./m

/** An id that no connection has: with it the connection finds out, when it is opened, whether this user may unblock connections. */
const NO_CONNECTION = Number.MAX_SAFE_INTEGER

/**
 * Learns the id by which a connection can be unblocked, and resolves with it. At a server that refuses the id, or refuses to unblock, waits are made of
 * short steps.
 */
export async function learnClientId(redis: Redis): Promise<Identity | undefined> {
  const [id, info, error] = await Promise.all([
    redis.call('CLIENT', 'ID').catch(orRefusal),
    redis.call('INFO', 'server').catch(orRefusal),
    redis.call('CLIENT', 'UNBLOCK', NO_CONNECTION).then(() => undefined, orRefusal),
  ])
  if (typeof info !== 'string' || PANICKING.test(info)) panicking.add(redis)
  if (id instanceof Error) return undefined
  if (error === undefined || isTransient(error)) clientIds.set(redis, asInteger(id))
  return typeof info === 'string' ? { id: asInteger(id), info } : undefined
}

function orRefusal(thrown: unknown): RedelayedError {
  const error = translateError(thrown)
  if (error instanceof ConnectionError) throw error
  return error
}
