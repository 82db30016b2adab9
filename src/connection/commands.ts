import type { Cluster, Redis } from 'ioredis'
import { ConnectionError, ShutdownError, type RedelayedError } from '../errors.js'
import type { CommandArg } from '../lua/script.js'
import type { Sender } from '../lua/run.js'
import { isRefusedByReplica, translateError } from './server-errors.js'
import type { Topology } from './topology.js'

/** How often an idempotent command is sent again when connections break one after the other. */
const MAX_RETRIES = 3

type Command = readonly [command: string, args: readonly CommandArg[]]

/** Sends commands and counts those under way, so that a shutdown can let them finish. Replies carry bytes as `Buffer`. */
export class Commands implements Sender {
  readonly #topology: Topology
  readonly #patience: number
  #underWay = 0
  #wholes = 0
  #idle: (() => void) | undefined
  #closed = false
  /** Each ends a command that the layer below may keep for its next connection. */
  readonly #kept = new Set<() => void>()

  /** `patience`: for how many milliseconds a command that a replica refused is sent to the next master. */
  constructor(topology: Topology, patience: number) {
    this.#topology = topology
    this.#patience = patience
  }

  /** See `Topology.resends`. */
  get resends(): boolean {
    return this.#topology.resends
  }

  /** See `Topology.moves`. */
  get moves(): boolean {
    return this.#topology.moves
  }

  /** One async frame for the usual case: this is where every offer passes. */
  async call(command: string, args: readonly CommandArg[], options?: { idempotent?: boolean }): Promise<unknown> {
    this.#enter()
    let client: Redis | Cluster | undefined
    try {
      const connected = this.#topology.commands()
      client = connected instanceof Promise ? await connected : connected
      if (!client.isCluster) writeTogether(client as Redis)
      return await this.#unlessGivenUp(client.callBuffer(command, ...args))
    } catch (thrown) {
      return await this.#again(thrown, client, command, args, options?.idempotent === true)
    } finally {
      this.#leave()
    }
  }

  async pipeline(commands: readonly Command[]): Promise<unknown[]> {
    this.#enter()
    try {
      const [first, replies] = await this.#pipeline(commands)
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

  /** Something that takes several commands: a shutdown lets all of them finish. */
  async whole<T>(action: () => Promise<T>): Promise<T> {
    this.#enter()
    this.#wholes++
    try {
      return await action()
    } finally {
      this.#wholes--
      this.#leave()
    }
  }

  /** Refuses new commands and resolves when those under way have ended. */
  async drain(): Promise<void> {
    this.#closed = true
    if (this.#underWay === 0) return
    await new Promise<void>((resolve) => (this.#idle = resolve))
  }

  /** There is no server to wait for: ends what is under way, where only the user's client could, which stays as it is. */
  giveUp(): void {
    for (const end of this.#kept) end()
  }

  #unlessGivenUp<T>(reply: Promise<T>): Promise<T> {
    if (!this.#topology.resends) return reply
    return new Promise((resolve, reject) => {
      const end = (): void => {
        this.#kept.delete(end)
        reject(new ConnectionError('the client was shut down before Redis answered', 'unknown'))
      }
      this.#kept.add(end)
      reply.then(resolve, reject).finally(() => this.#kept.delete(end))
    })
  }

  /** Where it went, and one result or error per command, also when none of them could be sent. */
  async #pipeline(commands: readonly Command[]): Promise<[client: Redis | Cluster | undefined, replies: unknown[]]> {
    let client: Redis | Cluster | undefined
    try {
      client = await this.#topology.commands()
      const pipeline = client.pipeline()
      for (const [command, args] of commands) pipeline.callBuffer(command, ...args)
      const results = await this.#unlessGivenUp(pipeline.exec())
      const replies = commands.map((_, index) => {
        const [error, result] = results?.[index] ?? [new Error('the pipeline gave no reply'), undefined]
        return error === null ? result : translateError(error)
      })
      return [client, replies]
    } catch (thrown) {
      const error = translateError(thrown)
      return [client, commands.map(() => error)]
    }
  }

  /** Whether the server refused because it is not the master any more, and another one can be found. */
  #isDemoted(client: Redis | Cluster | undefined, error: unknown): boolean {
    return client !== undefined && isRefusedByReplica(error) && this.#topology.onDemoted(client)
  }

  /** After a failover the old master may be found a few times more, so the number of attempts says nothing. */
  #giveUpAt(): number {
    return performance.now() + this.#patience
  }

  async #again(
    thrown: unknown,
    client: Redis | Cluster | undefined,
    command: string,
    args: readonly CommandArg[],
    idempotent: boolean,
  ): Promise<unknown> {
    const until = this.#giveUpAt()
    for (let broken = 0; ;) {
      const error = translateError(thrown)
      const mayRetry = this.#isDemoted(client, error)
        ? performance.now() < until
        : mayRepeat(thrown, error, idempotent) && broken++ < MAX_RETRIES
      if (this.#closed || !mayRetry) throw error
      try {
        client = await this.#topology.commands()
        return await this.#unlessGivenUp(client.callBuffer(command, ...args))
      } catch (again) {
        thrown = again
      }
    }
  }

  #enter(): void {
    if (this.#closed && this.#wholes === 0) throw new ShutdownError('the client was shut down')
    this.#underWay++
  }

  #leave(): void {
    if (--this.#underWay === 0) this.#idle?.()
  }
}

/**
 * Commands of one turn leave in few writes, because with many callers at once writing is what costs most; not in a single
 * one, so that the server starts on the first while the others are still being made.
 */
function writeTogether({ stream }: Redis): void {
  if (stream === undefined) return
  if (stream.writableCorked === 0) {
    stream.cork()
    process.nextTick(uncork, stream)
  } else if (stream.writableLength > WRITE_BYTES) {
    stream.uncork()
    stream.cork()
  }
}

const WRITE_BYTES = 4_096

function uncork(stream: Redis['stream']): void {
  stream.uncork()
}

/** A failed wait for a connection is final; a command that met a closing socket, or may be repeated, gets another try. */
function mayRepeat(thrown: unknown, error: RedelayedError, idempotent: boolean): boolean {
  if (thrown === error || !(error instanceof ConnectionError)) return false
  return idempotent || error.outcome === 'not-applied'
}
