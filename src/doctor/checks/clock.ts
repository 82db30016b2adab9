import { duration } from '../../timing/duration.js'
import { aboutServer, type Finding } from '../finding.js'
import type { ServerState } from '../inspect-server.js'

export const SKEW_MS = 500

/** Whether this machine and the server agree what time it is; what the network took is not held against them. */
export function checkClock({ address, clock }: ServerState): Finding[] {
  if (clock === undefined) return []
  const { aheadMs, uncertainMs } = clock
  if (Math.abs(aheadMs) - uncertainMs <= SKEW_MS) return []
  const found = `The Redis clock is ${duration(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock here.`
  return [aboutServer(address, 'clock-skew', 'warning', found, { aheadMs: Math.round(aheadMs) })]
}
