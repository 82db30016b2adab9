import type { Topology } from '../topology/topology.js'

/** How long a shutdown searches for a server: long enough to finish opening a connection. */
export const SEARCH_MS = 1_000
const CHECK_MS = 50

/**
 * For a shutdown: calls `giveUp` when no server could be reached for `searchMs()` milliseconds in a row, until the returned
 * function is called. It counts checks, not time, because a blocked event loop says nothing about the server.
 */
export function whenUnreachable(topology: Topology, searchMs: () => number, giveUp: () => void): () => void {
  let missed = 0
  const timer = setInterval(() => {
    missed = topology.connected ? 0 : missed + 1
    if (missed * CHECK_MS < searchMs()) return
    clearInterval(timer)
    giveUp()
  }, CHECK_MS)
  return () => clearInterval(timer)
}

/**
 * For a shutdown: calls `giveUp` when a command has waited for its reply for `limitMs` although other replies come, as on a slow line with
 * many commands in flight, until the returned function is called.
 */
export function whenLate(topology: Topology, limitMs: number, giveUp: () => void): () => void {
  let newest = topology.inFlight().at(-1)
  const timer = setInterval(() => {
    const inFlight = topology.inFlight()
    const isLate = newest !== undefined && inFlight.includes(newest)
    newest = inFlight.at(-1)
    if (!isLate) return
    clearInterval(timer)
    giveUp()
  }, limitMs)
  return () => clearInterval(timer)
}
