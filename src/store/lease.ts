// The durations of leases and waits, docs/decisions/0039. All are arguments of the scripts.

/** The longest lease: followers wait this long before they take over from a leader that is gone. */
export const LEASE_MS = 25
/** The shortest lease of a leader that has moved all due entries. */
export const LEAST_LEASE_MS = 3
/**
 * The shortest lease is one millisecond longer for each this many subscribers, so that together they run at most this many transfers per
 * millisecond.
 */
export const SUBSCRIBERS_PER_LEASE_MS = 4
/** With nothing pending, the followers wait this long, or until the next offer is announced. */
export const IDLE_MS = 3_600_000
