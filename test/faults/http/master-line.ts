import { eventually } from '../../support/events.js'
import type { TcpProxy } from '../../support/tcp-proxy.js'
import type { ReplicatedStage } from '../bench/stage.js'

const LOOK_MS = 100

/**
 * The address of the master, as a balancer or a virtual address is one; `sentinel.test.ts` has a service that knows the sentinels. When the sentinels have chosen another master, the lines lead there,
 * and connections to the old one are reset.
 */
export class MasterLine {
  readonly #stage: ReplicatedStage
  readonly #lines: readonly TcpProxy[]
  readonly #timer: NodeJS.Timeout
  #port: number | undefined
  #looking: Promise<void> = Promise.resolve()

  constructor(stage: ReplicatedStage, lines: readonly TcpProxy[]) {
    this.#stage = stage
    this.#lines = lines
    this.#timer = setInterval(() => {
      // a sentinel that is busy with an election answers the next time
      this.#looking = this.#looking.then(() => this.#look()).catch(() => undefined)
    }, LOOK_MS)
  }

  /** Resolves when the lines lead to the master of now. */
  async follow(): Promise<void> {
    await eventually(() => this.#look(), 20_000, LOOK_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #look(): Promise<void> {
    const port = await this.#stage.masterPort()
    if (port === this.#port) return
    const isFirst = this.#port === undefined
    this.#port = port
    if (isFirst) return
    for (const line of this.#lines) {
      line.retarget(port)
      line.cut()
    }
  }
}
