import type { Redis } from 'ioredis'
import { ConnectionError, type RedelayedError } from '../../errors.js'
import { abandon } from './disconnect.js'

/**
 * One attempt to open a connection. All that has to be answered on the way (the search for the server, TCP, TLS, the handshake, what
 * prepares the connection) is one step with one time limit: a peer that accepts and then is silent must not hold anything up.
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
    this.#over.catch(() => undefined) // it may be given up after its end
    this.restart()
  }

  /** The client that is being connected. */
  get redis(): Redis | undefined {
    return this.#redis
  }

  /** Ends with the steps, or when they are given up; what they do later is of no effect. */
  async run<T>(steps: () => Promise<T>): Promise<T> {
    try {
      return await Promise.race([steps(), this.#over])
    } finally {
      clearTimeout(this.#timer)
    }
  }

  /** The limit counts from now on: the server has just answered a part of what is much. */
  restart(): void {
    clearTimeout(this.#timer)
    if (this.#givenUp !== undefined) return
    this.#timer = setTimeout(() => {
      const message = `the server was silent for ${this.#limitMs / 1000} s ${stageOf(this.#redis)}`
      this.giveUp(new ConnectionError(message, 'not-applied'))
    }, this.#limitMs)
  }

  /** The client to be connected, once it is made; it is not used when that took too long. */
  use(redis: Redis): Redis {
    this.#redis = redis
    if (this.#givenUp === undefined) return redis
    abandon(redis)
    throw this.#givenUp
  }

  giveUp(error: RedelayedError): void {
    this.#givenUp ??= error
    clearTimeout(this.#timer)
    if (this.#redis !== undefined) abandon(this.#redis)
    this.#reject(error)
  }
}

/** What was not answered. */
function stageOf(redis: Redis | undefined): string {
  switch (redis?.status) {
    case undefined:
    case 'wait':
      return 'while the client looked for it'
    case 'connecting':
      return 'while the client connected'
    case 'connect':
      return 'during the handshake'
    default:
      return 'while the client prepared the connection'
  }
}
