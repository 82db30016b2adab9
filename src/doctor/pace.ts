import { pause } from '../timing/pause.js'

/** So much may be asked of a server in one go. */
const BURST_MS = 2

/** Leaves a server as much time for others as it is asked for: between scripts, after two milliseconds of them. */
export class Pace {
  #busyMs = 0

  async run<T>(script: () => Promise<T>): Promise<T> {
    const since = performance.now()
    const reply = await script()
    this.#busyMs += performance.now() - since
    if (this.#busyMs >= BURST_MS) {
      await pause(this.#busyMs)
      this.#busyMs = 0
    }
    return reply
  }
}
