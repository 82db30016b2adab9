import type { Redis } from 'ioredis'
import {
  CommandError,
  ConnectionError,
  ShutdownError,
  UnsupportedServerError,
  type RedelayedError,
} from '../../errors.js'
import { nextTurn, pause } from '../../timing/pause.js'
import type { BlockingCommand, Popped } from './blocking-commands.js'
import type { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { dropWhenOverdue } from '../replies/reply-watchdog.js'
import type { IsStale } from '../connections/remote-address.js'
import { isTransient, translateError } from '../replies/server-errors.js'
import { ClientEndedError, NodeGoneError } from '../topology/topology.js'
import { RichGroups } from './rich-groups.js'
import { SharedDemand } from './shared-demand.js'
import { clientIdOf, unblock } from './unblocking.js'
import { Waiters, type Group, type Served, type Waiter } from './waiters.js'

/** How long one blocking command waits at the server before the next one is sent. */
const BLOCK_SECONDS = 10
/** The wait when several groups of keys take turns, or when the command cannot be interrupted. */
const SHORT_BLOCK_SECONDS = 1
/** The connection is dropped when its reply is overdue by this, or by `commandTimeout`, and no byte arrives. */
const OVERDUE_MS = 3_000
/** How many times `commandTimeout` a shutdown waits for an element whose bytes arrive. */
const CLOSE_TIMEOUTS = 2
const MAX_PER_CALL = 1_000
const RETRY_MS = 100
/** After this many consecutive waits that ended empty at once without an interruption by this client, it pauses before each further one. */
const MAX_EARLY = 10
const EARLY_MS = 50

export interface BlockingConnectionParams {
  /** Its `prepare` must have called `learnClientId`. */
  readonly connection: ReconnectingConnection
  /** Another connection to the same server, which can unblock the given one; undefined if there is none now. */
  readonly beside: (redis: Redis) => Redis | undefined
  /** How long the server may be silent while it owes a reply. */
  readonly commandTimeout: number
  /** The blocking command of the connection. */
  readonly command: BlockingCommand
  /** Whether any connection of this kind has ever worked. Until then failures reject the waits; later the waits continue. */
  readonly shared: { hasServed: boolean }
  /** Whether another connection to the server works now; then waits continue although this one cannot be opened. */
  readonly isConnected: () => boolean
  /** The keys are on another node now. */
  readonly onMoved: (waiters: Waiter[]) => void
  /** The server is gone, so this connection is useless. */
  readonly onGone: (waiters: Waiter[]) => void
}

interface Call {
  readonly keys: ReadonlySet<string>
  readonly redis: Redis
  /** Whether this command was interrupted; an interruption in flight for the previous command does not count. */
  interrupted: boolean
  /** The command has ended; more elements may still be fetched with another command. */
  answered: boolean
  /** Stops the watchdog that drops the connection when an interruption has no effect. */
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
  readonly #rich = new RichGroups()
  /** Waiters with their elements, to be resolved as soon as the next command is sent. */
  #served: Served | undefined
  readonly #sharedDemand = new SharedDemand()
  /** Consecutive waits that ended empty at once without an interruption by this client. */
  #early = 0

  constructor(params: BlockingConnectionParams) {
    this.#params = params
    this.#overdueMs = Math.min(OVERDUE_MS, params.commandTimeout)
  }

  /** The number of awaited keys. */
  get size(): number {
    return this.#waiters.keyCount
  }

  /** Whether a command waits at the server now. */
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

  /** Ends a waiter's wait; the waiter is settled as soon as no element can arrive for it any more. */
  cancel(waiter: Waiter): void {
    const call = this.#call
    if (call !== undefined && waiter.keys.some((key) => call.keys.has(key))) this.#interrupt()
    else for (const key of waiter.keys) this.#waiters.settleEnded(key)
  }

  /** An element has just arrived at `key`: waits for that key next if the command waits for other keys. */
  prefer(key: string): void {
    if (this.#call === undefined || this.#call.keys.has(key)) return
    this.#preferred = key
    this.#interrupt()
  }

  /** Drops the connection to a server that is no longer the master: elements popped there now are still at the new master. */
  leave(isStale: IsStale): void {
    this.#params.connection.leave(isStale)
  }

  async close(): Promise<void> {
    this.#waiters.endAll(new ShutdownError('the client was shut down'))
    const call = this.#call
    if (call === undefined) this.#waiters.settleAllEnded()
    else {
      // wait for the reply: it may carry an element
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

  /** Resolves the served waiters while the server runs the next command, because decoding takes time. */
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
    const id = clientIdOf(redis)
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
    if (group !== undefined) this.#rich.learn(group, popped !== null)
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
   * Ends a group's command at once if another group has elements and waiters, which would otherwise wait for a second. If
   * the last turn of this group brought no elements, the other group is next.
   */
  #endAtOnceForOthers(group: Group | undefined): void {
    if (group === undefined || this.#rich.isEmpty) return
    const key = this.#waiters.keyOf(this.#rich.besides(group))
    if (key === undefined) return
    if (!this.#rich.has(group)) this.#preferred = key
    this.#interrupt()
  }

  /**
   * The number of elements to ask for: at most as many as have a waiter, whichever key they come from, leaving some waiters for the next
   * command.
   */
  #demand(keys: readonly string[]): number {
    return Math.min(MAX_PER_CALL, ...keys.map((key) => this.#waiters.demand(key, this.#sharedDemand.now)))
  }

  async #more(key: string, already: number): Promise<Buffer[]> {
    const count = this.#demand([key]) - already
    if (count <= 0) return []
    return this.#params.command.more(key, count).catch(() => []) // the next round tries again
  }

  async #onError(redis: Redis, keys: string[], error: RedelayedError): Promise<void> {
    // the server works or did so a moment ago, so the waits continue
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
    // one invalid key fails the command for all keys: find it
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
    else this.#params.connection.drop(redis, error) // the event `reconnecting` says why no element arrives
  }

  #dropWhenOverdue(redis: Redis, dueMs: number, mostMs?: number): () => void {
    const overdue = { dueMs, graceMs: this.#overdueMs, ...(mostMs !== undefined && { mostMs }) }
    return dropWhenOverdue(this.#params.connection, redis, overdue)
  }

  #interrupt(): void {
    const call = this.#call
    // a command that has ended needs no interruption, and nothing would stop its watchdog
    if (call === undefined || call.interrupted || call.answered) return
    call.interrupted = true
    void this.#unblock(call)
  }

  /**
   * Interrupts the command until it ends, because it may not have reached the server yet. Drops a connection whose command does not end and
   * on which no byte arrives, so that ended waits settle. A reply that has begun may be an element, so
   * it is awaited.
   */
  async #unblock(call: Call): Promise<void> {
    const id = clientIdOf(call.redis)
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

/** Whether a server ended a wait because it became a replica or because the slot moved. */
function isElsewhere(error: RedelayedError): boolean {
  return error instanceof CommandError && ELSEWHERE.includes(error.redisCode)
}

/** Whether another client has ended a wait with `CLIENT UNBLOCK … ERROR`, so that the server itself works. */
function isUnblocked(error: RedelayedError): boolean {
  return error instanceof CommandError && error.redisCode === 'UNBLOCKED' && /via CLIENT UNBLOCK/.test(error.message)
}

const ELSEWHERE = ['UNBLOCKED', 'MOVED', 'ASK']
