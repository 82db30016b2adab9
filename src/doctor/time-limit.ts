/** How long the doctor, or a part of its work, may take. */
export class TimeLimit {
  readonly #now: () => number
  readonly #endsAt: number

  /** @param ms Infinity for no limit */
  constructor(ms: number, now = () => performance.now()) {
    this.#now = now
    this.#endsAt = ms === Infinity ? Infinity : now() + ms
  }

  get isOver(): boolean {
    return this.#endsAt !== Infinity && this.#now() >= this.#endsAt
  }

  get leftMs(): number {
    return this.#endsAt === Infinity ? Infinity : Math.max(0, this.#endsAt - this.#now())
  }

  /** A limit of this share of the time that is left, and of at most `mostMs`. */
  part(share: number, mostMs = Infinity): TimeLimit {
    return new TimeLimit(Math.min(this.leftMs * share, mostMs), this.#now)
  }
}

export const UNLIMITED = new TimeLimit(Infinity)
