import type { Redis } from 'ioredis'
import {
  CommandError,
  ConnectionError,
  ReadOnlyError,
  UnsupportedServerError,
  copyOf,
  type RedelayedError,
} from '../../errors.js'
import { asArray, asInteger } from '../../store/replies.js'
import type { Command } from '../../store/sender.js'
import { nextTurn } from '../../timing/pause.js'
import { isSameWait, type Wait } from './durability.js'
import type { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { dropWhenOverdue } from '../replies/reply-watchdog.js'
import type { IsStale } from '../connections/remote-address.js'
import { isRefusedByReplica, translateError } from '../replies/server-errors.js'
import type { WaitedFor } from '../../store/durable-scripts.js'

/** The limits of one pipeline; further calls use the next one. */
const MAX_COMMANDS = 1_000
const MAX_BYTES = 4 * 1024 * 1024

export interface Sent {
  /** The client that sent the commands; missing if they could not be sent. */
  readonly redis?: Redis
  /** A `WaitedFor` or an error per command, in order. */
  readonly replies: readonly (WaitedFor | RedelayedError)[]
}

interface Job {
  readonly commands: readonly Command[]
  readonly wait: Wait
  readonly resolve: (answer: Sent) => void
}

/**
 * One connection for writes with a WAIT. WAIT blocks its connection and covers everything written on it
 * before, so the writes that arrive during one WAIT are sent together afterwards, with one WAIT at the end.
 */
export class DurableConnection {
  readonly #connection: ReconnectingConnection
  readonly #graceMs: number
  #jobs: Job[] = []
  #loop: Promise<void> | undefined
  #last: Wait | undefined
  #finishing = false
  readonly #probed = new WeakMap<Redis, Set<string>>()

  /** `graceMs`: how much longer than the timeout of a wait the server may be silent before the connection is dropped. */
  constructor(connection: ReconnectingConnection, graceMs: number) {
    this.#connection = connection
    this.#graceMs = graceMs
  }

  /** The number of pending calls. */
  get size(): number {
    return this.#jobs.length
  }

  get idle(): boolean {
    return this.#loop === undefined
  }

  /** Whether its last wait was the same. */
  suits(wait: Wait): boolean {
    return this.#last !== undefined && isSameWait(this.#last, wait)
  }

  send(commands: readonly Command[], wait: Wait): Promise<Sent> {
    this.#last = wait
    return new Promise((resolve) => {
      this.#jobs.push({ commands, wait, resolve })
      // a turn later, so that the offers of one turn share the wait
      this.#loop ??= nextTurn().then(() => this.#run())
    })
  }

  /** Replaces the connection after the server refused; the server still answers the commands in flight. */
  retire(redis: Redis): void {
    this.#connection.retire(redis)
  }

  /** Drops the connection to a server that is no longer the master. */
  leave(isStale: IsStale): void {
    this.#connection.leave(isStale)
  }

  /** From now on calls fail instead of waiting for a connection. */
  async finish(): Promise<void> {
    this.#finishing = true
    if (this.#connection.current === undefined) await this.#connection.close()
  }

  async close(): Promise<void> {
    await this.#connection.close(true)
    await this.#loop
  }

  async #run(): Promise<void> {
    for (let first = this.#jobs[0]; first !== undefined; first = this.#jobs[0]) {
      let redis: Redis | undefined
      try {
        if (this.#finishing) await this.finish()
        redis = await this.#connection.get()
        await this.#probe(redis, first.wait)
      } catch (thrown) {
        const jobs = redis === undefined ? this.#jobs.splice(0) : this.#takeBatch(first.wait)
        fail(jobs, translateError(thrown), redis)
        continue
      }
      await this.#send(redis, first.wait, this.#takeBatch(first.wait))
    }
    this.#loop = undefined
  }

  /** The calls at the front of the queue that share a wait. */
  #takeBatch(wait: Wait): Job[] {
    const [batch, rest]: [Job[], Job[]] = [[], []]
    let commands = 0
    let bytes = 0
    for (const job of this.#jobs) {
      const size = bytesOf(job.commands)
      const fits = commands + job.commands.length <= MAX_COMMANDS && bytes + size <= MAX_BYTES
      if (!isSameWait(job.wait, wait) || (batch.length > 0 && !fits)) {
        rest.push(job)
        continue
      }
      batch.push(job)
      commands += job.commands.length
      bytes += size
    }
    this.#jobs = rest
    return batch
  }

  /** Checks the wait before the writes: if the server refused it afterwards, the writes would be done without a wait. */
  async #probe(redis: Redis, wait: Wait): Promise<void> {
    if (wait.command === undefined) return
    const known = this.#probed.get(redis) ?? new Set()
    this.#probed.set(redis, known)
    if (known.has(wait.command)) return
    const stopWatching = dropWhenOverdue(this.#connection, redis, { dueMs: 0, graceMs: this.#graceMs })
    try {
      await redis.call(wait.command, ...wait.probe)
    } catch (thrown) {
      const error = this.#connection.errorOf(thrown)
      // no write was sent, even if the connection broke
      if (error instanceof ConnectionError) throw new ConnectionError(error.message, 'not-applied', { cause: error })
      if (isFromReplica(error)) throw new ReadOnlyError({ cause: error })
      if (error instanceof UnsupportedServerError && wait.command === 'WAITAOF') {
        throw new UnsupportedServerError('durability.aof needs Redis or Valkey 7.2 or later; nothing was sent', {
          cause: error,
        })
      }
      throw error
    } finally {
      stopWatching()
    }
    known.add(wait.command)
  }

  async #send(redis: Redis, wait: Wait, jobs: readonly Job[]): Promise<void> {
    const pipeline = redis.pipeline()
    for (const { commands } of jobs) for (const [command, args] of commands) pipeline.callBuffer(command, ...args)
    if (wait.command !== undefined) pipeline.callBuffer(wait.command, ...wait.args)
    const stopWatching = dropWhenOverdue(this.#connection, redis, { dueMs: wait.timeoutMs, graceMs: this.#graceMs })
    let answers: unknown[]
    let outcome: Outcome
    try {
      const results = (await pipeline.exec()) ?? []
      answers = results.map(([error, reply]) => (error === null ? reply : this.#connection.errorOf(error)))
      outcome = outcomeOf(wait, answers.at(-1))
    } catch (thrown) {
      fail(jobs, this.#connection.errorOf(thrown), redis)
      return
    } finally {
      stopWatching()
    }
    let position = 0
    for (const { commands, resolve } of jobs) {
      const replies = commands.map(() => withOutcome(answers[position++], outcome))
      resolve({ redis, replies })
    }
  }
}

type Outcome = Omit<WaitedFor, 'reply'> | ConnectionError

function outcomeOf(wait: Wait, answer: unknown): Outcome {
  if (wait.command === undefined) return { by: wait.asked }
  if (answer instanceof ConnectionError) return answer
  if (answer instanceof Error) {
    const error = translateError(answer)
    // a demoted master has carried out the writes; the next master may not have them
    if (isFromReplica(error)) {
      return new ConnectionError('the server became a replica during the wait', 'unknown', { cause: error })
    }
    return { by: { replicas: 0, aof: false }, error }
  }
  if (wait.command === 'WAIT') return { by: { replicas: asInteger(answer), aof: false } }
  const [local, replicas] = asArray(answer).map(asInteger)
  return { by: { replicas: replicas ?? 0, aof: local === 1 } }
}

/** The result of a write. Without a reply to the wait it is an error, because the write may be lost with the server. */
function withOutcome(reply: unknown, outcome: Outcome): WaitedFor | RedelayedError {
  if (reply instanceof Error) return translateError(reply)
  return outcome instanceof ConnectionError ? copyOf(outcome) : { reply, ...outcome }
}

/** `WAIT cannot be used with replica instances`, and the error that ends a wait when a master becomes a replica. */
function isFromReplica(error: RedelayedError): boolean {
  if (isRefusedByReplica(error)) return true
  return error instanceof CommandError && (error.redisCode === 'UNBLOCKED' || /replica instances/.test(error.message))
}

function fail(jobs: readonly Job[], error: RedelayedError, redis: Redis | undefined): void {
  for (const { commands, resolve } of jobs) {
    resolve({ ...(redis !== undefined && { redis }), replies: commands.map(() => copyOf(error)) })
  }
}

function bytesOf(commands: readonly Command[]): number {
  let bytes = 0
  for (const [, args] of commands) for (const arg of args) bytes += arg.length
  return bytes
}
