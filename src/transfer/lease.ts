/** What a reply or an announcement tells the client that gets it. */
export type News =
  /** The latest there is: the next look is then. */
  | 'latest'
  /** Others go by something later, and so does it: somebody else takes care of what is due until then. */
  | 'taken over'
  /** Nobody goes by it: something was told since. */
  | 'outdated'

/**
 * Where messages are due one after the other, the client that delivers them tells the others of a span of time that it takes care of,
 * a lease, and not of each due time. It does not put itself off by that; who told last has the lease. Everybody hears announcements
 * in the order in which Redis sent them, so that whatever comes before an own one is older than it.
 */
export class Lease {
  #until = 0
  /** Own ones that are still to be heard. */
  readonly #unheard = new Set<number>()
  /** Heard while a script is under way: what it told itself can be among them before its reply is there. */
  #heard: number[] | undefined

  /** Until when the others do not look, by the Redis clock; 0 when this client has no lease. */
  get until(): number {
    return this.#until
  }

  /** The script failed: nobody knows what it told, and this client takes care of nothing for a while. */
  end(): void {
    this.#until = 0
    this.#heard = undefined
  }

  onSent(): void {
    this.#heard = []
  }

  /** The script has told the others `told`, if anything. */
  onReply(told: number | null, next: number | null, now: number): News {
    for (const lost of this.#unheard) if (lost < now) this.#unheard.delete(lost)
    const heard = this.#heard ?? []
    this.#heard = undefined
    if (told === null) return 'latest'
    const place = heard.lastIndexOf(told)
    const since = place === -1 ? [] : heard.slice(place + 1)
    const isLease = next !== null && told > next
    this.#until = isLease && since.length === 0 ? told : 0
    if (isLease && place === -1) this.#unheard.add(told)
    if (since.length === 0) return 'latest'
    return since.some((at) => at > told) ? 'taken over' : 'outdated'
  }

  onAnnounced(at: number): News {
    if (this.#unheard.delete(at)) return 'outdated'
    this.#heard?.push(at)
    if (this.#unheard.size > 0) return 'outdated'
    if (this.#until === 0) return 'latest'
    const isLater = at > this.#until
    this.#until = 0 // the others go by what they have just heard
    return isLater ? 'taken over' : 'outdated'
  }
}
