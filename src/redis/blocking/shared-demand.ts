import { nextTurn } from '../../timing/pause.js'

/** While so many decode, the next command serves the other waiters. */
const LEAST = 200
const MOST = 1_000
/** A client that has been idle for longer waits for the network, and not for the server. */
const IDLE_MS = 0.5

/**
 * The most elements that one command takes for several waiters. Where the client is idle until the reply comes, as the network is slow, a command takes
 * more; where the client has enough to do meanwhile, fewer.
 */
export class SharedDemand {
  #now = LEAST
  #isIdle = false
  /** When the client had nothing left to do; `undefined` while it has. */
  #idleSince: number | undefined
  #commands = 0

  get now(): number {
    return this.#now
  }

  /** Whether the client had nothing to do while the last full reply was on its way: then all waiters had better be in the next command. */
  get isIdle(): boolean {
    return this.#isIdle
  }

  /** A command was sent, and what came before was handed out. */
  sent(): void {
    const command = ++this.#commands
    this.#idleSince = undefined
    void nextTurn().then(() => {
      if (command === this.#commands) this.#idleSince = performance.now()
    })
  }

  /** The command has brought so many, of as many as it asked for. */
  came(count: number, asked: number): void {
    if (count < asked) return // it may have waited for them
    this.#isIdle = this.#idleSince !== undefined && performance.now() - this.#idleSince > IDLE_MS
    this.#now = this.#isIdle ? Math.min(MOST, this.#now * 2) : Math.max(LEAST, this.#now / 2)
  }
}
