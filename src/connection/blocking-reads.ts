import { ShutdownError, toError } from '../errors.js'
import type { Emit } from '../events.js'
import type { Sender } from '../lua/run.js'
import { run } from '../lua/run.js'
import { drain } from '../lua/scripts.js'
import type { Settings } from '../options.js'
import { onAbort } from './abort-signals.js'
import { BlockingLane, learnClientId } from './blocking-lane.js'
import { Link } from './link.js'
import { translateError } from './server-errors.js'
import type { Topology } from './topology.js'
import type { Waiter } from './waiters.js'

export interface WaitOptions {
  /** The most elements to take at once. */
  readonly max: number
  /** Milliseconds; without it the wait has no end. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** All waiting takes of a client, on a few connections (per node, in a cluster). */
export class BlockingReads {
  readonly #topology: Topology
  readonly #settings: Settings
  readonly #sender: Sender
  readonly #emit: Emit
  readonly #lanes = new Map<string, BlockingLane[]>()
  readonly #shared = { hasServed: false }
  #closed = false

  constructor(params: { topology: Topology; settings: Settings; sender: Sender; emit: Emit }) {
    this.#topology = params.topology
    this.#settings = params.settings
    this.#sender = params.sender
    this.#emit = params.emit
  }

  /** Waits for at least one element at the left end of a list; `null` when the time is over. */
  async wait(key: string, options: WaitOptions): Promise<Buffer[] | null> {
    const { signal, timeoutMs } = options
    if (signal?.aborted === true) throw toError(signal.reason)
    return new Promise((resolve, reject) => {
      const timer = timeoutMs === undefined ? undefined : setTimeout(() => end(null), timeoutMs)
      const unlisten = signal && onAbort(signal, () => end(toError(signal.reason)))
      let lane: BlockingLane | undefined
      const settled = (): void => {
        clearTimeout(timer)
        unlisten?.()
      }
      const waiter: Waiter = {
        key,
        slot: 0,
        max: options.max,
        resolve: (elements) => {
          settled()
          resolve(elements)
        },
        reject: (error) => {
          settled()
          reject(error)
        },
      }
      const end = (how: Error | null): void => {
        if (waiter.ended === undefined) waiter.ended = how
        lane = this.#laneOf(waiter)
        lane?.cancel(waiter)
      }
      void this.#assign(waiter)
    })
  }

  /** Something has just been moved to `key` by this client. */
  prefer(key: string): void {
    for (const lanes of this.#lanes.values()) {
      for (const lane of lanes) if (lane.has(key)) lane.prefer(key)
    }
  }

  /** Whether a command waits at a server now. */
  get blocked(): boolean {
    return [...this.#lanes.values()].flat().some((lane) => lane.blocked)
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#lanes.values()].flat().map((lane) => lane.close()))
  }

  async #assign(waiter: Waiter): Promise<void> {
    try {
      const place = this.#topology.place(waiter.key)
      const { node, slot } = place instanceof Promise ? await place : place
      waiter.slot = slot
      if (this.#closed) throw new ShutdownError('the client was shut down')
      if (waiter.ended === null) waiter.resolve(null)
      else if (waiter.ended !== undefined) waiter.reject(waiter.ended)
      else this.#choose(node, waiter.key).add(waiter)
    } catch (thrown) {
      waiter.reject(translateError(thrown))
    }
  }

  /** The lane that waits for the key already, or a free one, or a new one, or the one with the fewest keys. */
  #choose(node: string, key: string): BlockingLane {
    const lanes = this.#lanes.get(node) ?? []
    this.#lanes.set(node, lanes)
    const found = lanes.find((lane) => lane.has(key)) ?? lanes.find((lane) => lane.size === 0)
    if (found !== undefined) return found
    if (lanes.length >= this.#settings.blockingConnections) {
      return lanes.reduce((least, lane) => (lane.size < least.size ? lane : least))
    }
    const lane = this.#open(node)
    lanes.push(lane)
    return lane
  }

  #open(node: string): BlockingLane {
    const link = new Link({
      role: 'blocking',
      open: () => this.#topology.dedicated(node === '' ? undefined : node),
      prepare: learnClientId,
      connectTimeout: this.#settings.connectTimeout,
      emit: this.#emit,
    })
    return new BlockingLane({
      link,
      beside: (redis) => this.#topology.beside(redis),
      drain: (key, count) => run(this.#sender, drain, { destination: key }, { count }),
      probe: async (key) => void (await this.#sender.call('LLEN', [key])),
      shared: this.#shared,
      onMoved: (waiters) => void this.#reassign(waiters),
    })
  }

  async #reassign(waiters: Waiter[]): Promise<void> {
    await this.#topology.refresh().catch(() => undefined)
    for (const waiter of waiters) await this.#assign(waiter)
  }

  #laneOf(waiter: Waiter): BlockingLane | undefined {
    for (const lanes of this.#lanes.values()) for (const lane of lanes) if (lane.has(waiter.key)) return lane
    return undefined
  }
}
