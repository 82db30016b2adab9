import type { ChangeBatch, ChangeKind, ReliableQueue } from '../index.js'

/** The changes of a queue in an interval. */
export interface Seen {
  readonly counts: Readonly<Record<Counted, number>>
  /** The milliseconds from the due time to the delivery of messages whose due time this process has read before. */
  readonly lateness: readonly number[]
  /** Whether there were more changes than were read, so that the counts are minima. */
  readonly isPartial: boolean
}

export const COUNTED = ['added', 'polled', 'acknowledged', 'failed', 'dead'] as const satisfies readonly ChangeKind[]
export type Counted = (typeof COUNTED)[number]

/** The most entries of one script, and scripts of one interval. */
const PAGE = 500
const MOST_PAGES = 20
/** The most due times remembered for a queue. */
const MOST_KNOWN = 10_000

/** Reads the change stream of a queue from now on, without a group, so that it stores nothing in Redis. */
export class ChangeRates {
  readonly #queue: ReliableQueue
  readonly #dueTimes = new Map<string, number>()
  /** The last position read; without an epoch at the beginning, where no entry can be missing. */
  #position: { readonly id: string; readonly epoch: string | null } | null = null

  constructor(queue: ReliableQueue) {
    this.#queue = queue
  }

  /** The changes since the last call; `null` the first time, without kept changes, and if Redis has lost some. */
  async next(): Promise<Seen | null> {
    if (this.#position === null) {
      await this.#begin()
      return null
    }
    const counts = { added: 0, polled: 0, acknowledged: 0, failed: 0, dead: 0 }
    const lateness: number[] = []
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const { status, epoch, batches } = await this.#queue.readChanges({ after: this.#position, count: PAGE })
      if (status !== 'ok' || epoch === null) {
        this.#position = null
        return this.next()
      }
      for (const batch of batches) this.#read(batch, counts, lateness)
      const last: ChangeBatch | undefined = batches.at(-1)
      if (last !== undefined) this.#position = { epoch, id: last.position.id }
      if (batches.length === 0) return { counts, lateness, isPartial: false }
    }
    await this.#begin()
    return { counts, lateness, isPartial: true }
  }

  async #begin(): Promise<void> {
    const { epoch, last } = await this.#queue.changeStatus()
    this.#dueTimes.clear()
    this.#position = epoch === null ? null : last === null ? { epoch: null, id: '0-0' } : { epoch, id: last }
  }

  #read({ at, changes }: ChangeBatch, counts: Record<Counted, number>, lateness: number[]): void {
    for (const { change, id, dueAt } of changes) {
      const counted = COUNTED.find((one) => one === change)
      if (counted !== undefined) counts[counted]++
      const due = this.#dueTimes.get(id)
      this.#dueTimes.delete(id)
      if (change === 'polled') {
        if (due !== undefined) lateness.push(Math.max(0, at - due))
      } else if (dueAt !== undefined) {
        this.#dueTimes.set(id, Math.max(dueAt, 0))
        const [oldest] = this.#dueTimes.keys()
        if (this.#dueTimes.size > MOST_KNOWN && oldest !== undefined) this.#dueTimes.delete(oldest)
      }
    }
  }
}
