import { connection } from './connection.js'
import { request } from './request.js'
import { gone } from './session.js'

const LOOK_MS = 2_000
/** After this time without an answer, the page checks by itself whether the service is away or the session has ended. */
const QUIET_MS = 5_000

/** Sends small requests while no screen does, and while the service does not answer, until the returned function is called. */
export function watchConnection(): () => void {
  let isAsking = false
  const look = async (): Promise<void> => {
    const isLost = connection.lostSince.get() !== undefined
    if (isAsking || document.hidden || (!isLost && connection.quietMs() < QUIET_MS)) return
    isAsking = true
    await request('GET', '/ui/session').catch(gone)
    isAsking = false
  }
  const timer = setInterval(() => void look(), LOOK_MS)
  return () => clearInterval(timer)
}
