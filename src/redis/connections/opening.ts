import type { Redis } from 'ioredis'
import { ConnectionError, type RedelayedError } from '../../errors.js'
import { abandon } from './disconnect.js'

/**
 * One attempt to open a connection. All its stages (the search for the server, TCP, TLS, the handshake, the commands that
 * prepare the connection) are one step with one time limit, because a server can accept a connection and then be silent.
 */
export class Opening {
  readonly #limitMs: number
  readonly #over: Promise<never>
  #timer: NodeJS.Timeout | undefined
  #redis: Redis | undefined
  #givenUp: RedelayedError | undefined
  #reject: (error: RedelayedError) => void = () => undefined

  constructor(limitMs: number) {
    this.#limitMs = limitMs
    this.#over = new Promise((_, reject) => (this.#reject = reject))
    this.#over.catch(() => undefined) // the attempt may be abandoned after its end
    this.restart()
  }

  /** The client of this attempt. */
  get redis(): Redis | undefined {
    return this.#redis
  }

  /** The stage that the server has not answered so far, for errors. */
  get silence(): string {
    return `the server was silent ${stageOf(this.#redis)}`
  }

  /** Settles as the steps, or when the attempt is abandoned; ignores later results. */
  async run<T>(steps: () => Promise<T>): Promise<T> {
    try {
      return await Promise.race([steps(), this.#over])
    } finally {
      clearTimeout(this.#timer)
    }
  }

  /** Restarts the limit when the server has answered a part of a long step. */
  restart(): void {
    clearTimeout(this.#timer)
    if (this.#givenUp !== undefined) return
    this.#timer = setTimeout(() => {
      const message = `the server was silent for ${this.#limitMs / 1000} s ${stageOf(this.#redis)}`
      this.giveUp(new ConnectionError(message, 'not-applied'))
    }, this.#limitMs)
  }

  /** Sets the client to connect; destroys it if the attempt was abandoned. */
  use(redis: Redis): Redis {
    this.#redis = redis
    if (this.#givenUp === undefined) return redis
    abandon(redis)
    throw this.#givenUp
  }

  giveUp(error: RedelayedError): void {
    if (this.#givenUp !== undefined) return
    this.#givenUp = error
    clearTimeout(this.#timer)
    if (this.#redis !== undefined) abandon(this.#redis)
    this.#reject(error)
  }
}

/** The unanswered stage. */
function stageOf(redis: Redis | undefined): string {
  switch (redis?.status) {
    case undefined:
    case 'wait':
      return 'while the client searched for it'
    case 'connecting':
      // to a server without TLS a handshake looks like a command that has not ended
      return `while the client connected${redis?.options.tls === undefined ? '' : ' by TLS: does this port speak TLS?'}`
    case 'connect':
      return 'during the handshake'
    default:
      return 'while the client prepared the connection'
  }
}
