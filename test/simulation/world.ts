import type { Clock } from '../../src/timing/clock.js'

interface Event {
  at: number
  readonly order: number
  readonly owner: Process | undefined
  run: (() => void) | undefined
}

/** Time that only passes from event to event, and the processes that live in it. */
export class World {
  readonly random: () => number
  /** The client whose code runs now. */
  current: Process | undefined
  readonly #events: Event[] = [] // a binary heap
  #now = 0
  #order = 0

  constructor(random: () => number) {
    this.random = random
  }

  /** True time in milliseconds; no process sees it. */
  get now(): number {
    return this.#now
  }

  between(least: number, most: number): number {
    return least + (most - least) * this.random()
  }

  chance(probability: number): boolean {
    return this.random() < probability
  }

  /** Runs something later; of a process that is dead by then nothing runs, of a suspended one when it goes on. */
  after(ms: number, run: () => void, owner?: Process): Event {
    const event: Event = { at: this.#now + ms, order: this.#order++, owner, run }
    this.#push(event)
    return event
  }

  /** Runs everything up to a moment; between two events all promises settle. */
  async runUntil(end: number, check: () => void): Promise<void> {
    for (let next = this.#events[0]; next !== undefined && next.at <= end; next = this.#events[0]) {
      this.#pop()
      if (next.run === undefined || next.owner?.dead === true) continue
      this.#now = next.at
      const resumes = next.owner?.suspendedUntil ?? 0
      if (resumes > this.#now) {
        next.at = resumes // the same object: it can still be cancelled
        this.#push(next)
        continue
      }
      this.current = next.owner
      next.run()
      await settled()
      this.current = undefined
      check()
    }
    this.#now = end
  }

  #push(event: Event): void {
    const heap = this.#events
    let index = heap.length
    heap.push(event)
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(event, heap[parent]!)) break
      heap[index] = heap[parent]!
      index = parent
    }
    heap[index] = event
  }

  #pop(): void {
    const heap = this.#events
    const last = heap.pop()!
    if (heap.length === 0) return
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!isBefore(heap[child]!, last)) break
      heap[index] = heap[child]!
      index = child
    }
    heap[index] = last
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

/** The real one: virtual-time.ts replaces the global. */
const nextTurn = setImmediate

function settled(): Promise<void> {
  return new Promise((resolve) => nextTurn(resolve))
}

/** A process: its clock starts anywhere and runs a little wrong, and it can be suspended or killed. */
export class Process {
  readonly world: World
  readonly clock: Clock
  readonly #timers = new Set<Event>()
  dead = false
  suspendedUntil = 0
  /** How often it asked for a timer: a loop that spins shows here. */
  timersMade = 0
  /** By how many milliseconds its wall clock is wrong. */
  wallSkew = 0

  constructor(world: World) {
    this.world = world
    const offset = world.between(0, 1e6)
    const rate = 1 + world.between(-1e-4, 1e-4)
    this.clock = {
      now: () => offset + world.now * rate,
      setTimeout: (callback, ms) => {
        this.timersMade++
        // as Node: whole milliseconds, at least one, and one where it is more than 31 bits; some are late
        const wait = ms >= 1 && ms <= 2 ** 31 - 1 ? Math.trunc(ms) : 1
        const late = world.chance(0.1) ? world.between(0, 3) : world.between(-0.5, 0.5)
        const event = world.after(Math.max(0.1, wait / rate + late), () => this.#fire(event, callback), this)
        this.#timers.add(event)
        return event
      },
      clearTimeout: (handle) => {
        const event = handle as Event
        event.run = undefined
        this.#timers.delete(event)
      },
    }
  }

  get pendingTimers(): number {
    return this.#timers.size
  }

  #fire(event: Event, callback: () => void): void {
    this.#timers.delete(event)
    callback()
  }
}
