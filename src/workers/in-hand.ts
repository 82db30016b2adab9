import type { Assignment } from './assignment.js'

/** The messages of a worker, in no order: a Set that leaves no dead tables behind (decision 0052). It owns `place` of each assignment. */
export class InHand implements Iterable<Assignment> {
  readonly #assignments: Assignment[] = []

  get size(): number {
    return this.#assignments.length
  }

  has({ place }: Assignment): boolean {
    return place !== undefined
  }

  add(assignment: Assignment): void {
    assignment.place = this.#assignments.push(assignment) - 1
  }

  /** The last message moves to the place of the removed one. */
  delete(assignment: Assignment): void {
    const { place } = assignment
    const last = this.#assignments.at(-1)
    if (place === undefined || last === undefined) return
    this.#assignments[place] = last
    last.place = place
    this.#assignments.pop()
    assignment.place = undefined
  }

  /** A copy, which stays the same while messages come and go. */
  [Symbol.iterator](): Iterator<Assignment> {
    return [...this.#assignments].values()
  }
}
