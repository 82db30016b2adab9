import { pause } from '../timing/pause.js'

/** The most script time before a pause. */
const BURST_MS = 2

/** Pauses between scripts: after two milliseconds of script time it pauses for as long, so that the server can serve other clients. */
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
