import type { Group } from './waiters.js'

/** The most groups to remember. */
const MOST = 1_000

/** The groups whose last turn brought elements, and which may have more. */
export class RichGroups {
  readonly #groups = new Set<Group>()

  get isEmpty(): boolean {
    return this.#groups.size === 0
  }

  has(group: Group): boolean {
    return this.#groups.has(group)
  }

  besides(group: Group): ReadonlySet<Group> {
    const others = new Set(this.#groups)
    others.delete(group)
    return others
  }

  /** Notes a turn of the group; `isRich`: it brought elements. */
  learn(group: Group, isRich: boolean): void {
    if (this.#groups.size >= MOST) this.#groups.clear()
    if (isRich) this.#groups.add(group)
    else this.#groups.delete(group)
  }
}
