/** What every queue that is measured has to be able to do; the scenarios know nothing else of them. */
export interface Subject {
  readonly name: string
  /** Why it cannot run here, if it cannot: a figure that is missing is shown as missing. */
  missing?(): string | undefined
  /** A quick run has no time for it. */
  readonly notInQuickRuns?: boolean
  open(options: SessionOptions): Promise<Session>
}

export interface SessionOptions {
  readonly url: string
  /** Its keys begin with it, or have it in them. */
  readonly queue: string
  /** Of the value of each message, about. */
  readonly payloadBytes: number
  /** So many clients with connections of their own, each with its share of the consumers. Default 1. */
  readonly clients?: number
}

export interface Taken {
  /** The numbers of the messages, in the order in which they came. */
  readonly indexes: readonly number[]
  /** When each came to its consumer, epoch milliseconds; the server runs on this machine. */
  readonly at: readonly number[]
}

export interface TakeOptions {
  /** How many messages are taken and handled at the same time. */
  readonly consumers: number
  /** How many a consumer may take at once, where it can. */
  readonly batch: number
}

export type AddMode = 'one at a time' | '64 in flight' | 'bulk'

export interface Session {
  /** Schedules messages numbered from 0, as fast as it can; resolves with when each is due, epoch milliseconds. */
  schedule(dues: readonly number[]): Promise<readonly number[]>
  /** So many messages that are due in one to two hours, in random order. */
  fill(count: number): Promise<void>
  /** So many messages numbered from 0 that can be taken at once, without a delay. */
  load(count: number): Promise<void>
  /** Adds so many with a delay of one hour; resolves with the seconds that took. */
  add(count: number, mode: AddMode): Promise<number>
  /** Begins to take; resolves when so many different ones have come. Called once. */
  take(count: number, options: TakeOptions): Promise<Taken>
  /** Opens what it needs to take, so that a measurement does not begin with connecting. */
  ready(): Promise<void>
  /** Disconnects; the server goes away with all that is in it. */
  close(): Promise<void>
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

/** Collects what comes until it is all there. */
export class Collector {
  readonly #count: number
  readonly #seen = new Set<number>()
  readonly #indexes: number[] = []
  readonly #at: number[] = []
  #resolve: (taken: Taken) => void = () => undefined
  readonly done = new Promise<Taken>((resolve) => (this.#resolve = resolve))

  constructor(count: number) {
    this.#count = count
  }

  add(payload: string): void {
    const index = indexOf(payload)
    this.#indexes.push(index)
    this.#at.push(Date.now())
    this.#seen.add(index)
    if (this.#seen.size === this.#count) this.#resolve({ indexes: this.#indexes, at: this.#at })
  }
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
  portion: number,
  inFlight: number,
  action: (from: number, to: number) => Promise<unknown>,
): Promise<number> {
  const turns = Math.ceil(count / portion)
  return timed(turns, inFlight, (turn) => action(turn * portion, Math.min(count, (turn + 1) * portion)))
}
