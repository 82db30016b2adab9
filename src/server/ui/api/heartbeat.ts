import { connection } from './connection.js'
import { request } from './request.js'
import { gone } from './session.js'

const LOOK_MS = 2_000
/** A screen that asks nothing for so long does not notice by itself that the service is away, or that its session has ended. */
const QUIET_MS = 5_000

/** Asks the service something small where no screen does, and while it does not answer; until the returned function is called. */
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
