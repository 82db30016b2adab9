import { inLargestUnit } from '../../duration.js'
import { aboutServer, type Finding } from '../finding.js'
import type { ServerState } from '../inspect-server.js'

export const SKEW_MS = 500

/** Whether the clocks of this machine and the server agree; the time of the round trip does not count as a difference. */
export function checkClock({ address, clock }: ServerState): Finding[] {
  if (clock === undefined) return []
  const { aheadMs, uncertainMs } = clock
  if (Math.abs(aheadMs) - uncertainMs <= SKEW_MS) return []
  const found = `The Redis clock is ${inLargestUnit(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock here.`
  return [aboutServer(address, 'clock-skew', 'warning', found, { aheadMs: Math.round(aheadMs) })]
}
