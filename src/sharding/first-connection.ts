import type { Commands } from '../redis/commands.js'
import type { Clock } from '../timing/clock.js'

/** Waits that end with nothing before there was any connection reject, because the shards may hold something. */
export class FirstConnection {
  readonly #commands: Pick<Commands, 'noConnectionYet'>
  readonly #clock: Pick<Clock, 'now'>
  #triedSince: number | undefined
  #isKnown = false

  constructor(commands: Pick<Commands, 'noConnectionYet'>, clock: Pick<Clock, 'now'>) {
    this.#commands = commands
    this.#clock = clock
  }

  /** A wait begins. */
  tried(): void {
    this.#triedSince ??= this.#clock.now()
  }

  /** A call was answered. */
  made(): void {
    this.#isKnown = true
  }

  /**
   * For a wait that ended with nothing.
   * @throws {ConnectionError} until there was a connection, unless there was hardly time for one
   */
  assertMade(): void {
    if (this.#isKnown) return
    this.#isKnown = this.#commands.noConnectionYet(Infinity) === undefined
    const error = this.#commands.noConnectionYet(this.#clock.now() - (this.#triedSince ?? Infinity))
    if (error !== undefined) throw error
  }
}
