import type { Cluster, Redis } from 'ioredis'
import { ConnectionError, RedelayedError, ShutdownError } from '../errors.js'
import { RELIABLE_PREFIX } from '../keys.js'
import type { CallOptions, Command, CommandArg, Resend, Sender } from '../store/sender.js'
import type { Settings } from '../options.js'
import { atMost } from '../timing/pause.js'
import { asUnknown, isRepeatable, mayBeCarriedOut } from './call-errors.js'
import { CallTime } from './call-time.js'
import { KeptCommands } from './kept-commands.js'
import { bytesReadOf } from './replies/progress.js'
import { brokenAt, isRefusedByReplica, translateError } from './replies/server-errors.js'
import { tooOldForReliable } from './connections/server-version.js'
import { noConnectionYet, whereAndWhy, type Topology } from './topology/topology.js'
import { writeTogether } from './write-together.js'

/** The most retries of a command while one connection after the other breaks. */
const MAX_RETRIES = 3

/** A failed call and its start. */
interface Failed {
  readonly thrown: unknown
  readonly client: Redis | Cluster | undefined
  readonly command: string
  readonly args: readonly CommandArg[]
  readonly resend: Resend | undefined
  readonly startedAt: number
  readonly continues: boolean
}

/** Sends commands and counts those in flight, so that a shutdown can let them finish. Replies have bytes as `Buffer`. */
export class Commands implements Sender {
  readonly #topology: Topology
  readonly #connectTimeout: number
  readonly #time: CallTime
  #underWay = 0
  #operations = 0
  #idle: (() => void) | undefined
  #closed = false
  readonly #kept: KeptCommands

  constructor(topology: Topology, { connectTimeout, commandTimeout }: Settings) {
    this.#topology = topology
    this.#connectTimeout = connectTimeout
    this.#time = new CallTime(connectTimeout + commandTimeout)
    this.#kept = new KeptCommands(this.#time.limitMs, () => topology.address)
    topology.watch?.watchFor({
      oldest: () => this.#kept.oldest,
      onForgotten: () => this.#kept.endAll(`the connection to Redis at ${topology.address} broke`),
    })
  }

  /** See `Topology.resends`. */
  get resends(): boolean {
    return this.#topology.resends
  }

  /**
   * Whether a command that was sent for `key` since `startedAt`, on a connection that broke, may be sent again, because the first attempt
   * can no longer be carried out. Waits for another connection, within the time limit of a call that began then.
   */
  async maySendAgain(key: string, startedAt: number, waitMs = 0): Promise<boolean> {
    while (this.#time.isInTime(startedAt, waitMs) && this.#time.mayRepeat('undoes')) {
      await this.#topology.commands()
      const asked = this.#limited(this.#topology.isOver(key, startedAt)).catch(() => 'unreachable' as const)
      const isOver = await atMost(this.#time.leftMs(startedAt, waitMs), asked)
      if (isOver !== 'unreachable') return isOver === true && this.#time.isInTime(startedAt, waitMs)
      const recovering = this.#topology.recover()
      if (recovering === undefined || this.#closed) return false
      await atMost(this.#time.leftMs(startedAt, waitMs), recovering)
    }
    return false
  }

  /** See `CallTime.isInTime`. */
  isInTime(startedAt: number, waitMs = 0): boolean {
    return this.#time.isInTime(startedAt, waitMs)
  }

  /** See `Topology.connected`. */
  get connected(): boolean {
    return this.#topology.connected
  }

  /** See `noConnectionYet`. */
  noConnectionYet(triedForMs: number): ConnectionError | undefined {
    return noConnectionYet(triedForMs, this.#topology)
  }

  /** See `Topology.moves`. */
  get moves(): boolean {
    return this.#topology.moves
  }

  /** Sends a command, with one async frame in the usual case, because every offer comes here. */
  async call(command: string, args: readonly CommandArg[], options?: CallOptions): Promise<unknown> {
    this.#enter()
    const startedAt = options?.startedAt ?? performance.now()
    const continues = options?.continues === true
    let client: Redis | Cluster | undefined
    try {
      const connected = continues ? this.#connectedInTime(startedAt) : this.#topology.commands()
      client = connected instanceof Promise ? await connected : connected
      if (this.#topology.age.seemsTooOld && isReliable(args)) client = await this.#unlessTooOld(startedAt, continues)
      if (!client.isCluster) writeTogether(client as Redis)
      const reply = client.callBuffer(command, ...args)
      return await (continues ? this.#answeredInTime(startedAt, client, reply) : this.#limited(reply, startedAt))
    } catch (thrown) {
      return await this.#again({ thrown, client, command, args, resend: options?.resend, startedAt, continues })
    } finally {
      this.#leave()
    }
  }

  /** Resolves when the server for commands has answered a PING, in a cluster each master. */
  async ping(timeoutMs: number): Promise<void> {
    const asked = this.trackOperation(() => this.#pingMasters())
    const ended = asked.then(
      () => 'answered' as const,
      (error: unknown) => ({ error }),
    )
    const first = await atMost(timeoutMs, ended)
    if (first === 'answered') return
    if (first !== undefined) throw first.error
    const where = this.#topology.connected ? this.#topology.address : whereAndWhy(this.#topology)
    throw new ConnectionError(`no answer to a PING within ${timeoutMs} ms from ${where}`, 'not-applied')
  }

  async #pingMasters(): Promise<void> {
    if (this.#topology.masters === undefined) return void (await this.call('PING', [], { resend: 'reads' }))
    try {
      const masters = await this.#topology.masters()
      await Promise.all(masters.map((master) => this.#limited(master.ping())))
    } catch (thrown) {
      throw this.#errorOf(thrown)
    }
  }

  async pipeline(commands: readonly Command[], options?: Omit<CallOptions, 'resend'>): Promise<unknown[]> {
    this.#enter()
    try {
      const [first, replies] = await this.#pipeline(commands, options)
      let client = first
      for (const until = this.#giveUpAt(); performance.now() < until && !this.#closed;) {
        const refused = replies.flatMap((reply, at) => (isRefusedByReplica(reply) ? [at] : []))
        const [index] = refused
        if (index === undefined || !this.#isDemoted(client, replies[index])) break
        const [next, again] = await this.#pipeline(refused.map((at) => commands[at] as Command))
        client = next
        refused.forEach((at, position) => (replies[at] = again[position]))
      }
      return replies
    } finally {
      this.#leave()
    }
  }

  /** Runs an operation of several commands; a shutdown lets all of them finish. */
  async trackOperation<T>(action: () => Promise<T>): Promise<T> {
    // also while other operations are in flight: on a slow server a program that keeps calling would start new ones without end
    if (this.#closed) throw new ShutdownError('the client was shut down')
    this.#enter()
    this.#operations++
    try {
      return await action()
    } finally {
      this.#operations--
      this.#leave()
    }
  }

  /** A shutdown has begun: calls go on, but are repeated only within the time limit of a call from now on. */
  beginShutdown(): void {
    this.#time.beginShutdown()
  }

  /** Refuses new commands, and resolves when those in flight have ended. */
  async drain(): Promise<void> {
    this.#closed = true
    if (this.#underWay === 0) return
    await new Promise<void>((resolve) => (this.#idle = resolve))
  }

  /** Ends commands in flight when no server can be reached. On the user's client, which stays open, nothing else would end them. */
  giveUp(): void {
    this.#kept.endAll('the client was shut down before Redis answered')
  }

  /** `since`: when the call began. */
  #limited<T>(reply: Promise<T>, since?: number): Promise<T> {
    const { watch } = this.#topology
    if (watch === undefined) return reply
    watch.start()
    return this.#kept.keep(reply, since)
  }

  /** The connection for the rest of a call; rejects with the outcome `not-applied` when the time of the call is over. */
  #connectedInTime(startedAt: number): Promise<Redis | Cluster> {
    const late = (): ConnectionError =>
      new ConnectionError(
        `no connection within ${this.#time.limitMs / 1000} s: ${whereAndWhy(this.#topology)}`,
        'not-applied',
      )
    if (!this.#time.isInTime(startedAt)) {
      const { address } = this.#topology
      const over = `the ${this.#time.limitMs / 1000} s of the call were over before Redis at ${address} was asked again`
      return Promise.reject(new ConnectionError(over, 'not-applied'))
    }
    return this.#time.settle(startedAt, async () => this.#topology.commands(), late)
  }

  /**
   * The reply to the rest of a call, within the limit of the call. If bytes have arrived on a connection of this client when that time is
   * over, the call waits on: the watchdog ends it when the connection falls silent.
   */
  #answeredInTime<T>(startedAt: number, client: Redis | Cluster, reply: Promise<T>): Promise<T> {
    if (this.#topology.watch !== undefined) return this.#limited(reply, startedAt)
    const redis = client as Redis
    const before = bytesReadOf(redis)
    const late = (): ConnectionError =>
      new ConnectionError(
        `Redis at ${this.#topology.address} has not answered within ${this.#time.limitMs / 1000} s`,
        'unknown',
      )
    return this.#time.settle(
      startedAt,
      () => reply,
      late,
      () => bytesReadOf(redis) === before,
    )
  }

  /** Sends commands; resolves with the client and one result or error per command, even if none could be sent. */
  async #pipeline(
    commands: readonly Command[],
    { startedAt = performance.now(), continues = false }: Omit<CallOptions, 'resend'> = {},
  ): Promise<[client: Redis | Cluster | undefined, replies: unknown[]]> {
    let client: Redis | Cluster | undefined
    try {
      client = await (continues ? this.#connectedInTime(startedAt) : this.#topology.commands())
      if (this.#topology.age.seemsTooOld && commands.some(([, args]) => isReliable(args)))
        client = await this.#unlessTooOld(startedAt, continues)
      const pipeline = client.pipeline()
      for (const [command, args] of commands) pipeline.callBuffer(command, ...args)
      const sent = pipeline.exec()
      const results = await (continues ? this.#answeredInTime(startedAt, client, sent) : this.#limited(sent, startedAt))
      const replies = commands.map((_, index) => {
        const [error, result] = results?.[index] ?? [new Error('the pipeline gave no reply'), undefined]
        return error === null ? result : this.#errorOf(error)
      })
      return [client, replies]
    } catch (thrown) {
      const error = this.#errorOf(thrown)
      return [client, commands.map(() => error)]
    }
  }

  /** Whether the server refused because it is no longer the master, and another master can be found. */
  #isDemoted(client: Redis | Cluster | undefined, error: unknown): boolean {
    return client !== undefined && isRefusedByReplica(error) && this.#topology.onDemoted(client)
  }

  /** The end of retries after a failover: a time, because the old master may be found any number of times. */
  #giveUpAt(): number {
    return performance.now() + this.#connectTimeout
  }

  /** Repeats a failed call until it succeeds, or may not be repeated: then with the error of the last attempt. */
  async #again(failed: Failed): Promise<unknown> {
    const { command, args, resend, startedAt, continues } = failed
    const demotedUntil = this.#giveUpAt()
    const retries = { left: MAX_RETRIES }
    let { thrown, client } = failed
    let mayBeDone = false
    for (;;) {
      const last = this.#errorOf(thrown)
      mayBeDone ||= resend !== 'reads' && mayBeCarriedOut(last)
      const error = mayBeDone ? asUnknown(last, this.#topology.address) : last
      const isDemoted = this.#isDemoted(client, last)
      const mayRepeat = isDemoted
        ? performance.now() < demotedUntil
        : isRepeatable(thrown, last, resend) && (await this.#recovered(failed, last, retries))
      if (!mayRepeat || this.#closed) throw error
      try {
        const isRest = continues && !isDemoted // after a failover the call may take longer
        client = await (isRest ? this.#connectedInTime(startedAt) : this.#topology.commands())
        // if the wait took too long, the next round ends the call
        if (!isDemoted && !this.#time.isInTime(startedAt)) continue
        const reply = client.callBuffer(command, ...args)
        if (isRest) return await this.#answeredInTime(startedAt, client, reply)
        const isLast = this.#time.shutdownAt < Infinity // the shutdown waits for it
        return await this.#limited(reply, isLast ? Math.max(startedAt, this.#time.shutdownAt) : undefined)
      } catch (again) {
        thrown = again
      }
    }
  }

  /** Whether, after a wait for the recovery, there is time for another attempt, and the last one can no longer be carried out beside it. */
  async #recovered(
    { args, resend, startedAt }: Failed,
    last: RedelayedError,
    retries: { left: number },
  ): Promise<boolean> {
    if (this.#closed || !this.#time.isInTime(startedAt)) return false
    const recovering = this.#topology.recover()
    // silent nodes may be asked for the slots one after the other
    const since = resend === undefined ? startedAt : Math.min(startedAt, this.#time.shutdownAt)
    const msLeft = this.#time.mayRepeat(resend) ? this.#time.leftMs(since) : 0
    if (recovering !== undefined) await atMost(msLeft, recovering)
    else if (retries.left-- === 0) return false
    if (!this.#time.mayRepeat(resend)) return false
    return resend !== 'undoes' || !mayBeCarriedOut(last) || (await this.#isOver(args, startedAt))
  }

  /** Whether a script that may be on its way to the server can no longer be carried out. */
  #isOver([, , key = '']: readonly CommandArg[], startedAt: number): Promise<boolean> {
    return this.maySendAgain(key.toString(), startedAt).catch(() => false)
  }

  /** Translates an error; for a connection of this client the topology knows why it broke. */
  #errorOf(thrown: unknown): RedelayedError {
    if (thrown instanceof RedelayedError) return thrown
    const { address, problem, watch } = this.#topology
    return brokenAt(address, translateError(thrown), watch === undefined ? problem : undefined)
  }

  #enter(): void {
    if (this.#closed && this.#operations === 0) throw new ShutdownError('the client was shut down')
    this.#underWay++
  }

  /**
   * Asks a server again that seems too old for reliable queues, for as long as the call may last. Resolves with the client, which can be
   * another one by then.
   */
  async #unlessTooOld(startedAt: number, continues: boolean): Promise<Redis | Cluster> {
    if (await this.#topology.age.isTooOld(this.#time.leftMs(startedAt))) throw tooOldForReliable()
    return continues ? this.#connectedInTime(startedAt) : this.#topology.commands()
  }

  #leave(): void {
    if (--this.#underWay === 0) this.#idle?.()
  }
}

/** Whether a command, or a script, has a key of a reliable queue; its first key is among its first arguments. */
function isReliable(args: readonly CommandArg[]): boolean {
  for (let at = 0; at < 3; at++) {
    const arg = args[at]
    if (typeof arg === 'string' && arg.startsWith(RELIABLE_PREFIX)) return true
  }
  return false
}
