import type { ScriptOptions } from '../../src/scheduler/due-machine.js'
import type { ScriptResult } from '../../src/scheduler/due-scheduler.js'
import { IDLE_MS, LEASE_MS, LEAST_LEASE_MS, SUBSCRIBERS_PER_LEASE_MS } from '../../src/store/lease.js'
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

/** One Redis with one delayed queue: what offer.lua and transfer.lua do to it, and its clock. */
export class ModelRedis {
  readonly #world: World
  readonly #batch: number
  readonly #crowd: number
  readonly subscribers = new Set<Subscriber>()
  /** The lease, and until when by this clock. */
  #leader: { readonly client: unknown; readonly until: number } | undefined
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

  /** The clock of the machine is set. */
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

  transfer(client: unknown, { announce, renew }: ScriptOptions): ScriptResult {
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
    const subscribers = this.subscribers.size * this.#crowd
    const { leader, leaseUntil, isKnown } = this.#lease(client, { moved, next, now, subscribers, renew })
    if ((moved > 0 || announce) && !isKnown) {
      this.publish(Math.floor(next === null ? now + IDLE_MS : Math.max(next, leaseUntil)))
    }
    const isStuck = next !== null && next <= now && moved === 0
    return { moved, next, now, subscribers, leader, leaseUntil, isStuck }
  }

  /** Who leads after the script, and whether the followers know of it for long enough. */
  #lease(
    client: unknown,
    {
      moved,
      next,
      now,
      subscribers,
      renew,
    }: Pick<ScriptResult, 'moved' | 'next' | 'now' | 'subscribers'> & Pick<ScriptOptions, 'renew'>,
  ): { leader: ScriptResult['leader']; leaseUntil: number; isKnown: boolean } {
    let held = this.#leader
    if (held !== undefined && (held.until <= now || held.until > now + LEASE_MS)) held = undefined
    const isDue = next !== null && next <= now
    const window = Math.min(LEASE_MS, Math.max(LEAST_LEASE_MS, Math.floor(subscribers / SUBSCRIBERS_PER_LEASE_MS)))
    const wanted = isDue ? LEASE_MS : moved > 0 && subscribers > 1 ? window : 0
    const isOther = held !== undefined && held.client !== client
    const isOwn = held !== undefined && !isOther
    let isKnown = false
    if (wanted > 0 && !isOther) {
      isKnown = isOwn && !renew && next !== null && held!.until - Math.max(next, now) >= wanted / 2
      if (!isKnown) held = this.#leader = { client, until: Math.floor(now) + wanted }
    } else if (moved === 0) isKnown = isOther || (isOwn && next !== null && next < held!.until)
    const leader = held === undefined ? 'none' : held.client === client ? 'self' : 'other'
    return { leader, leaseUntil: held?.until ?? 0, isKnown }
  }

  publish(due: number): void {
    for (const subscriber of this.subscribers) subscriber.onMessage(due)
  }
}
