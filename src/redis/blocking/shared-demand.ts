import { nextTurn } from '../../timing/pause.js'

/** The least demand: while this many waiters get their elements, the next command serves the others. */
const LEAST = 200
const MOST = 1_000
/** A client that has been idle for longer waits for the network, and not for the server. */
const IDLE_MS = 0.5

/**
 * The most elements that one command takes for several waiters: more if a slow network leaves the client idle until the reply, fewer
 * if the client is busy meanwhile.
 */
export class SharedDemand {
  #now = LEAST
  #isIdle = false
  /** When the client became idle; `undefined` while it is busy. */
  #idleSince: number | undefined
  #commands = 0

  get now(): number {
    return this.#now
  }

  /** Whether the client was idle while the last full reply was on its way; then the next command should serve all waiters. */
  get isIdle(): boolean {
    return this.#isIdle
  }

  /** A command was sent, and all earlier elements were handed out. */
  sent(): void {
    const command = ++this.#commands
    this.#idleSince = undefined
    void nextTurn().then(() => {
      if (command === this.#commands) this.#idleSince = performance.now()
    })
  }

  /** The command brought `count` elements of the `asked` ones. */
  came(count: number, asked: number): void {
    if (count < asked) return // the command may have waited for elements
    this.#isIdle = this.#idleSince !== undefined && performance.now() - this.#idleSince > IDLE_MS
    this.#now = this.#isIdle ? Math.min(MOST, this.#now * 2) : Math.max(LEAST, this.#now / 2)
  }
}
