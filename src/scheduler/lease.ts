/** What a reply or an announcement means for this client's next transfer. */
export type LeaseOutcome =
  /** It is at that time. */
  | 'latest'
  /** Another client leads: wait until its lease ends. */
  | 'taken over'
  /** It is at that time or earlier: the announcement is this client's own, or older than its own, or ends its lease early. */
  | 'no reason to wait'

/** The longest lease. */
export const MAX_LEASE_MS = 25

/**
 * On a busy queue the leader publishes a lease, until whose end it alone transfers, instead of every due time. The lease does not
 * defer the leader itself; the client that published last holds the lease. Each client receives announcements in the order in which
 * Redis sent them, so what arrives before this client's own announcement is older than that.
 */
export class Lease {
  #until = 0
  /** Own announcements that have not arrived yet. */
  readonly #unheard = new Set<number>()
  /** Announcements that arrived while a script runs. Its own announcement can be among them before its reply arrives. */
  #heard: number[] | undefined
  #isTakenOver = false

  /** When this client's lease ends, by the Redis clock; 0 when it has none. */
  get until(): number {
    return this.#until
  }

  /** The reply was lost, so what the script published is unknown; or this client stops transferring. */
  end(): void {
    this.#until = 0
    this.#heard = undefined
  }

  /** The subscription is new: announcements from before it do not arrive any more. */
  onSubscribed(): void {
    this.#until = 0
    this.#unheard.clear()
  }

  onSent(): void {
    this.#heard = []
    this.#isTakenOver = false
  }

  /** The script has published `announcedAt`, unless that is `null`. */
  onReply(announcedAt: number | null, next: number | null, now: number): LeaseOutcome {
    const heard = this.#heard ?? []
    this.#heard = undefined
    for (const lost of this.#unheard) if (lost < now || lost > now + MAX_LEASE_MS) this.#unheard.delete(lost)
    if (announcedAt === null) return this.#isTakenOver ? 'taken over' : 'latest'
    const place = heard.lastIndexOf(announcedAt)
    const since = place === -1 ? [] : heard.slice(place + 1)
    const isLease = next !== null && announcedAt > next
    this.#until = isLease && since.length === 0 ? announcedAt : 0
    if (isLease && place === -1) this.#unheard.add(announcedAt)
    if (since.length === 0) return 'latest'
    return isLease && since.some((at) => isLeaseAfter(announcedAt, at)) ? 'taken over' : 'no reason to wait'
  }

  onAnnounced(at: number): LeaseOutcome {
    if (this.#unheard.delete(at)) return 'no reason to wait'
    this.#heard?.push(at)
    if (this.#unheard.size > 0) return 'no reason to wait'
    const until = this.#until
    if (until === 0) return 'latest'
    this.#until = 0 // the other clients follow this announcement
    this.#isTakenOver = isLeaseAfter(until, at)
    if (this.#isTakenOver) return 'taken over'
    return at > until ? 'latest' : 'no reason to wait'
  }
}

/** A later time is no lease but a due time: nothing is due before it. */
function isLeaseAfter(until: number, at: number): boolean {
  return at > until && at <= until + MAX_LEASE_MS
}
