/** What a reply or an announcement tells the client that gets it about its next look. */
export type News =
  /** It is then. */
  | 'latest'
  /** It is then, because somebody else takes care of what is due until then. */
  | 'taken over'
  /** At most then: it is something of this client's own, or older than that, or others look sooner than it had told them. */
  | 'no reason to wait'

/** The longest span that a client takes care of. */
export const MAX_LEASE_MS = 25

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
  #isTakenOver = false

  /** Until when the others do not look, by the Redis clock; 0 when this client has no lease. */
  get until(): number {
    return this.#until
  }

  /** Nobody knows what the script told, or this client will not go on. */
  end(): void {
    this.#until = 0
    this.#heard = undefined
  }

  /** The subscription is new: what was told before is not heard any more. */
  onSubscribed(): void {
    this.#until = 0
    this.#unheard.clear()
  }

  onSent(): void {
    this.#heard = []
    this.#isTakenOver = false
  }

  /** The script has told the others `told`, if anything. */
  onReply(told: number | null, next: number | null, now: number): News {
    const heard = this.#heard ?? []
    this.#heard = undefined
    for (const lost of this.#unheard) if (lost < now || lost > now + MAX_LEASE_MS) this.#unheard.delete(lost)
    if (told === null) return this.#isTakenOver ? 'taken over' : 'latest'
    const place = heard.lastIndexOf(told)
    const since = place === -1 ? [] : heard.slice(place + 1)
    const isLease = next !== null && told > next
    this.#until = isLease && since.length === 0 ? told : 0
    if (isLease && place === -1) this.#unheard.add(told)
    if (since.length === 0) return 'latest'
    return isLease && since.some((at) => isLeaseAfter(told, at)) ? 'taken over' : 'no reason to wait'
  }

  onAnnounced(at: number): News {
    if (this.#unheard.delete(at)) return 'no reason to wait'
    this.#heard?.push(at)
    if (this.#unheard.size > 0) return 'no reason to wait'
    const until = this.#until
    if (until === 0) return 'latest'
    this.#until = 0 // the others go by what they have just heard
    this.#isTakenOver = isLeaseAfter(until, at)
    if (this.#isTakenOver) return 'taken over'
    return at > until ? 'latest' : 'no reason to wait'
  }
}

/** What is later still is a due time: nothing is left before it. */
function isLeaseAfter(until: number, at: number): boolean {
  return at > until && at <= until + MAX_LEASE_MS
}
