import type { ChannelListener } from '../redis/subscriber.js'
import { ShutdownError, failureOf } from '../errors.js'
import type { Emit } from '../events.js'
import type { Settings } from '../options.js'
import { systemClock } from '../timing/clock.js'
import { announcedTime } from '../scheduler/due-scheduler.js'
import { Sweeper } from '../scheduler/sweeper.js'
import { Poller, type PollerParams } from './poller.js'

/** A queue's channel stays subscribed for so long after its last wait, so that consumers in a loop cost nothing. */
const LINGER_MS = 60_000

interface Channels {
  add(channel: string, listener: ChannelListener): void
  remove(channel: string): void
}

/** A queue, and how it is polled. */
export interface PollTarget extends Pick<PollerParams, 'poll' | 'release' | 'isConnected'> {
  /** The public name, for events. */
  readonly name: string
  readonly channel: string
}

interface Entry {
  readonly target: PollTarget
  readonly poller: Poller
  lastUsed: number
}

/** One poller per queue of this client: started by the first wait, stopped a while after the last. */
export class PollRegistry {
  readonly #channels: Channels
  readonly #emit: Emit
  readonly #entries = new Map<string, Entry>()
  readonly #stopping = new Set<Promise<void>>()
  readonly #sweeper: Sweeper<Entry>
  #closed = false

  constructor(params: { channels: Channels; settings: Settings; emit: Emit }) {
    this.#channels = params.channels
    this.#emit = params.emit
    this.#sweeper = new Sweeper({
      members: this.#entries,
      interval: params.settings.sweepInterval,
      sweep: (entry) => this.#sweep(entry),
      clock: systemClock,
      random: Math.random,
    })
  }

  get isClosed(): boolean {
    return this.#closed
  }

  /** The poller of a queue, for a wait that begins now. */
  use(target: PollTarget): Poller {
    if (this.#closed) throw new ShutdownError('the client was shut down')
    const entry = this.#entries.get(target.channel) ?? this.#open(target)
    entry.lastUsed = systemClock.now()
    return entry.poller
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#sweeper.stop()
    for (const entry of this.#entries.values()) this.#stop(entry)
    await Promise.all(this.#stopping)
  }

  #open(target: PollTarget): Entry {
    const report = (error: Error): void => this.#report(target, error)
    const poller = new Poller({ ...target, onError: report, clock: systemClock, random: Math.random })
    const entry = { target, poller, lastUsed: 0 }
    this.#entries.set(target.channel, entry)
    this.#channels.add(target.channel, {
      onSubscribed: () => {
        this.#emit('subscribed', { queue: target.name })
        poller.onSubscribed()
      },
      onUnsubscribed: () => undefined,
      onMessage: (message) => {
        const at = announcedTime(message)
        if (at !== undefined) poller.onAnnounced(at)
      },
      onError: report,
    })
    this.#sweeper.start()
    return entry
  }

  #sweep(entry: Entry): void {
    if (entry.poller.isWanted) {
      entry.lastUsed = systemClock.now()
      entry.poller.sweep()
    } else if (systemClock.now() - entry.lastUsed > LINGER_MS) this.#stop(entry)
  }

  #stop(entry: Entry): void {
    this.#entries.delete(entry.target.channel)
    this.#channels.remove(entry.target.channel)
    const stopped = entry.poller.stop().finally(() => this.#stopping.delete(stopped))
    this.#stopping.add(stopped)
  }

  #report(target: PollTarget, cause: Error): void {
    if (this.#closed || cause instanceof ShutdownError) return
    this.#emit('error', failureOf('poll', cause, { queue: target.name }))
  }
}
