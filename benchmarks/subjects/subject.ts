import type { Promised } from '../lib/scenario.js'

/** What every queue that is measured has to be able to do; the scenarios know nothing else of them. */
export interface Subject {
  readonly name: string
  readonly promise: Promised
  /** Sizes of bulks and numbers in flight among which a sweep finds the best; without them it has one way only. */
  readonly bulks?: readonly Bulk[]
  /** Its figures are of a process of its own: what this process spends says nothing of it. */
  readonly isExternal?: boolean
  /** Why it cannot run here, if it cannot: a figure that is missing is shown as missing. */
  missing?(): string | undefined
  /** A quick run has no time for it. */
  readonly notInQuickRuns?: boolean
  open(options: SessionOptions): Promise<Session>
}

/** How many are added with one call, and how many calls are under way; `size` says nothing where there is no call for many. */
export interface Bulk {
  readonly size: number
  readonly inFlight: number
}

/** All of these sizes with all of these numbers in flight. */
export function bulksOf(sizes: readonly number[], inFlight: readonly number[]): Bulk[] {
  return sizes.flatMap((size) => inFlight.map((many) => ({ size, inFlight: many })))
}

export interface SessionOptions {
  readonly url: string
  /** Its keys begin with it, or have it in them. */
  readonly queue: string
  /** Of the value of each message, about. */
  readonly payloadBytes: number
  /** So many clients with connections of their own, each with its share of the consumers. Default 1. */
  readonly clients?: number
  /** How it adds many; default is what is best for it with small messages. */
  readonly bulk?: Bulk
  /** The certificate of the authority, PEM, where `url` is of TLS. */
  readonly ca?: string
}

export interface Taken {
  /** The numbers of the messages, in the order in which they came. */
  readonly indexes: readonly number[]
  /** When each came to its consumer, epoch milliseconds with fractions; the server runs on this machine. */
  readonly at: readonly number[]
}

export interface TakeOptions {
  /** How many messages are taken and handled at the same time. */
  readonly consumers: number
  /** How many a consumer may take at once, where it can. */
  readonly batch: number
  /** What the handler of a worker does with a message: nothing, or a turn of a timer as if it waited for something. */
  readonly handler?: Handler
}

export type Handler = 'nothing' | 'timer'

export type AddMode = 'one at a time' | '64 in flight' | 'bulk'

export const IN_FLIGHT: Readonly<Record<Exclude<AddMode, 'bulk'>, number>> = { 'one at a time': 1, '64 in flight': 64 }

export interface Session {
  /** Schedules messages numbered from 0, as fast as it can; resolves with when each is due, epoch milliseconds. */
  schedule(dues: readonly number[]): Promise<readonly number[]>
  /** So many messages that are due in one to two hours, in random order. */
  fill(count: number): Promise<void>
  /** So many messages numbered from 0 that can be taken at once, without a delay: in bulk, or by so many single calls under way. */
  load(count: number, singles?: number): Promise<void>
  /** Adds single messages numbered from 0 without a delay, each at its moment, whatever has become of those before it. */
  produce(at: readonly number[]): Promise<void>
  /** Adds so many with a delay of one hour; resolves with the seconds that took. */
  add(count: number, mode: AddMode): Promise<number>
  /** Begins to take; resolves when so many different ones have come. Called once. */
  take(count: number, options: TakeOptions): Promise<Taken>
  /** Opens what it needs to take, so that a measurement does not begin with connecting. */
  ready(): Promise<void>
  /** Disconnects; the server goes away with all that is in it. */
  close(): Promise<void>
  /** Of a process of its own. */
  readonly pid?: number
}

export const HOUR_MS = 3_600_000

/** Between one and two hours: mixed delays, none of them due in a run. */
export function farAway(): number {
  return HOUR_MS + Math.floor(Math.random() * HOUR_MS)
}

/** A text of the asked length that begins with the message's number. */
export function payloadOf(index: number, bytes: number): string {
  return `${index}:`.padEnd(bytes, 'x')
}

export function indexOf(payload: string): number {
  return Number.parseInt(payload, 10)
}

/**
 * What to add to `performance.now()` for the wall clock. `Date.now()` says when a millisecond begins, and only that: so this waits
 * for some beginnings, of which the earliest noticed one counts.
 */
function wallClockOffset(): number {
  let offset = -Infinity
  for (let turn = 0; turn < 4; turn++) {
    const before = Date.now()
    let now = before
    while (now === before) now = Date.now()
    offset = Math.max(offset, now - performance.now())
  }
  return offset
}

/** Collects what comes until it is all there. */
export class Collector {
  readonly #count: number
  readonly #seen = new Set<number>()
  readonly #indexes: number[] = []
  readonly #at: number[] = []
  readonly #offset = wallClockOffset()
  #resolve: (taken: Taken) => void = () => undefined
  readonly done = new Promise<Taken>((resolve) => (this.#resolve = resolve))

  constructor(count: number) {
    this.#count = count
  }

  add(payload: string): void {
    const index = indexOf(payload)
    this.#indexes.push(index)
    // in microseconds, and never outside the millisecond of the clock that the server reads, too
    const millisecond = Date.now()
    this.#at.push(Math.min(Math.max(performance.now() + this.#offset, millisecond), millisecond + 0.999))
    this.#seen.add(index)
    if (this.#seen.size === this.#count) this.#resolve({ indexes: this.#indexes, at: this.#at })
  }
}

/** A turn of the event loop by a timer, as of a handler that waits for something short. */
export function timerTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1))
}

/** The handler of a worker: async, as authors of queues show it. */
export function handlerOf(collector: Collector, handler: Handler = 'nothing'): (payload: string) => Promise<void> {
  if (handler === 'nothing') {
    return async (payload) => {
      collector.add(payload)
      return Promise.resolve()
    }
  }
  return async (payload) => {
    await timerTurn()
    collector.add(payload)
  }
}

/** Calls an action for each moment, without waiting for the calls before; resolves when all have ended. */
export async function paced(at: readonly number[], action: (index: number) => Promise<unknown>): Promise<void> {
  const underWay: Promise<unknown>[] = []
  while (underWay.length < at.length) {
    while (underWay.length < at.length && (at[underWay.length] ?? 0) <= Date.now()) {
      underWay.push(action(underWay.length))
    }
    const wait = (at[underWay.length] ?? 0) - Date.now()
    await new Promise((resolve) => setTimeout(resolve, Math.max(1, wait)))
  }
  await Promise.all(underWay)
}

/** Runs an action so often, so many at the same time; resolves with the seconds that took. */
export async function timed(
  count: number,
  inFlight: number,
  action: (turn: number) => Promise<unknown>,
): Promise<number> {
  let started = 0
  const begin = performance.now()
  const worker = async (): Promise<void> => {
    while (started < count) await action(started++)
  }
  await Promise.all(Array.from({ length: Math.min(inFlight, count) }, worker))
  return (performance.now() - begin) / 1000
}

/** The same in portions, where many can be added with one call. */
export async function timedBulk(
  count: number,
  { size: portion, inFlight }: Bulk,
  action: (from: number, to: number) => Promise<unknown>,
): Promise<number> {
  const turns = Math.ceil(count / portion)
  return timed(turns, inFlight, (turn) => action(turn * portion, Math.min(count, (turn + 1) * portion)))
}
