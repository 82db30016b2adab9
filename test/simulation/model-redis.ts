import type { TransferOptions, TransferResult } from '../../src/scheduler/transfer-task.js'
import type { World } from './world.js'

/** The client's end of a subscription. */
export interface Subscriber {
  onMessage(due: number): void
}

interface Message {
  readonly due: number
  /** The true time since when it could have been delivered. */
  dueSince: number
}

const IDLE_MS = 3_600_000
const LEASE_MS = 25

/** One Redis with one delayed queue: what offer.lua and transfer.lua do to it, and its clock. */
export class ModelRedis {
  readonly #world: World
  readonly #batch: number
  readonly #crowd: number
  readonly subscribers = new Set<Subscriber>()
  pending: Message[] = []
  /** When each message was delivered, and since when it could have been, by true time. */
  readonly delivered: { at: number; dueSince: number }[] = []
  early = 0
  scripts = 0
  up = true
  /** Something keeps the head from moving. */
  jammed = false
  #ahead: number

  /** `crowd`: for how many subscribers each one counts. */
  constructor(world: World, batch: number, crowd: number) {
    this.#world = world
    this.#batch = batch
    this.#crowd = crowd
    this.#ahead = 1.7e12 + world.between(0, 1000)
  }

  get now(): number {
    return this.#world.now + this.#ahead
  }

  /** Somebody sets the clock of the machine. */
  setClock(byMs: number): void {
    this.#ahead += byMs
    for (const message of this.pending) {
      const inMs = message.due - this.now
      if (inMs > 0 || message.dueSince > this.#world.now) message.dueSince = this.#world.now + Math.max(0, inMs)
    }
  }

  offer(delayMs: number): void {
    const due = Math.floor(this.now) + delayMs
    this.pending.push({ due, dueSince: this.#world.now + due - this.now })
    this.pending.sort((a, b) => a.due - b.due)
    if (this.pending[0]?.due === due) this.publish(due)
  }

  /** The head goes away, as by cancelling; nothing is announced. */
  cancelHead(): void {
    this.pending.shift()
  }

  transfer({ announce, leaseWindowMs, leaseUntil }: TransferOptions): TransferResult {
    this.scripts++
    const now = this.now
    let moved = 0
    while (
      !this.jammed &&
      moved < this.#batch &&
      this.pending[0] !== undefined &&
      this.pending[0].due <= Math.floor(now)
    ) {
      const { dueSince, due } = this.pending.shift()!
      if (due > now) this.early++
      this.delivered.push({ at: this.#world.now, dueSince })
      moved++
    }
    const next = this.pending[0]?.due ?? null
    const isSoon = next !== null && moved > 0 && next <= now + leaseWindowMs
    const lease = next !== null && next <= now ? LEASE_MS : isSoon ? leaseWindowMs : 0
    const left = next === null || leaseUntil > now + LEASE_MS ? 0 : leaseUntil - Math.max(next, now)
    const isCovered = (lease > 0 && left >= lease / 2) || (moved === 0 && left > 0)
    const announces = (moved > 0 || announce) && !isCovered
    const announcedAt = announces ? Math.floor(lease > 0 ? now + lease : (next ?? now + IDLE_MS)) : null
    if (announcedAt !== null) this.publish(announcedAt)
    return { moved, next, now, subscribers: this.subscribers.size * this.#crowd, announcedAt, progress: moved }
  }

  publish(due: number): void {
    for (const subscriber of this.subscribers) subscriber.onMessage(due)
  }
}
